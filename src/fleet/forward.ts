import { type Caller, headersFor } from '../auth/caller.ts'
import { readJson } from '../client/answer.ts'
import { messageOf, requireAboutRequest } from '../client/greeting.ts'
import { bodiless, jsonBody, type Outgoing } from '../client/transport.ts'
import { ApiError, badRequest } from '../errors/api-error.ts'
import { errorHeader, wordOfStatus } from '../errors/words.ts'
import { isPlainTarget } from '../http/plain-target.ts'
import { isUpgrade, type Upgrade } from '../http/socket.ts'
import { bridge } from './bridge.ts'
import type { Fleet } from './fleet.ts'

const maxErrorBytes = 64 * 1024

/** Request headers for the compute: about the body and the wanted answer, never about the client. */
const toCompute = [
  'accept',
  'content-digest',
  'content-encoding',
  'content-length',
  'content-md5',
  'content-range',
  'content-type',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'last-event-id',
  'range',
  'repr-digest',
]

/** Response headers for the client: about the body. No header by which a compute could act as this service. */
const toClient = [
  'accept-ranges',
  'allow',
  'cache-control',
  'content-digest',
  'content-disposition',
  'content-encoding',
  'content-length',
  'content-range',
  'content-type',
  'etag',
  'last-modified',
  'range',
  'repr-digest',
  'retry-after',
  'x-accel-buffering',
  'x-comment',
  'x-interface-name',
  'x-patchbay-error',
]
/** Response headers of an error. */
const aboutErrors: ReadonlySet<string> = new Set(['allow', 'content-range', 'range', 'retry-after', 'x-patchbay-error'])

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
}

/** Forwards a request to a compute and its answer to the client, both as streams. */
export async function forward(fleet: Fleet, id: string, forwarded: Forwarded): Promise<Response> {
  const { request, path, body, caller, upgrade } = forwarded
  const name = fleet.nameOf(id)
  requirePlain(path)
  const target = path + queryOf(request.url)
  if (upgrade !== undefined && isUpgrade(request)) return bridge(fleet, { id, request, path: target, caller, upgrade })
  const headers = { ...picked(request.headers, toCompute), ...headersFor(caller) }
  if (body instanceof Uint8Array) headers['content-length'] = String(body.byteLength)
  const response = await fleet.send(id, {
    method: request.method,
    path: target,
    headers,
    body: bodyOf(request, body),
    signal: request.signal,
  })
  return passOn(response, name)
}

/** Not every transport can send the body of a GET, and no endpoint needs one. */
function bodyOf({ method, headers, body }: Request, given: Forwarded['body']): Outgoing['body'] {
  if (given instanceof Uint8Array) return given.byteLength === 0 ? null : given
  return headers.get('content-length') === '0' || method === 'GET' ? null : (given ?? body)
}

/** Sends a request of the service itself to a compute, by POST. */
export async function ask(
  fleet: Fleet,
  id: string,
  { path, body, caller, signal }: { path: string; body: unknown; caller: Caller; signal: AbortSignal },
): Promise<Response> {
  const name = fleet.nameOf(id)
  const { headers, body: bytes } = jsonBody(body)
  const outgoing = { method: 'POST', path, headers: { ...headers, ...headersFor(caller) }, body: bytes, signal }
  return passOn(await fleet.send(id, outgoing), name)
}

/** The JSON of an answer; undefined for other content, or above `maxBytes`. 504 when the connection is lost. */
export async function readAnswer(response: Response, maxBytes: number, name: string): Promise<unknown> {
  try {
    return await readJson(response, maxBytes)
  } catch (cause) {
    if (cause instanceof ApiError) throw cause
    throw new ApiError(504, `The compute ${name} went away before it had answered`, { cause })
  }
}

/** Turns the answer of a compute into an answer of this service. Keeps the status, except 401, 407 and redirects. */
export async function passOn(response: Response, name: string): Promise<Response> {
  const { status } = response
  requireAboutRequest(response, name)
  const headers = new Headers(picked(response.headers, toClient))
  if (status >= 400) return failed(response, headers, name)
  // An answer of a compute must not run as a page of this service.
  headers.set('Content-Security-Policy', "default-src 'none'; sandbox")
  headers.set('X-Content-Type-Options', 'nosniff')
  return new Response(bodiless.has(status) ? null : response.body, { status, headers })
}

/** An error with the status of the compute, and with its message if the body has the common form of errors. */
async function failed(response: Response, headers: Headers, name: string): Promise<Response> {
  const { status } = response
  const said = await readAnswer(response, maxErrorBytes, name)
  const body =
    messageOf(said) === undefined
      ? { message: `The compute ${name} answered ${status}, and not why`, status }
      : { ...(said as object), status }
  for (const header of [...headers.keys()]) {
    if (!aboutErrors.has(header)) headers.delete(header)
  }
  // A compute of an earlier version sends no error code.
  if (!headers.has(errorHeader)) headers.set(errorHeader, 'image' in body ? 'image-missing' : wordOfStatus(status))
  headers.set('Content-Type', 'application/json')
  const text = new TextEncoder().encode(`${JSON.stringify(body)}\n`)
  headers.set('Content-Length', String(text.byteLength))
  return new Response(text, { status, headers })
}

/** A transport may resolve dot segments and backslashes, and so request another path. */
function requirePlain(path: string): void {
  if (isPlainTarget(path)) return
  throw badRequest('action: a dot segment or a backslash is not possible here')
}

function picked(headers: Headers, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headers.get(name)
      return value === null ? [] : [[name, value]]
    }),
  )
}

function queryOf(url: string): string {
  const start = url.indexOf('?')
  return start < 0 ? '' : url.slice(start).replace(/#.*$/, '')
}
