import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { libcIfAny } from './libc.ts'
import { dropProgramPages } from './program-pages.ts'

/** Time between two looks, and time without a request after which memory is given back, ms. */
const lookMs = 2000
const idleMs = 1500
/** Work after which it is worth while: requests, or the start itself. */
const leastRequests = 50

/**
 * Gives memory back to the system while no requests come. V8 collects only when its heap is full, so a service that rests would keep
 * what its start and its last load have left behind. A collection takes about 50 ms.
 */
export class IdleMemory {
  readonly #collect: () => void
  readonly #timer: NodeJS.Timeout
  /** Requests since the last collection; the start counts as many. */
  #requests = 0
  #lastAt = performance.now()

  /** `collect`: collects garbage and gives free pages back; default: those of V8 and of malloc. */
  constructor(collect = collector()) {
    this.#collect = collect
    this.#timer = setInterval(() => this.#look(), lookMs)
    this.#timer.unref()
  }

  /** Called when the service has started: what the start has left behind is collected when it rests. */
  recordStart(): void {
    this.#requests = leastRequests
    this.#lastAt = performance.now()
  }

  /** Takes note of a request. */
  recordRequest(): void {
    this.#requests += 1
    this.#lastAt = performance.now()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    if (this.#requests < leastRequests || performance.now() - this.#lastAt < idleMs) return
    this.#requests = 0
    this.#collect()
  }
}

/**
 * The collector of V8, which Node gives to programs only with this flag; it is not left set for others. glibc keeps what its arenas
 * have free, here 2 MB after a start, until it is told to trim them.
 */
function collector(): () => void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options: object) => void
  setFlagsFromString('--no-expose-gc')
  return () => {
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    const libc = libcIfAny()
    libc?.malloc_trim?.(0)
    if (libc !== undefined) dropProgramPages(libc)
  }
}
