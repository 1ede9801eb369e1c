import { onAbort } from '../../lib/async/abort.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { relay } from '../../lib/async/relay.ts'
import type { SharedTimer } from '../../lib/async/shared-timer.ts'
import { withTimeout } from '../../lib/async/timeout.ts'
import { ApiError } from '../../lib/errors/api-error.ts'
import type { Socket } from '../../lib/http/socket.ts'
import { type Via, viaHeader } from '../../model/access/caller.ts'
import { type Compute, type ComputeRecord, tunnelled } from '../../model/compute.ts'
import { FeedLimit } from '../../model/feed-limit.ts'
import { computeNameOf } from './address.ts'
import { causeOf } from './answer.ts'
import { ComputeRefused, greetCompute } from './greeting.ts'
import { awaitingLate } from './late-answer.ts'
import { ComputeSession, type HealthChecks } from './session.ts'
import type { FleetTimeouts } from './timeouts.ts'
import {
  type ComputeAddress,
  type ComputeAnswer,
  ConnectionLost,
  isRefusal,
  type OpenSocket,
  type Outgoing,
  type Send,
  type Transport,
} from './transport.ts'
import { Unreachable } from './unreachable.ts'

export interface RemoteComputeOptions {
  readonly transport: Transport
  readonly sockets: (address: ComputeAddress) => OpenSocket | undefined
  readonly version: string
  readonly timeouts: FleetTimeouts
  readonly healthChecks: HealthChecks
  /** See `FleetOptions.waitUntil`: tells requests that take long. */
  readonly slow: SharedTimer | undefined
  /** Called when a visible value changes. */
  readonly changed: (compute: RemoteCompute) => void
  readonly warn: (message: string) => void
}

/** How long a request waits for an answer before a probe of the compute, and the timeout of the probe, ms. */
export const quietMs = 10_000
const answerMs = 5000
/** Timeout of the answer to a fully sent request, ms; the timeouts in the compute are shorter. */
const maxWorkMs = 600_000

type Flying = Pick<Outgoing, 'signal'> & Partial<Pick<Outgoing, 'body'>>

/** A request under way. */
interface Flight {
  abort(reason: ApiError): void
}

/** A compute on another machine: its record, its session, and its pending requests. */
export class RemoteCompute {
  readonly #options: RemoteComputeOptions
  readonly #flights = new Set<Flight>()
  readonly #limit = new FeedLimit()
  #answering: Promise<void> | undefined
  #record: ComputeRecord
  #send: Send
  #open: OpenSocket | undefined
  #session: ComputeSession
  /** When the connection was lost, or the service first tried to connect, ms since 1970; undefined while connected. */
  #lostAt: number | undefined = Date.now()

  /** `waiting`: why the service cannot connect yet. */
  constructor(record: ComputeRecord, options: RemoteComputeOptions, waiting?: string) {
    this.#options = options
    this.#record = record
    this.#send = senderOf(this.#options.transport, record)
    this.#open = openerOf(this.#options.sockets, record)
    this.#session = this.#newSession(waiting)
  }

  get record(): ComputeRecord {
    return this.#record
  }

  get session(): ComputeSession {
    return this.#session
  }

