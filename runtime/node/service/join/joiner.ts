import { WebSocket } from 'ws'
import { AnsweringEnd, type AnsweringOptions } from '../../../../src/compute/tunnel/answering.ts'
import { resetCodes } from '../../../../src/compute/tunnel/frames.ts'
import type { TunnelEnd } from '../../../../src/compute/tunnel/link.ts'
import { joinPath } from '../../../../src/endpoints/v2/fleet/join.ts'
import { bytesOfText } from '../../../../src/lib/http/header-text.ts'
import type { Log } from '../../os/log/log.ts'
import { wrap } from '../http/websocket.ts'

const handshakeMs = 20_000
const largestMessage = 1 << 20
const closeMs = 500

/** The backoff between attempts, ms; each wait is up to twice as long, by chance. */
export interface JoinWaits {
  readonly first: number
  readonly longest: number
  /** A connection that lasted this long resets the backoff. */
  readonly steadyMs: number
}

const defaultWaits: JoinWaits = { first: 1000, longest: 30_000, steadyMs: 10_000 }

export interface JoinerOptions extends Pick<AnsweringOptions, 'who' | 'fetch' | 'timeouts' | 'limits'> {
  readonly url: string
  readonly token: string
  readonly log: Log
  readonly waits?: JoinWaits
}

const { forbidden, otherProtocol, replaced, removed } = resetCodes
/** Close codes of refusals: an early retry would fail in the same way. */
const hopeless: ReadonlySet<number> = new Set([forbidden, otherProtocol, replaced, removed])

/** Keeps this compute joined to a gateway by one websocket, which it reconnects with exponential backoff. */
export class Joiner {
  readonly #options: JoinerOptions
  readonly #url: string
  readonly #waits: JoinWaits
  #socket: WebSocket | undefined
  #timer: NodeJS.Timeout | undefined
  #failures = 0
  /** The last log message; it is not repeated. */
  #logged = ''
  #isClosed = false

  constructor(options: JoinerOptions) {
    this.#options = options
    this.#url = joinUrl(options.url)
    this.#waits = options.waits ?? defaultWaits
    this.#connect()
  }

  /** Closes the connection; resolves when it is closed, after `closeMs` at most. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    const socket = this.#socket
    if (socket === undefined || socket.readyState === WebSocket.CLOSED) return
    // Not once() of node:events: `ws` emits an error when a connection is closed before it is open.
    const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()))
    closeSoon(socket, 1001, 'The compute is shutting down')
    await closed
  }

  #connect(): void {
    const { token, who, fetch, limits, timeouts } = this.#options
    const url = new URL(this.#url)
    // A gateway may have a program of its own for each compute.
    url.searchParams.set('compute_id', who.compute_id)
    const socket = new WebSocket(url, {
      headers: { Authorization: bytesOfText(`Bearer ${token}`) },
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
        // After all messages that were received together, and before anything else is waited for.
        later: (run) => void setImmediate(run),
        greeted: (version) => this.#log('info', 'joined the gateway', { version }),
        ended: (ending) => {
          end = ending
        },
      })
      tunnel = opened
      wire.onMessage((data) => opened.message(data))
    })
    socket.once('close', (code, reason) => {
      tunnel?.closed(code, reason.toString('utf8'))
      if (end !== undefined && Date.now() - openedAt >= this.#waits.steadyMs) this.#failures = 0
      const refusal = end === undefined ? refusals.get(error) : hopeless.has(end.code) ? end.reason : undefined
      this.#retry(refusal, end?.reason ?? delays.get(error) ?? error)
    })
  }

  #retry(refusal: string | undefined, reason: string): void {
    if (this.#isClosed) return
    this.#failures += 1
    const wait = waitAfter(refusal === undefined ? this.#failures : Number.POSITIVE_INFINITY, this.#waits)
    if (refusal !== undefined) this.#log('error', 'the gateway refuses this compute', { reason: refusal })
    else this.#log('warn', 'the gateway is not connected; the compute tries again', { reason })
    this.#timer = setTimeout(() => this.#connect(), wait)
  }

  #log(level: 'info' | 'warn' | 'error', message: string, details: object): void {
    const text = message + JSON.stringify(details)
    if (text === this.#logged) return
    this.#logged = text
    this.#options.log[level]({ gateway: this.#url, ...details }, message)
  }
}

/**
 * The wait after so many failures, ms. With jitter, also after the first one: the computes of a gateway that restarted must not all connect at
 * once. `chance`: from 0 to 1.
 */
export const waitAfter = (failures: number, { first, longest }: JoinWaits, chance = Math.random()): number =>
  Math.min(longest, first * 2 ** (failures - 1)) * (1 + chance)

/** The meaning of the errors with which `ws` reports that the gateway refused the upgrade. */
const refusals: ReadonlyMap<string, string> = new Map([
  ['Unexpected server response: 401', 'the token is not one of its join tokens'],
  ['Unexpected server response: 403', 'this compute is not allowed to join'],
  ['Unexpected server response: 404', 'no compute can join there'],
])

/** The meaning of the errors after which the compute tries again. */
const delays: ReadonlyMap<string, string> = new Map([
  ['Unexpected server response: 429', 'it has connected too often, or too many computes are connecting'],
])

/** Closes with a timeout: an unreachable gateway does not answer the close. */
function closeSoon(socket: WebSocket, code: number, reason: string): void {
  const timer = setTimeout(() => socket.terminate(), closeMs)
  socket.once('close', () => clearTimeout(timer))
  socket.close(code, reason)
}

/** The websocket URL of a gateway; `text` is its address, with or without the path of the websocket. */
export function joinUrl(text: string): string {
  const url = new URL(text)
  url.protocol = url.protocol.replace('http', 'ws')
  if (!url.pathname.endsWith(joinPath)) url.pathname = url.pathname.replace(/\/$/, '') + joinPath
  return url.href
}
