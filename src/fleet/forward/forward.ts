import { readJson } from '../../compute/remote/answer.ts'
import { messageOf, requireAboutRequest } from '../../compute/remote/greeting.ts'
import {
  bodiless,
  type ComputeAnswer,
  jsonBody,
  maxHeaderBytes,
  type Outgoing,
} from '../../compute/remote/transport.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { ApiError, badRequest } from '../../lib/errors/api-error.ts'
import { codeOfStatus, errorHeader } from '../../lib/errors/error-codes.ts'
import { isPlainTarget } from '../../lib/http/plain-target.ts'
import type { RelayedAnswer } from '../../lib/http/relayed-answer.ts'
import { isUpgrade, type Upgrade } from '../../lib/http/socket.ts'
import { type Caller, headersFor } from '../../model/access/caller.ts'
import type { Fleet } from '../pool/fleet.ts'
import { bridge } from './bridge.ts'

const maxErrorBytes = 64 * 1024

/** Request headers for the compute: about the wanted answer and the body, never about the client. */
const aboutAnswer = [
  'accept',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'last-event-id',
  'range',
]
/** Those of them that count for an endpoint that answers with JSON. */
const aboutJson = ['accept', 'if-none-match']
const toCompute = [
  ...aboutAnswer,
  'content-digest',
  'content-encoding',
  'content-length',
  'content-md5',
  'content-range',
  'content-type',
  'repr-digest',
]

/**
 * Response headers for the client: about the body. No header by which a compute could act as this service. An error has only those
 * that are `true`.
 */
const isOfErrors = {
  'Accept-Ranges': false,
  Allow: true,
  'Cache-Control': false,
  'Content-Digest': false,
  'Content-Disposition': false,
  'Content-Encoding': false,
  'Content-Length': false,
  'Content-Range': true,
  'Content-Type': false,
  ETag: false,
  'Last-Modified': false,
  Range: true,
  'Repr-Digest': false,
  'Retry-After': true,
  'X-Accel-Buffering': false,
  'X-Comment': false,
  'X-Interface-Name': false,
  [errorHeader]: true,
}
const toClient = Object.keys(isOfErrors)
/** Those that an answer of JSON can have. In workerd each header that is looked up takes 0.3 us of the 500 of a small request. */
const toClientOfJson = [
  'Cache-Control',
  'Content-Encoding',
  'Content-Length',
  'Content-Type',
  'ETag',
] as const satisfies (keyof typeof isOfErrors)[]
const toClientOfErrors = toClient.filter((name) => isOfErrors[name as keyof typeof isOfErrors])

/** A request to forward. */
export interface Forwarded {
  readonly request: Request
  /** The path at the compute, percent-encoded; the query is that of the request. */
  readonly path: string
  /** The body of the request, when it was already read: a stream or the whole bytes. */
  readonly body?: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | undefined
  /** The headers of `headersFor` carry it to the compute. */
  readonly caller: Caller
  /** Opens a websocket when the client requests one. */
  readonly upgrade?: Upgrade | undefined
  /** Whether it is a GET of an endpoint that answers with JSON: no other headers are forwarded than such answers have. */
  readonly isJson?: boolean
}

/** Forwards a request to a compute and its answer to the client, both as streams. */
export async function forward(fleet: Fleet, id: string, forwarded: Forwarded): Promise<Response | RelayedAnswer> {
  const { request, path, body, caller, upgrade, isJson } = forwarded
  const compute = fleet.at(id)
  requirePlain(path)
  const target = path + queryOf(request.url)
  if (upgrade !== undefined && isUpgrade(request)) return bridge(fleet, { id, request, path: target, caller, upgrade })
  const { method } = request
  // The body of a GET is not sent on.
  const headers = headersFor(caller)
  pick(request.headers, isJson === true ? aboutJson : method === 'GET' ? aboutAnswer : toCompute, headers)
  if (body instanceof Uint8Array) headers['content-length'] = String(body.byteLength)
  const sent = bodyOf(request, body)
  const response = await compute.send({ method, path: target, headers, body: sent, signal: request.signal })
  const passed = relayAnswer(response, compute.name, isJson === true ? toClientOfJson : toClient)
  return passed instanceof Promise ? await passed : passed
}

/** Not every transport can send the body of a GET, and no endpoint needs one. */
function bodyOf({ method, headers, body }: Request, given: Forwarded['body']): Outgoing['body'] {
  if (given instanceof Uint8Array) return given.byteLength === 0 ? null : given
  return method === 'GET' || headers.get('content-length') === '0' ? null : (given ?? body)
}

