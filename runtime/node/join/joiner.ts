import { WebSocket } from 'ws'
import { joinPath } from '../../../src/routes/v2/join.ts'
import { AnsweringEnd, type AnsweringOptions } from '../../../src/tunnel/answering.ts'
import { resetCodes } from '../../../src/tunnel/frames.ts'
import type { TunnelEnd } from '../../../src/tunnel/link.ts'
import { wrap } from '../http/websocket.ts'
import type { Log } from '../log/log.ts'

const handshakeMs = 20_000
const largestMessage = 1 << 20
const closeMs = 500

/** How long to wait before another attempt, ms. */
export interface JoinWaits {
  readonly first: number
  readonly longest: number
  /** After a connection that lived so long, what failed before is forgotten. */
  readonly steadyMs: number
}

const defaultWaits: JoinWaits = { first: 1000, longest: 60_000, steadyMs: 10_000 }

export interface JoinerOptions extends Pick<AnsweringOptions, 'who' | 'fetch' | 'timeouts' | 'limits'> {
  readonly url: string
  readonly token: string
  readonly log: Log
  readonly waits?: JoinWaits
}

/** Ends of a tunnel after which another attempt soon would end the same way. */
const hopeless: ReadonlySet<number> = new Set([
  resetCodes.forbidden,
  resetCodes.otherProtocol,
  resetCodes.replaced,
  resetCodes.removed,
])

/** Keeps this compute joined to a gateway: one websocket, made again with growing waits when it ends. */
export class Joiner {
  readonly #options: JoinerOptions
  readonly #url: string
  readonly #waits: JoinWaits
  #socket: WebSocket | undefined
  #timer: NodeJS.Timeout | undefined
  #failures = 0
  /** What was logged last: the same again is no news. */
  #said = ''
  #isClosed = false

  constructor(options: JoinerOptions) {
    this.#options = options
    this.#url = joinUrl(options.url)
    this.#waits = options.waits ?? defaultWaits
    this.#connect()
  }

  /** Ends the connection; resolves when it has, or has had its time. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    const socket = this.#socket
    if (socket === undefined || socket.readyState === WebSocket.CLOSED) return
    // Not by once() of Node: to end one that is being opened is told as an error, too.
    const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()))
    closeSoon(socket, 1001, 'The compute ends')
    await closed
  }

  #connect(): void {
    const { token, who, fetch, limits, timeouts } = this.#options
    const socket = new WebSocket(this.#url, {
      headers: { Authorization: `Bearer ${token}` },
      handshakeTimeout: handshakeMs,
      maxPayload: largestMessage,
      perMessageDeflate: false,
    })
    this.#socket = socket
    let error = ''
    let tunnel: AnsweringEnd | undefined
    let end: TunnelEnd | undefined
    let openedAt = Date.now()
    socket.on('error', ({ message }) => {
      error = message
    })
    socket.once('open', () => {
      openedAt = Date.now()
      const wire = wrap(socket)
      const opened = new AnsweringEnd({
        wire: { ...wire, close: (code, reason) => closeSoon(socket, code, reason) },
        who,
        fetch,
        ...(limits !== undefined && { limits }),
        ...(timeouts !== undefined && { timeouts }),
        greeted: (version) => this.#say('info', 'joined the gateway', { version }),
        ended: (it) => {
          end = it
        },
      })
      tunnel = opened
      wire.onMessage((data) => opened.message(data))
    })
    socket.once('close', (code, reason) => {
      tunnel?.closed(code, reason.toString('utf8'))
      if (end !== undefined && Date.now() - openedAt >= this.#waits.steadyMs) this.#failures = 0
      const refusal = end === undefined ? refusals.get(error) : hopeless.has(end.code) ? end.reason : undefined
      this.#again(refusal, end?.reason ?? error)
    })
  }

  #again(refusal: string | undefined, reason: string): void {
    if (this.#isClosed) return
    const { first, longest } = this.#waits
    this.#failures += 1
    const growing = Math.min(longest, first * 2 ** (this.#failures - 1))
    // With jitter: computes that were lost together must not return together.
    const wait = refusal === undefined ? Math.max(first, growing * (0.5 + Math.random() / 2)) : longest
    if (refusal !== undefined) this.#say('error', 'the gateway refuses this compute', { reason: refusal })
    else this.#say('warn', 'the gateway is not connected; it is tried again', { reason })
    this.#timer = setTimeout(() => this.#connect(), wait)
  }

  #say(level: 'info' | 'warn' | 'error', message: string, details: object): void {
    const said = message + JSON.stringify(details)
    if (said === this.#said) return
    this.#said = said
    this.#options.log[level]({ gateway: this.#url, ...details }, message)
  }
}

/** What `ws` says of an answer that is no websocket. */
const refusals: ReadonlyMap<string, string> = new Map([
  ['Unexpected server response: 401', 'the token is not one of its join tokens'],
  ['Unexpected server response: 403', 'this compute may not join'],
  ['Unexpected server response: 404', 'no compute can join there'],
])

/** Closes with a timeout: an unreachable gateway does not answer the close. */
function closeSoon(socket: WebSocket, code: number, reason: string): void {
  const timer = setTimeout(() => socket.terminate(), closeMs)
  socket.once('close', () => clearTimeout(timer))
  socket.close(code, reason)
}

/** The websocket of a gateway, by its address or by the whole path. */
export function joinUrl(text: string): string {
  const url = new URL(text)
  url.protocol = url.protocol.replace('http', 'ws')
  if (!url.pathname.endsWith(joinPath)) url.pathname = url.pathname.replace(/\/$/, '') + joinPath
  return url.href
}
