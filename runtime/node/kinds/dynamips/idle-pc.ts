import { setTimeout as delay } from 'node:timers/promises'
import { ApiError, conflict } from '../../../../src/errors.ts'
import { type Hypervisor, HypervisorError, type Reply } from './hypervisor.ts'
import type { LoadWatch } from './load.ts'

/** Milliseconds that pass, and a wait for some of them; a test has its own. */
export interface Clock {
  now(): number
  pause(ms: number, signal: AbortSignal): Promise<void>
}

export interface IdlePcBounds {
  /** How long a router that was started here boots before it is measured: by then it waits for something to do. */
  readonly bootMs: number
  /** Between the two looks at the processor time. */
  readonly sampleMs: number
  /** A value that brings the load below so many percent of one processor is the answer. */
  readonly idlePercent: number
  /** Of one command. */
  readonly commandMs: number
  /** Of the command that takes the samples, which lasts 10 s on an idle host. */
  readonly measureMs: number
  /** Of all together. */
  readonly totalMs: number
}

export const idlePcBounds: IdlePcBounds = {
  bootMs: 20_000,
  sampleMs: 3000,
  idlePercent: 70,
  commandMs: 10_000,
  measureMs: 60_000,
  totalMs: 240_000,
}

export interface IdlePcOptions {
  readonly client: Pick<Hypervisor, 'run' | 'isOpen'>
  /** Of the router, as `vm create` was told it. */
  readonly name: string
  /** Aborted when nobody waits for the answer any more. */
  readonly signal?: AbortSignal | undefined
  readonly bounds?: Partial<IdlePcBounds>
  readonly clock?: Clock
  /** Whether dynamips is ended when this fails: then a router need not be stopped before, which waits for the measurement. */
  readonly isThrownAway?: boolean
  /**
   * Begins to watch the load that dynamips makes; undefined where nothing can. By default dynamips is asked itself (`vm
   * cpu_usage`), which says whole seconds, and on a busy host what it was given and not what it would take.
   */
  readonly watchLoad?: () => LoadWatch | undefined
}

/** Values that may be the idle PC of a router, as `0x60008120 [47]`: where it was found, and how often in 1000 looks. */
export function idleProposals(options: IdlePcOptions): Promise<string[]> {
  return onRunningRouter(options, (router) => router.proposals())
}

/** The first proposal that really brings the load of the host down, as `0x60008120`; 409 when none does. */
export function autoIdlePc(options: IdlePcOptions): Promise<string> {
  return onRunningRouter(options, async (router) => {
    // Longer ones are outside of what IOS runs in, and no client could set them.
    const proposals = (await router.proposals()).flatMap((it) => /^0x[0-9a-f]{8}(?=\s|$)/i.exec(it)?.[0] ?? [])
    const loads: string[] = []
    for (const value of proposals) {
      const percent = await router.loadWith(value)
      if (percent < router.bounds.idlePercent) return value
      loads.push(`${value} (${Math.round(percent)} %)`)
    }
    const found = loads.length === 0 ? 'dynamips proposed none' : `none of those proposed helps: ${loads.join(', ')}`
    throw conflict(`No idle-PC value was found for this image: ${found}`)
  })
}

/** Has the router run with no idle PC, and stops it again when it did not run before. */
async function onRunningRouter<T>(options: IdlePcOptions, measure: (router: Router) => Promise<T>): Promise<T> {
  const bounds = { ...idlePcBounds, ...options.bounds }
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), bounds.totalMs)
  const signal = AbortSignal.any([late.signal, ...(options.signal === undefined ? [] : [options.signal])])
  const router = new Router(options, bounds, signal)
  try {
    const wasRunning = await router.isRunning()
    let answer: T
    try {
      await router.clear(wasRunning)
      if (!wasRunning) await router.start()
      answer = await measure(router)
    } catch (error) {
      // Also when the start was not answered, and when nobody waits any more.
      if (options.isThrownAway !== true) await (wasRunning ? router.forget() : router.stop()).catch(() => {})
      throw error
    }
    if (!wasRunning) await router.stop()
    return answer
  } catch (error) {
    options.signal?.throwIfAborted()
    if (late.signal.aborted) {
      const message = `The idle-PC value was not found within ${bounds.totalMs / 1000} s`
      throw new ApiError(408, message, { cause: error })
    }
    throw error instanceof HypervisorError ? conflict(error.message, { cause: error }) : error
  } finally {
    clearTimeout(timer)
  }
}

