import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { STATUS_CODES } from 'node:http'
import { type Duplex, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { NodeRequest } from 'srvx/node'
import { type WebSocket, WebSocketServer } from 'ws'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { badRequest } from '../../../../src/lib/errors/api-error.ts'
import { codeOfStatus, errorHeader } from '../../../../src/lib/errors/error-codes.ts'
import { type Socket, subprotocolOf, type Upgrade, upgradeToken } from '../../../../src/lib/http/socket.ts'

const largestMessage = 1 << 20
const keepAliveMs = 30_000
/** The code of a socket that ended without one. */
const abnormal = 1006
/** More than this waiting for a client that does not read makes the sender wait. */
const maxBuffered = 256 * 1024

type Handlers = Parameters<Upgrade>[1]

/** The websocket seam on Node, where a Response cannot have status 101. */
export class WebSockets {
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: largestMessage,
    perMessageDeflate: false,
    handleProtocols: (offered) => subprotocolOf(offered) ?? false,
  })
  /** Requests that came by an upgrade event, and so have a connection to take over. */
  readonly #upgradable = new WeakSet<Request>()
  readonly #handlers = new Map<string, Handlers>()

  /** `serviceHeaders`: of the answer to a client whose upgrade has a fault (`App.serviceHeaders`). */
  constructor(serviceHeaders: () => Record<string, string> = () => ({})) {
    this.#server.on('wsClientError', ({ message }, connection) => {
      const answer = { message: `Upgrade: ${message}`, status: 400 }
      void refuse(
        connection,
        new Response(JSON.stringify(answer), {
          status: 400,
          headers: { ...serviceHeaders(), 'Content-Type': 'application/json', [errorHeader]: codeOfStatus(400) },
        }),
      )
    })
  }

  readonly upgrade: Upgrade = (request, on) => {
    if (!this.#upgradable.has(request)) {
      on.abandon()
      throw badRequest('Upgrade: a websocket also needs the header "Connection: Upgrade"')
    }
    const token = randomUUID()
    this.#handlers.set(token, on)
    return new Response(null, { headers: { [upgradeToken]: token } })
  }

  /** Answers an upgrade event: with a websocket, or with what the service says instead. */
  async accept(
    req: IncomingMessage,
    connection: Duplex,
    head: Buffer,
    fetch: (request: Request) => Promise<Response>,
  ): Promise<void> {
    connection.on('error', () => connection.destroy())
    const request = new NodeRequest({ req }) as Request
    const waiting = new WaitingClient(connection, head)
    // That of `req` does not abort: the request itself is complete.
    Object.defineProperty(request, 'signal', { value: waiting.closed })
    this.#upgradable.add(request)
    const response = await fetch(request).finally(() => waiting.end())
    const on = this.#taken(response)
    if (on === undefined) return refuse(connection, response)
    const abandon = () => on.abandon()
    // It may have gone while the answer was made: then no close will be reported any more.
    if (connection.destroyed) return abandon()
    connection.once('close', abandon)
    this.#server.handleUpgrade(req, connection, waiting.early, (socket) => {
      connection.off('close', abandon).resume()
      on.open(wrap(socket))
    })
  }

  /**
   * Opens an endpoint as a websocket for a client that came another way than by HTTP: `socket` is what it has instead of one. Returns
   * the answer of the service when it opens none.
   */
  async connect(
    request: Request,
    socket: Socket,
    fetch: (request: Request) => Promise<Response>,
  ): Promise<Response | undefined> {
    this.#upgradable.add(request)
    const response = await fetch(request)
    const on = this.#taken(response)
    if (on === undefined) return response
    on.open(socket)
    return undefined
  }

  /** The handlers of a websocket that an answer stands for. */
  #taken(response: Response): Handlers | undefined {
    const token = response.headers.get(upgradeToken) ?? ''
    const on = this.#handlers.get(token)
    this.#handlers.delete(token)
    return on
  }

  /** Ends all of them: the service goes away. */
  close(): void {
    for (const socket of this.#server.clients) socket.close(1001, 'The service is shutting down')
    setTimeout(() => {
      for (const socket of this.#server.clients) socket.terminate()
    }, 500).unref()
  }
}

/** A client that waits for the answer to its upgrade. That it leaves is reported only while its connection is read. */
class WaitingClient {
  readonly #connection: Duplex
  readonly #gone = new AbortController()
  readonly #pieces: Buffer[]
  #bytes = 0

  constructor(connection: Duplex, head: Buffer) {
    this.#connection = connection
    this.#pieces = [head]
    connection.once('close', this.#leave).once('end', this.#leave).on('data', this.#keep)
  }

  /** Aborts when the client leaves. */
  get closed(): AbortSignal {
    return this.#gone.signal
  }

  /** What came meanwhile. */
  get early(): Buffer {
    return Buffer.concat(this.#pieces)
  }

  /** Its answer is there: the connection is paused. */
  end(): void {
    this.#connection.off('close', this.#leave).off('end', this.#leave).off('data', this.#keep).pause()
  }

  readonly #leave = () => this.#gone.abort(new Error('The client disconnected'))

  readonly #keep = (piece: Buffer) => {
    this.#pieces.push(piece)
    this.#bytes += piece.length
    // A client sends nothing before the answer (RFC 6455, 4.1).
    if (this.#bytes > maxBuffered) this.#connection.destroy()
  }
}

/** An open websocket, of a client or to another service, as the routes use it. It is ended when it answers no ping. */
export function wrap(socket: WebSocket): Socket {
  socket.binaryType = 'nodebuffer'
  let isAlive = true
  socket.on('pong', () => {
    isAlive = true
  })
  const keepAlive = setInterval(() => {
    // While it is paused its answers are not read either.
    if (socket.isPaused) return
    if (!isAlive) return socket.terminate()
    isAlive = false
    socket.ping()
  }, keepAliveMs)
  socket.on('close', () => clearInterval(keepAlive))
  // A faulty frame ends the socket: the routes get the close.
  socket.on('error', () => {})
  return {
    send: (data) => socket.send(data),
    close: (code, reason) => socket.close(code, reason),
    onMessage: (receive) => {
      socket.on('message', (data: Buffer, isBinary) => receive(isBinary ? data : data.toString('utf8')))
    },
    onClose: (closed) => {
      if (socket.readyState === socket.CLOSED) closed(abnormal)
      else socket.once('close', (code: number) => closed(code))
    },
    drained: () => drained(socket),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
  }
}

/** A write callback comes when the operating system has taken the bytes; one more empty ping would reorder nothing. */
async function drained(socket: WebSocket): Promise<void> {
  while (socket.bufferedAmount > maxBuffered && socket.readyState === socket.OPEN) {
    await new Promise<void>((resolve) => {
      const done = () => {
        socket.off('close', done)
        resolve()
      }
      socket.once('close', done)
      socket.ping(undefined, undefined, done)
    })
  }
}

/**
 * Answers without a websocket, and closes the connection. The answer may be a download or a feed: it goes on its way as it comes,
 * and ends with the connection.
 */
async function refuse(connection: Duplex, response: Response): Promise<void> {
  response.headers.set('Connection', 'close')
  const head = [
    `HTTP/1.1 ${response.status} ${STATUS_CODES[response.status] ?? ''}`,
    ...[...response.headers].map(([name, value]) => `${name}: ${value}`),
  ]
  const { body } = response
  // Only of a connection that is read is the end reported.
  connection.resume()
  connection.write(`${head.join('\r\n')}\r\n\r\n`)
  if (body === null) {
    connection.end()
    return
  }
  await pipeline(Readable.fromWeb(body as ReadableStream), connection).catch(
    ignore('a client that goes away ends what was being sent'),
  )
}