/** Sends a request of the service itself to a compute, by POST. */
export async function ask(
  fleet: Fleet,
  id: string,
  { path, body, caller, signal }: { path: string; body: unknown; caller: Caller; signal: AbortSignal },
): Promise<RelayedAnswer> {
  const compute = fleet.at(id)
  const { headers, body: bytes } = jsonBody(body)
  const outgoing = { method: 'POST', path, headers: { ...headers, ...headersFor(caller) }, body: bytes, signal }
  return await relayAnswer(await compute.send(outgoing), compute.name)
}

/** The JSON of an answer; undefined for other content, or above `maxBytes`. 504 when the connection is lost. */
export async function readAnswer(answer: ComputeAnswer, maxBytes: number, name: string): Promise<unknown> {
  try {
    return await readJson(answer, maxBytes)
  } catch (cause) {
    if (cause instanceof ApiError) throw cause
    throw new ApiError(504, `Lost the connection to compute ${name} before it responded`, { cause })
  }
}

/**
 * Turns the answer of a compute into an answer of this service. Keeps the status, except 401, 407 and redirects. `names`: the headers that the client
 * gets, unless it is an error.
 */
export function relayAnswer(
  answer: ComputeAnswer,
  name: string,
  names: readonly string[] = toClient,
): RelayedAnswer | Promise<RelayedAnswer> {
  const { status } = answer
  requireAboutRequest(answer, name)
  if (status >= 400) return failed(answer, name)
  const headers = answerHeaders(answer, names, name)
  // A client may wait for the bytes that these announce; one to HEAD, and 304, announce what they do not have (RFC 9110, 8.6).
  if (status === 204 || status === 205) delete headers['Content-Length']
  const caching = headers['Cache-Control']
  if (caching !== undefined) headers['Cache-Control'] = cachingFor(caching)
  // An answer of a compute must not run as a page of this service.
  headers['Content-Security-Policy'] = "default-src 'none'; sandbox"
  headers['X-Content-Type-Options'] = 'nosniff'
  return { status, headers, content: bodiless.has(status) ? null : (answer.whole ?? answer.body) }
}

/** Directives by which a cache keeps less than without them (RFC 9111, 5.2.2). */
const restrictive = new Set(['no-store', 'no-cache', 'no-transform', 'private', 'must-revalidate'])

/** The Cache-Control for a client. A compute cannot make caches before this service keep an answer, or give it to others. */
function cachingFor(value: string): string {
  const isRestrictive = value.split(',').every((it) => restrictive.has(it.trim().toLowerCase()))
  return isRestrictive ? value : 'no-store'
}

/** An error with the status of the compute, and with its message if the body has the common form of errors. */
async function failed(answer: ComputeAnswer, name: string): Promise<RelayedAnswer> {
  const { status } = answer
  const said = await readAnswer(answer, maxErrorBytes, name)
  const body =
    messageOf(said) === undefined
      ? { message: `The compute ${name} answered ${status} without a message`, status }
      : { ...(said as object), status }
  const headers = answerHeaders(answer, toClientOfErrors, name)
  // A compute of an earlier version sends no error code.
  headers[errorHeader] ??= 'image' in body ? 'image-missing' : codeOfStatus(status)
  const content = new TextEncoder().encode(`${JSON.stringify(body)}\n`)
  headers['Content-Type'] = 'application/json'
  headers['Content-Length'] = String(content.byteLength)
  return { status, headers, content }
}

/** The headers of an answer that the client gets. 502 when a client could not take them. */
function answerHeaders(answer: ComputeAnswer, names: readonly string[], name: string): Record<string, string> {
  const headers: Record<string, string> = {}
  pick(answer.headers, names, headers)
  let bytes = 0
  for (const key in headers) bytes += key.length + (headers[key] as string).length
  if (bytes <= maxHeaderBytes) return headers
  answer.body?.cancel().catch(ignore('the rest of the answer is not needed'))
  throw new ApiError(502, `The compute ${name} sent more than ${maxHeaderBytes} bytes of headers`)
}

/** A transport may resolve dot segments and backslashes, and so request another path. */
function requirePlain(path: string): void {
  if (isPlainTarget(path)) return
  throw badRequest('action: expected a path without dot segments and backslashes')
}

function pick(headers: Pick<Headers, 'get'>, names: readonly string[], into: Record<string, string>): void {
  for (const name of names) {
    const value = headers.get(name)
    if (value !== null) into[name] = value
  }
}

function queryOf(url: string): string {
  const start = url.indexOf('?')
  return start < 0 ? '' : url.slice(start).replace(/#.*$/, '')
}