const statuses = ['inactive', 'shutting down', 'running', 'suspended'] as const
/** The one processor that a router has. */
const cpu = 0

class Router {
  readonly bounds: IdlePcBounds
  readonly #options: IdlePcOptions
  readonly #signal: AbortSignal
  readonly #clock: Clock

  constructor(options: IdlePcOptions, bounds: IdlePcBounds, signal: AbortSignal) {
    this.#options = options
    this.bounds = bounds
    this.#signal = signal
    this.#clock = options.clock ?? realClock
  }

  /** 409 when it neither runs nor can be started. */
  async isRunning(): Promise<boolean> {
    const { text, lines } = await this.#run('vm get_status')
    const status = statuses[Number(lines[0] ?? text)]
    if (status === 'inactive' || status === 'running') return status === 'running'
    throw conflict(`The router is ${status ?? 'in a state that is not known'}; stop or resume it first`)
  }

  /** Without an idle PC it is measured as it is; dynamips does not measure a router that has one. */
  async clear(isRunning = true): Promise<void> {
    if (isRunning) await this.#run('vm set_idle_pc_online', [cpu, '0x0'])
    else await this.#run('vm set_idle_pc', ['0x0'])
  }

  async start(): Promise<void> {
    await this.#run('vm start')
    await this.#clock.pause(this.bounds.bootMs, this.#signal)
  }

  async stop(): Promise<void> {
    await this.#runAnyway('vm stop')
  }

  /** A router that ran before would otherwise be left with the last value that was tried. */
  async forget(): Promise<void> {
    await this.#runAnyway('vm set_idle_pc_online', [cpu, '0x0'])
  }

  async proposals(): Promise<string[]> {
    return [...(await this.#run('vm get_idle_pc_prop', [cpu], this.bounds.measureMs)).lines]
  }

  /** Percent of one processor that it takes with a value. */
  async loadWith(value: string): Promise<number> {
    await this.#run('vm set_idle_pc_online', [cpu, value])
    const watch = this.#options.watchLoad?.()
    if (watch !== undefined) {
      await this.#clock.pause(this.bounds.sampleMs, this.#signal)
      return watch()
    }
    const [seconds, since] = [await this.#processorSeconds(), this.#clock.now()]
    await this.#clock.pause(this.bounds.sampleMs, this.#signal)
    const used = Math.abs((await this.#processorSeconds()) - seconds)
    const elapsed = Math.max(1, this.#clock.now() - since) / 1000
    return Math.min(100, (used * 100) / elapsed)
  }

  async #processorSeconds(): Promise<number> {
    const { lines } = await this.#run('vm cpu_usage', [cpu])
    const seconds = Number(lines[0])
    if (lines[0] !== undefined && Number.isFinite(seconds)) return seconds
    throw new HypervisorError('protocol', 'vm cpu_usage: dynamips did not say how much it used')
  }

  /** Whether or not somebody still waits: after what dynamips is at, which has its own bound. */
  async #runAnyway(command: string, values: readonly (string | number)[] = []): Promise<void> {
    const { client, name } = this.#options
    // A dynamips that is gone has taken the router along.
    if (client.isOpen) await client.run(command, [name, ...values], { ms: this.bounds.commandMs })
  }

  #run(command: string, values: readonly (string | number)[] = [], ms = this.bounds.commandMs): Promise<Reply> {
    const { client, name } = this.#options
    return client.run(command, [name, ...values], { ms, signal: this.#signal })
  }
}

const realClock: Clock = {
  now: () => performance.now(),
  pause: (ms, signal) => delay(ms, undefined, { signal }),
}
