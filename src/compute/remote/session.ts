import { abortable } from '../../lib/async/abort.ts'
import { ignore } from '../../lib/async/ignore.ts'
import type { Compute, ComputeCapabilities } from '../../model/compute.ts'
import type { FeedLimit } from '../../model/feed-limit.ts'
import type { Load } from '../../model/host.ts'
import { causeOf } from './answer.ts'
import { ComputeRefused, differ, greetCompute, requireAnswer } from './greeting.ts'
import { followHeartbeat } from './heartbeat.ts'
import { askLoad, loadIn } from './load.ts'
import type { FleetTimeouts } from './timeouts.ts'
import type { Send } from './transport.ts'
import { Unreachable } from './unreachable.ts'

/** How the connections to computes are maintained; see `FleetOptions.healthChecks`. */
export type HealthChecks = false | 'continuous' | 'on-demand' | 'external'

/** How long health checks use the known capabilities of a compute, ms. */
const greetedMs = 120_000
/** Time between two reports of a new load, which every feed of the service gets, ms. */
const loadMs = 1000

export interface ComputeSessionOptions {
  /** The name in messages. */
  readonly name: string
  readonly send: Send
  /** Version of this service. */
  readonly version: string
  readonly timeouts: FleetTimeouts
  /** Of the feed of the compute, over all its sessions. */
  readonly limit: FeedLimit
  /** See `FleetOptions.healthChecks`. */
  readonly healthChecks: HealthChecks
  /** Why the service cannot connect yet. */
  readonly waiting?: string
  /** Called when a visible value changes. */
  readonly changed: () => void
  /** Called when the compute is unreachable: pending requests get no answer. */
  readonly unreachable: (reason: string) => void
  readonly warn: (message: string) => void
}

interface FoundCompute {
  readonly capabilities: ComputeCapabilities
  readonly feed?: ReadableStream<Uint8Array>
  readonly load?: Load | undefined
}

/** The state of a compute in a form that can be stored. */
export interface Remembered extends Pick<Compute, 'connected' | 'capabilities' | 'last_error'> {
  readonly load: Load | undefined
}

/**
 * The connection to a compute at one address with one set of credentials. Reading the feed keeps it open; retries use a backoff.
 * After repeated failures requests are refused at once, without an attempt.
 */
export class ComputeSession {
  readonly #options: ComputeSessionOptions
  capabilities: ComputeCapabilities = { version: null, node_types: [] }
  load: Load | undefined
  lastError: string | null
  #isConnected = false
  #connectedAt = 0
  #greetedAt = 0
  #failures = 0
  #retryAt = 0
  #attempt: Promise<void> | undefined
  /** Deadline of the current attempt; 0 without one. */
  #attemptUntil = 0
  /** Ends the current attempt, or the feed. */
  #link: AbortController | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #isClosed = false
  /** When the last change of the load was reported. */
  #loadAt = 0
  #telling: ReturnType<typeof setTimeout> | undefined
  #warnedOf: string | null = null

  constructor(options: ComputeSessionOptions) {
    this.#options = options
    this.lastError = options.waiting ?? null
  }

  get isConnected(): boolean {
    return this.#isConnected
  }

  /** Whether the service cannot connect yet; then `lastError` says why. */
  get isWaiting(): boolean {
    return this.#options.waiting !== undefined
  }

