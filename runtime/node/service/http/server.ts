import { isUtf8 } from 'node:buffer'
import { once } from 'node:events'
import {
  createServer as createHttp,
  type ServerOptions as HttpOptions,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import { createServer as createHttps, type Server as HttpsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { FastResponse, NodeRequest, sendNodeResponse } from 'srvx/node'
import type { App, LoginRefusal } from '../../../../src/app.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { codeOfStatus, errorHeader } from '../../../../src/lib/errors/error-codes.ts'
import { isPlainTarget } from '../../../../src/lib/http/plain-target.ts'
import type { RelayedAnswer } from '../../../../src/lib/http/relayed-answer.ts'
import type { Peer } from '../../../../src/server/access/peer.ts'
import type { Json } from '../../../../src/server/http/endpoint.ts'
import { jsonHeaders } from '../../../../src/server/http/json-headers.ts'
import { withKeepAlive } from '../../../../src/server/http/late-answer.ts'
import type { Certificate } from './certificate.ts'
import { repeatedHeader } from './repeated-header.ts'
import { bodyStream, lingerWhenEarly } from './request-body.ts'
import type { WebSockets } from './websocket.ts'

export interface ServerOptions {
  readonly host: string
  readonly port: number
  readonly headerTimeoutMs: number
  readonly bodyTimeoutMs: number
  /** See `LateOptions.silenceMs`. */
  readonly silenceMs?: number
  readonly app: App
  readonly webSockets: WebSockets
  /** Called with the error of an answer that could not be written, such as an answer with an invalid header. */
  readonly report?: (error: unknown) => void
  /** Who is at the other end; without it requests are refused by the app alone. */
  readonly peer?: (message: IncomingMessage) => Peer
  /** With it https is spoken, by HTTP/1.1. */
  readonly certificate?: Certificate | undefined
}

export interface HttpServer {
  readonly url: string
  /** Stops listening, ends feeds and websockets, and lets requests that are being answered finish for a moment. */
  close(): Promise<void>
}

const largestHeaders = 32 * 1024
const keepAliveMs = 30_000
/** After so long without anything sent it is asked whether the other host is still there, ms. */
const vanishedMs = 30_000
const checkMs = 1000
const closeMs = 1000
type Refusal = readonly [status: number, message: string]

const connectRefusal: Refusal = [405, 'CONNECT is not supported: this is not a proxy']
const expectRefusal: Refusal = [417, 'Expect: only 100-continue is supported']
const hostRefusal: Refusal = [400, 'Host: the request has no such header']
const targetRefusal: Refusal = [400, 'The path contains a dot segment or a backslash: send the normalized path']

/** An answer of JSON. Its head and text go to node:http as they are, unless its headers were taken as an object. */
class JsonResponse extends FastResponse {
  /** Undefined once `headers` was read: they may have been changed. */
  plain: { readonly head: string[]; readonly text: string; readonly isAscii: boolean } | undefined

  constructor(text: string, status: number, headers: Record<string, string>) {
    const length = Buffer.byteLength(text)
    const all = { ...jsonHeaders, 'Content-Length': String(length), ...headers }
    super(text, { status, statusText: STATUS_CODES[status] ?? '', headers: all })
    const head: string[] = []
    for (const name in all) head.push(name, all[name as keyof typeof all])
    this.plain = { head, text, isAscii: length === text.length }
  }

  override get headers(): Headers {
    this.plain = undefined
    return super.headers
  }
}

/** A native Response costs half the throughput here: its headers and body are rebuilt for node:http. */
export const json: Json = (body, status, headers) => new JsonResponse(body, status, headers)

/** The same for an answer of a compute. */
export const relayed = ({ status, headers, content }: RelayedAnswer): Response => {
  // Node writes a text and its head at once.
  const body =
    content instanceof Uint8Array && isUtf8(content)
      ? Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString()
      : content
  return new FastResponse(body, { status, statusText: STATUS_CODES[status] ?? '', headers })
}

/** Listens; rejects with the error of the system when the address cannot be had. */
export async function listen({
  host,
  port,
  headerTimeoutMs,
  bodyTimeoutMs,
  silenceMs,
  app,
  webSockets,
  report = ignore('the client gets a 500, or its connection ends'),
  peer,
  certificate,
}: ServerOptions): Promise<HttpServer> {
  const handle = async (req: IncomingMessage, res: ServerResponse) => {
    const request = new NodeRequest({ req, res })
    giveBody(request, req, res)
    try {
      await send(res, await withKeepAlive(request, app.fetch(request), { silenceMs, isReceived: () => req.complete }))
    } catch (error) {
      report(error)
      if (res.headersSent) res.destroy()
      else res.writeHead(500, app.serviceHeaders()).end()
    }
  }
  const server = serverOf(
    certificate,
    {
      headersTimeout: headerTimeoutMs,
      // An upload may take hours; what is bounded is how long nothing of a body comes.
      requestTimeout: 0,
      connectionsCheckingInterval: checkMs,
      keepAliveTimeout: keepAliveMs,
      maxHeaderSize: largestHeaders,
      // See `refusalOfRequest`: Node would answer without a body.
      requireHostHeader: false,
      noDelay: true,
      // A feed without pings writes nothing to a client that has vanished.
      keepAlive: true,
      keepAliveInitialDelay: vanishedMs,
    },
    (req, res) => {
      const refusal = refusalOfRequest(req)
      if (refusal !== undefined) return refuse(res, refusal, app)
      // Only wrong credentials are refused so often.
      if (req.headers.authorization !== undefined) endRefused(req, res)
      const tooMany = refusalByHead(req, app, peer)
      if (tooMany !== undefined) return void res.writeHead(tooMany.status, tooMany.headers).end(tooMany.body)
      if (hasBody(req)) {
        boundBody(req, res, bodyTimeoutMs, app)
        lingerWhenEarly(req, res)
      }
      void handle(req, res)
    },
  )
  server.on('clientError', (error, socket) => answerMalformed(error, socket, app))
  server.on('upgrade', (req, socket, head) => {
    const refusal = refusalOfRequest(req)
    if (refusal === undefined) void webSockets.accept(req, socket, head, (request) => app.fetch(request))
    else refuseSocket(socket, refusal, app)
  })
  server.on('connect', (_, socket) => refuseSocket(socket, connectRefusal, app))
  // Node sends 100 Continue when the body is read: the client never sends the body of a request that is refused before.
  server.on('checkExpectation', (_, res) => refuse(res, expectRefusal, app))
  server.on('checkContinue', (req, res) => server.emit('request', req, res))
  const listening = once(server, 'listening')
  server.listen({ host, port })
  await listening
  const { address, family, port: bound } = server.address() as AddressInfo
  const shown = address === '0.0.0.0' || address === '::' ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address
  const scheme = certificate === undefined ? 'http' : 'https'
  return { url: `${scheme}://${shown}:${bound}`, close: () => close(server, webSockets) }
}

function serverOf(certificate: Certificate | undefined, options: HttpOptions, listener: RequestListener): Server {
  if (certificate === undefined) return createHttp(options, listener)
  const handshakeTimeout = options.headersTimeout
  const server: HttpsServer = createHttps(
    { ...options, ...certificate.current, ...(handshakeTimeout !== undefined && { handshakeTimeout }) },
    listener,
  )
  certificate.follow((pair) => server.setSecureContext(pair))
  return server
}

/** Sends an answer. A body of text leaves with its head, without a promise: most answers are short. */
function send(res: ServerResponse, response: Response): Promise<void> | undefined {
  if (response instanceof JsonResponse && response.plain !== undefined) {
    const { head, text, isAscii } = response.plain
    res.writeHead(response.status, response.statusText, head)
    res.end(text, isAscii ? 'latin1' : 'utf8')
    return undefined
  }
  if (!('_toNodeResponse' in response)) return sendNodeResponse(res, response)
  const parts = (response as FastResponse)._toNodeResponse()
  const { status, statusText, headers, body } = parts
  // The parts of an answer can be taken once.
  if (typeof body !== 'string') return sendNodeResponse(res, { _toNodeResponse: () => parts } as FastResponse)
  res.writeHead(status, statusText, headers)
  res.end(body)
  return undefined
}

/** Replaces the body of a request by a stream that is made on demand. A GET may have a body, too: older clients send filters so. */
function giveBody(request: Request, req: IncomingMessage, res: ServerResponse): void {
  if (!hasBody(req) && (req.method === 'GET' || req.method === 'HEAD')) return
  const isAwaited = /^100-continue$/i.test(req.headers.expect ?? '')
  const begin = () => {
    if (isAwaited && !res.headersSent) res.writeContinue()
  }
  let body: ReadableStream<Uint8Array> | undefined
  Object.defineProperty(request, 'body', {
    get() {
      body ??= bodyStream(req, begin)
      return body
    },
  })
}

/** Whether a body was announced. */
function hasBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers
  return (length !== undefined && length !== '0') || encoding !== undefined
}

/** Why a request is refused before the app sees it. */
function refusalOfRequest({ url, headers, rawHeaders, httpVersion }: IncomingMessage): Refusal | undefined {
  const repeated = repeatedHeader(rawHeaders)
  if (repeated !== undefined) return [400, `${repeated}: the request has this header more than once; send it once`]
  if (httpVersion === '1.1' && headers.host === undefined) return hostRefusal
  return isPlainTarget(url ?? '') ? undefined : targetRefusal
}

/** The answer to what the app does not see; the connection ends with it. */
function refusalAnswer([status, message]: Refusal, app: App): { headers: Record<string, string>; body: string } {
  const body = JSON.stringify({ message, status })
  const headers = {
    ...app.serviceHeaders(),
    ...jsonHeaders,
    'Content-Length': String(Buffer.byteLength(body)),
    [errorHeader]: codeOfStatus(status),
    Connection: 'close',
  }
  return { headers, body }
}

function refuse(res: ServerResponse, refusal: Refusal, app: App): void {
  const { headers, body } = refusalAnswer(refusal, app)
  res.writeHead(refusal[0], headers).end(body)
}

/** Refuses a request without a body by its head alone, after too many wrong log-ins of its sender. */
function refusalByHead(req: IncomingMessage, app: App, peer: ServerOptions['peer']): LoginRefusal | undefined {
  const { authorization, 'content-length': length, 'transfer-encoding': encoding } = req.headers
  if (peer === undefined || authorization === undefined || length !== undefined || encoding !== undefined)
    return undefined
  return app.refuseTooManyLogins({ method: req.method ?? '', authorization, peer: peer(req) })
}

const refusals = new WeakMap<Socket, number>()
const maxRefusals = 1000

/**
 * Ends a connection on which everything is refused with 429. A client may have written thousands of requests ahead: they wait in
 * the buffers of the system, and would be answered before those of others even when the client has gone.
 */
function endRefused({ socket }: IncomingMessage, res: ServerResponse): void {
  res.once('finish', () => {
    if (res.statusCode !== 429) {
      if (refusals.has(socket)) refusals.delete(socket)
      return
    }
    const count = (refusals.get(socket) ?? 0) + 1
    refusals.set(socket, count)
    if (count >= maxRefusals) socket.destroySoon()
  })
}

/** Ends a connection on which a body was announced and stops coming. */
function boundBody(req: IncomingMessage, res: ServerResponse, ms: number, app: App): void {
  const { socket } = req
  const stalled = () => answerMalformed(Object.assign(new Error(), { code: 'BODY_TIMEOUT' }), socket, app)
  // By the request: with a listener there, Node leaves the socket to us.
  req.setTimeout(ms, stalled)
  // With this listener Node does not end the socket at a timeout when the body came whole and is not read: the answer may take longer.
  res.on('timeout', () => {})
  req.once('end', () => void socket.setTimeout(0))
}

const malformed: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: [431, `The headers are larger than ${largestHeaders} bytes`],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request did not arrive in time'],
  BODY_TIMEOUT: [408, 'The body of the request sent no data for too long'],
}

/** What is not HTTP cannot reach the app; it gets the same kind of answer, and the connection ends. */
function answerMalformed(error: Error & { code?: string }, socket: Duplex, app: App): void {
  // A client opens connections in reserve. It would take an answer on one for that of its next request there.
  const isUnused = 'bytesRead' in socket && socket.bytesRead === 0
  if (isUnused || error.code === 'ECONNRESET') socket.destroy()
  else refuseSocket(socket, malformed[error.code ?? ''] ?? [400, 'The request is not valid HTTP'], app)
}

function refuseSocket(socket: Duplex, refusal: Refusal, app: App): void {
  if (!socket.writable) return void socket.destroy()
  const [status] = refusal
  const { headers, body } = refusalAnswer(refusal, app)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...lines].join('\r\n')
  socket.end(`${head}\r\n\r\n${body}`, () => socket.destroy())
}

async function close(server: Server, webSockets: WebSockets): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  webSockets.close()
  server.closeIdleConnections()
  const timer = setTimeout(() => server.closeAllConnections(), closeMs)
  await closed
  clearTimeout(timer)
}