  get name(): string {
    return computeNameOf(this.#record)
  }

  get state(): 'connected' | 'disconnected' | 'refusing' {
    if (this.#session.isConnected) return 'connected'
    return this.#session.isRefusing ? 'refusing' : 'disconnected'
  }

  /** Since when it is not connected, ms since 1970; undefined while it is connected. */
  get disconnectedSince(): number | undefined {
    return this.#session.isConnected ? undefined : this.#lostAt
  }

  show(): Compute {
    const { compute_id, protocol, host, port, user, accepts_projects = true, weight = 1, labels = [] } = this.#record
    const { isConnected, load, capabilities, lastError } = this.#session
    const since = this.disconnectedSince
    return {
      compute_id,
      name: this.name,
      protocol,
      host,
      port,
      user,
      connected: isConnected,
      accepts_projects,
      weight,
      labels,
      cpu_usage_percent: load?.cpu_usage_percent ?? null,
      memory_usage_percent: load?.memory_usage_percent ?? null,
      capabilities,
      ...(since !== undefined && { disconnected_since: new Date(since).toISOString() }),
      last_error: lastError,
    }
  }

  /** See `Session.connect`; earlier failures do not count. */
  connect(): Promise<void> {
    this.#session.resetBackoff()
    return this.#session.connect()
  }

  /** See `Session.restoreState`. */
  restoreState(found: Compute, ageMs: number): void {
    const { cpu_usage_percent: cpu, memory_usage_percent: memory } = found
    const load = cpu === null || memory === null ? undefined : { cpu_usage_percent: cpu, memory_usage_percent: memory }
    this.#session.restoreState({ ...found, load }, ageMs)
    const since = Date.parse(found.disconnected_since ?? '')
    if (this.#session.isConnected) this.#lostAt = undefined
    else if (!Number.isNaN(since)) this.#lostAt = since
  }

  /** Replaces the record; the connection stays. */
  keep(record: ComputeRecord): void {
    this.#record = record
  }

  /** Replaces the record and the session. Pending requests continue. */
  change(record: ComputeRecord, waiting?: string): void {
    this.#record = record
    this.#send = senderOf(this.#options.transport, record)
    this.#open = openerOf(this.#options.sockets, record)
    this.#lostAt ??= Date.now()
    this.#session.close()
    this.#session = this.#newSession(waiting)
    this.#session.start()
  }

  /** The tunnel is new, or closed (`waiting`): as `change`, but the capabilities stay known. */
  rejoin(waiting?: string): void {
    const { capabilities } = this.#session
    if (waiting !== undefined) this.#giveUp(waiting)
    this.change(this.#record, waiting)
    this.#session.capabilities = capabilities
    this.#options.changed(this)
  }

  /**
   * Connects, then sends a request with the credentials of the compute. 409 when it cannot be reached, 503 after repeated failures,
   * 504 when the connection is lost before the answer.
   */
  send(request: Outgoing): Promise<ComputeAnswer> {
    const { slow } = this.#options
    if (slow !== undefined)
      return this.#session.isConnected ? this.#wait(request, slow) : this.#ready().then(() => this.#wait(request, slow))
    return this.#reach(request, async (signal, done) => tracked(await this.#send({ ...request, signal }), signal, done))
  }

  /** Opens a websocket likewise; 501 in a runtime without them. It is closed when the compute is unreachable. */
  openSocket(request: Parameters<OpenSocket>[0]): Promise<Socket | ComputeAnswer> {
    return this.#reach(request, async (signal, done) => {
      if (this.#open === undefined) throw new ApiError(501, 'This service cannot open websockets to computes')
      const opened = await this.#open({ ...request, signal })
      if (isRefusal(opened)) return tracked(opened, signal, done)
      if (done !== undefined) opened.onClose(done)
      return opened
    })
  }

  close(): void {
    this.#session.close()
    this.#giveUp('it was removed')
  }

  /**
   * The request is aborted when the compute becomes unreachable. `done` is called at the end of the body; without it the request
   * can only be aborted before the head of the answer.
   */
  async #reach<T>(request: Flying, ask: (signal: AbortSignal, done?: () => void) => Promise<T>): Promise<T> {
    if (!this.#session.isConnected) await this.#ready()
    const session = this.#session
    const { signal } = request
    const over = new AbortController()
    const land = onAbort(signal, () => over.abort(signal.reason))
    const done = () => {
      land()
      this.#flights.delete(over)
    }
    this.#flights.add(over)
    const unwatch = this.#watch(request, over)
    try {
      return await ask(over.signal, this.#options.healthChecks ? done : undefined)
    } catch (cause) {
      done()
      throw this.#failure(over.signal.aborted ? over.signal.reason : cause, request, session)
    } finally {
      unwatch()
      if (!this.#options.healthChecks) this.#flights.delete(over)
    }
  }

  /**
   * Sends a request to a connected compute where the work ends with its request: a compute that is unreachable ends only the wait. An
   * AbortController with a listener would take a tenth of the CPU time of a small request in workerd. No list has the request: the end of its
   * client would leave it there.
   */
  #wait(request: Outgoing, slow: SharedTimer): Promise<ComputeAnswer> {
    const session = this.#session
    const began = Date.now()
    return new Promise((resolve, reject) => {
      const sending = this.#send(request)
      const waiting = slow.wait()
      let isDone = false
      let unwatch: (() => void) | undefined
      const done = () => {
        isDone = true
        waiting.cancel()
        unwatch?.()
      }
      const abort = (reason: ApiError) => {
        done()
        reject(reason)
      }
      waiting.fired.then(() => {
        if (!isDone) unwatch = this.#watch(request, { abort }, began)
      }, ignore('it never rejects'))
      sending.then(
        (answer) => {
          done()
          resolve(answer)
        },
        (cause: unknown) => {
          // The end of a request that was given up says nothing of the compute, which may be there again.
          if (isDone) return
          done()
          reject(this.#failure(cause, request, session))
        },
      )
    })
  }

  /** Aborts a flight when the compute is unreachable, or works for too long. `began`: ms since 1970. The result ends the watch. */
  #watch({ body }: Flying, flight: Flight, began = Date.now()): () => void {
    const until = body instanceof ReadableStream ? Number.POSITIVE_INFINITY : began + maxWorkMs
    const check = () => {
      if (Date.now() < until) return void this.#requireThere(flight)
      flight.abort(new ApiError(504, `The compute ${this.name} did not answer in ${maxWorkMs / 60_000} minutes`))
    }
    let later: ReturnType<typeof setInterval> | undefined
    const first = setTimeout(
      () => {
        later = setInterval(check, quietMs)
        check()
      },
      began + quietMs - Date.now(),
    )
    return () => {
      clearTimeout(first)
      clearInterval(later)
    }
  }

  /** What a request is told when its work failed. Without an answer by the compute the connection counts as lost. */
  #failure(error: unknown, { signal }: Flying, session: ComputeSession): unknown {
    if (error instanceof ApiError || signal.aborted) return error
    const reason = causeOf(error)
    if (error instanceof ConnectionLost) return goneAway(this.name, reason, error)
    session.lose(reason)
    return new Unreachable(409, `The compute ${this.name} cannot be reached: ${reason}`, { cause: error })
  }

  /** Probes a compute that has not answered for some time: it may be busy, or unreachable. */
  async #requireThere(flight: Flight): Promise<void> {
    const session = this.#session
    try {
      // Without health checks the pending attempt of another request may never end.
      if (!this.#options.healthChecks) return await this.#answers()
      this.#answering ??= this.#answers().finally(() => {
        this.#answering = undefined
      })
      await this.#answering
    } catch (error) {
      const reason = causeOf(error)
      session.lose(reason)
      flight.abort(goneAway(this.name, reason))
    }
  }

  /** Rejects when nothing answers in time. */
  async #answers(): Promise<void> {
    const over = new AbortController()
    const greeting = greetCompute(this.#send, this.#options.version, over.signal).catch((error: unknown) => {
      if (!(error instanceof ComputeRefused)) throw error
    })
    try {
      await withTimeout(greeting, answerMs, () => {
        throw new Error(`it did not answer in ${(quietMs + answerMs) / 1000} s`)
      })
    } finally {
      over.abort()
    }
  }

  async #ready(): Promise<void> {
    for (;;) {
      const session = this.#session
      try {
        return await session.ready()
      } catch (error) {
        // With another session the record was changed meanwhile: try that one.
        if (session === this.#session) throw error
      }
    }
  }

  #giveUp(reason: string): void {
    for (const flight of this.#flights) flight.abort(goneAway(this.name, reason))
  }

  #newSession(waiting: string | undefined): ComputeSession {
    const { version, timeouts, healthChecks, changed, warn } = this.#options
    return new ComputeSession({
      name: this.name,
      send: this.#send,
      version,
      timeouts,
      limit: this.#limit,
      healthChecks,
      ...(waiting !== undefined && { waiting }),
      changed: () => {
        this.#lostAt = this.#session.isConnected ? undefined : (this.#lostAt ?? Date.now())
        changed(this)
      },
      unreachable: (reason) => this.#giveUp(reason),
      warn,
    })
  }
}

