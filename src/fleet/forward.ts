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

/** What a compute is told of a request: what the body is, and what is wanted of the answer. Never who asks. */
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

/** What a client is told of an answer: what the body is. Nothing by which a compute could speak for this service. */
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
/** Those of an error. */
const aboutErrors: ReadonlySet<string> = new Set(['allow', 'content-range', 'range', 'retry-after', 'x-patchbay-error'])

/** A request that is handed on. */
export interface Forwarded {
  readonly request: Request
  /** That of the compute, still percent-encoded; the query is that of the request. */
  readonly path: string
  /** Instead of the body of the request, which is a stream: the same bytes, also as a whole. */
  readonly body?: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | undefined
  /** The compute is told whether the caller is an administrator, and nothing else of it. */
  readonly caller: Caller
  /** With it a websocket is opened when the client asks for one. */
  readonly upgrade?: Upgrade | undefined
}

/** Hands a request on to a compute and its answer back, both as streams. */
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

/** What is left of a GET's body cannot be carried by every way to a compute, and no endpoint needs it. */
function bodyOf({ method, headers, body }: Request, given: Forwarded['body']): Outgoing['body'] {
  if (given instanceof Uint8Array) return given.byteLength === 0 ? null : given
  return headers.get('content-length') === '0' || method === 'GET' ? null : (given ?? body)
}

/** Asks a compute something of our own, by POST. */
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

/** The JSON of an answer; undefined when it is none, or longer than that. 504 when the compute goes away meanwhile. */
export async function readAnswer(response: Response, maxBytes: number, name: string): Promise<unknown> {
  try {
    return await readJson(response, maxBytes)
  } catch (cause) {
    if (cause instanceof ApiError) throw cause
    throw new ApiError(504, `The compute ${name} went away before it had answered`, { cause })
  }
}

/** An answer of a compute as one of ours. Its status is kept, but for what would be about us: 401, 407 and redirects. */
export async function passOn(response: Response, name: string): Promise<Response> {
  const { status } = response
  requireAboutRequest(response, name)
  const headers = new Headers(picked(response.headers, toClient))
  if (status >= 400) return failed(response, headers, name)
  // What a compute gives must not run as a page of this service.
  headers.set('Content-Security-Policy', "default-src 'none'; sandbox")
  headers.set('X-Content-Type-Options', 'nosniff')
  return new Response(bodiless.has(status) ? null : response.body, { status, headers })
}

/** An error in the form of all errors: what the compute says, when it says it in that form, with the status that it has. */
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
  // A compute of an earlier version has no words.
  if (!headers.has(errorHeader)) headers.set(errorHeader, 'image' in body ? 'image-missing' : wordOfStatus(status))
  headers.set('Content-Type', 'application/json')
  const text = new TextEncoder().encode(`${JSON.stringify(body)}\n`)
  headers.set('Content-Length', String(text.byteLength))
  return new Response(text, { status, headers })
}

/** A transport may fold dot segments and backslashes, and so leave what may be asked. */
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