  /** Whether requests are refused without an attempt. */
  get isRefusing(): boolean {
    if (this.#isConnected || this.#failures < this.#options.timeouts.failures) return false
    return Date.now() < Math.max(this.#retryAt, this.#attemptUntil)
  }

  /** Whether an attempt may succeed: no recent attempt failed. */
  get shouldRetryConnect(): boolean {
    return !this.#isConnected && this.#options.waiting === undefined && !this.isRefusing
  }

  /** Connects unless connected. 409 with the reason, or 503 after repeated failures. */
  async ready(): Promise<void> {
    if (this.#isConnected) return
    if (this.isRefusing) {
      const waitMs = Math.min(this.#retryAt - Date.now(), this.#options.timeouts.retryMs[1])
      const seconds = Math.max(1, Math.ceil(waitMs / 1000))
      throw new Unreachable(503, `The compute ${this.#options.name} is not connected: ${this.lastError}`, {
        headers: { 'Retry-After': String(seconds) },
      })
    }
    try {
      await this.connect()
    } catch (cause) {
      throw new Unreachable(409, `The compute ${this.#options.name} cannot be used: ${(cause as Error).message}`, {
        cause,
      })
    }
  }

  /** Resolves when connected; rejects with ComputeRefused when another program answers, and with another error without an answer. */
  connect(): Promise<void> {
    if (this.#isConnected) return Promise.resolve()
    const { waiting, healthChecks } = this.#options
    if (waiting !== undefined) return Promise.reject(new Error(waiting))
    // Without health checks the attempt of another request may never end.
    if (healthChecks === false) return this.#try()
    this.#attempt ??= this.#try().finally(() => {
      this.#attempt = undefined
    })
    return this.#attempt
  }

  /** Connects in the background, with retries. */
  start(delayMs = 0): void {
    const { healthChecks } = this.#options
    if (healthChecks === false || healthChecks === 'external' || this.#isClosed) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(
      () => void this.connect().catch(ignore('the compute shows its last_error, and is tried again')),
      delayMs,
    )
  }

  /** Checks the health and the load of a compute without a feed. Never rejects. */
  async check(): Promise<void> {
    const { version, waiting } = this.#options
    if (this.#isClosed || waiting !== undefined) return
    if (!this.#isConnected) return this.connect().catch(ignore('the compute shows its last_error, and is tried again'))
    const link = new AbortController()
    // The timer of a finished check must not keep the process awake.
    const late = this.#bound(link)
    try {
      const found = await abortable(this.#again(link.signal), link.signal)
      if (this.#isClosed) return
      if (found.capabilities.version !== this.capabilities.version) this.#warnOf(found.capabilities.version, version)
      this.capabilities = found.capabilities
      this.#busy(found.load)
    } catch (error) {
      if (!this.#isClosed) this.lose(causeOf(error))
    } finally {
      clearTimeout(late)
    }
  }

  /** Restores a state that an earlier process found `ageMs` ago. A state that another program reports holds until it reports another one. */
  restoreState({ connected, capabilities, load, last_error }: Remembered, ageMs: number): void {
    this.#isConnected = connected
    this.capabilities = capabilities
    this.load = load
    this.lastError = last_error
    if (connected || last_error === null) return
    this.#failures = this.#options.timeouts.failures
    const { healthChecks, timeouts } = this.#options
    this.#retryAt = healthChecks === 'external' ? Number.POSITIVE_INFINITY : Date.now() - ageMs + timeouts.retryMs[0]
  }

  /** Resets the backoff: the next attempt starts at once. */
  resetBackoff(): void {
    this.#failures = 0
    this.#retryAt = 0
  }

  /** Marks the compute as lost. */
  lose(reason: string): void {
    if (!this.#isConnected) return
    if (Date.now() - this.#connectedAt >= this.#options.timeouts.steadyMs) this.#failures = 0
    this.#fail(reason)
  }

  /** Ends the session; a pending attempt rejects. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    clearTimeout(this.#telling)
    this.#link?.abort(new Error('it was changed or removed meanwhile'))
  }

  async #try(): Promise<void> {
    clearTimeout(this.#timer)
    const { timeouts, unreachable, healthChecks } = this.#options
    const link = new AbortController()
    if (healthChecks) this.#link = link
    const late = this.#bound(link)
    this.#attemptUntil = Date.now() + timeouts.connectMs
    try {
      this.#connected(link, await abortable(this.#begin(link.signal), link.signal))
    } catch (error) {
      link.abort()
      if (this.#isClosed) throw error
      const reason = causeOf(error)
      this.#fail(reason)
      if (error instanceof ComputeRefused) throw error
      unreachable(reason)
      throw new Error(reason, { cause: error })
    } finally {
      clearTimeout(late)
      this.#attemptUntil = 0
    }
  }

  #bound(link: AbortController): ReturnType<typeof setTimeout> {
    const { connectMs } = this.#options.timeouts
    return setTimeout(() => link.abort(new Error(`it did not answer in ${connectMs / 1000} s`)), connectMs)
  }

  /** A report of the load also proves that the compute is alive; without a report the full greeting follows. */
  async #again(signal: AbortSignal): Promise<FoundCompute> {
    if (this.load !== undefined && Date.now() - this.#greetedAt < greetedMs) {
      const load = await askLoad(this.#options.send, signal)
      if (load !== undefined) return { capabilities: this.capabilities, load }
    }
    return this.#begin(signal)
  }

  async #begin(signal: AbortSignal): Promise<FoundCompute> {
    const { send, version, healthChecks } = this.#options
    const capabilities = await greetCompute(send, version, signal)
    this.#greetedAt = Date.now()
    if (healthChecks === false) return { capabilities }
    if (healthChecks !== 'continuous') return { capabilities, load: await askLoad(send, signal) }
    const path = '/v2/compute/notifications'
    const response = await send({ method: 'GET', path, headers: { Accept: 'application/json' }, body: null, signal })
    requireAnswer(response)
    if (response.body === null) throw new ComputeRefused('its event feed is empty')
    return { capabilities, feed: response.body }
  }

  #connected(link: AbortController, { capabilities, feed, load }: FoundCompute): void {
    link.signal.throwIfAborted()
    const { timeouts, limit, changed, version } = this.#options
    this.#isConnected = true
    this.#connectedAt = Date.now()
    // An unsteady connection does not reset all failures.
    this.#failures = Math.min(this.#failures, 1)
    this.capabilities = capabilities
    this.lastError = null
    this.load = load
    this.#warnOf(capabilities.version, version)
    changed()
    if (feed === undefined) return
    const line = (it: object) => this.#onComputeEvent(it)
    void followHeartbeat(feed, { silenceMs: timeouts.silenceMs, limit, signal: link.signal, line }).then((reason) => {
      link.abort()
      if (this.#link === link && !this.#isClosed) this.lose(reason)
    })
  }

  #warnOf(theirs: string | null, ours: string): void {
    if (!differ(theirs, ours) || this.#warnedOf === theirs) return
    this.#warnedOf = theirs
    this.#options.warn(`The compute ${this.#options.name} runs version ${theirs}, this service ${ours}`)
  }

  #onComputeEvent({ action, event }: { action?: unknown; event?: unknown }): void {
    if (action === 'ping') this.#busy(loadIn(event))
  }

  #busy(load: Load | undefined): void {
    if (load === undefined) return
    const { cpu_usage_percent: cpu, memory_usage_percent: memory } = load
    if (this.load?.cpu_usage_percent === cpu && this.load.memory_usage_percent === memory) return
    this.load = load
    if (this.#telling !== undefined) return
    const tell = () => {
      this.#telling = undefined
      this.#loadAt = Date.now()
      this.#options.changed()
    }
    const waitMs = this.#loadAt + loadMs - Date.now()
    // A clock that was set back must not delay it for long.
    if (waitMs > 0) this.#telling = setTimeout(tell, Math.min(waitMs, loadMs))
    else tell()
  }

  #fail(reason: string): void {
    const { timeouts, changed } = this.#options
    const isNew = this.#isConnected || this.lastError !== reason
    this.#isConnected = false
    this.#link?.abort()
    this.#failures += 1
    this.load = undefined
    clearTimeout(this.#telling)
    this.#telling = undefined
    this.lastError = reason
    const [first, longest] = timeouts.retryMs
    // With jitter: computes that were lost together must not return together.
    const wait = Math.min(first * 2 ** (this.#failures - 1), longest) * (0.5 + Math.random() / 2)
    this.#retryAt = Date.now() + wait
    if (this.#options.healthChecks === 'continuous') this.start(wait)
    if (isNew) changed()
  }
}