const goneAway = (name: string, reason: string, cause?: Error): ApiError =>
  new ApiError(504, `Lost the connection to compute ${name} before it responded: ${reason}`, { cause })

/** Sends requests with the credentials of the compute. Answers may come late, except by a tunnel, which has its own pings. */
export function senderOf(transport: Transport, record: ComputeRecord): Send {
  const direct = transport(record)
  const own = { 'Accept-Encoding': 'identity', ...credentialsOf(record) }
  const headersOf = (headers: Outgoing['headers']) => ({ ...via, ...headers, ...own })
  if (record.protocol !== tunnelled) return awaitingLate(direct, computeNameOf(record), headersOf)
  return (request) => direct({ ...request, headers: headersOf(request.headers) })
}

/** The default role. This header also takes the request out of local mode at the compute. */
const via = { [viaHeader]: 'user' satisfies Via }

function openerOf(sockets: RemoteComputeOptions['sockets'], record: ComputeRecord): OpenSocket | undefined {
  const open = sockets(record)
  const own = credentialsOf(record)
  return open && ((request) => open({ ...request, headers: { ...via, ...request.headers, ...own } }))
}

const credentialsOf = ({ user, password }: ComputeRecord): Record<string, string> =>
  user === null ? {} : { Authorization: `Basic ${base64(`${user}:${password ?? ''}`)}` }

/** Basic credentials are UTF-8 (RFC 7617). */
const base64 = (text: string): string => btoa(String.fromCharCode(...new TextEncoder().encode(text)))

/** The same answer; calls `done` at any end of its body. The signal aborts the body. */
function tracked(answer: ComputeAnswer, signal: AbortSignal, done: (() => void) | undefined): ComputeAnswer {
  if (done === undefined) return answer
  // Reading `body` would wrap the bytes in a stream.
  const body = answer.whole === undefined ? answer.body : null
  if (body !== null)
    return { status: answer.status, headers: answer.headers, body: relay(body, { signal, onEnd: done }) }
  done()
  return answer
}
