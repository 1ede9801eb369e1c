import { ApiError } from '../errors/api-error.ts'
import type { MetricFamily } from '../model/metrics.ts'
import { type BucketRate, Buckets } from './buckets.ts'
import { networkOf } from './network.ts'

/** How many addresses, pairs of address and name, and wrong credentials are remembered, each. */
const maxRemembered = 10_000
/** An address may have so many times the wrong log-ins of one name. */
const namesOfAddress = 10
/** How long a name that logged in from an address is not held up by other names there, ms. */
const knownMs = 3_600_000
/** A burst that paused for so long is logged as a new one, ms. */
const burstPauseMs = 60_000

/** By what way somebody tried to log in. */
export const loginKinds = ['basic', 'bearer', 'ticket', 'join', 'session'] as const
export type LoginKind = (typeof loginKinds)[number]

/** An attempt to log in. */
export interface Login {
  readonly kind: LoginKind
  /** IP address of the client; empty: not known, and not limited. */
  readonly address: string
  /** Who it says it is. */
  readonly name: string
  /** What is tried out; it is not kept. */
  readonly secret: string
}

export interface LoginLimitOptions {
  /** Wrong log-ins a minute for one name from one address; 0: no limit. Asked for every log-in. */
  readonly perMinute: () => number
  /** Told once when the log-ins of an address begin to be refused. */
  readonly limited?: (login: Pick<Login, 'kind' | 'address'>) => void
  readonly now?: () => number
  /**
   * Counts a wrong log-in by address and name where further processes count theirs; false: there were too many. Without it every
   * process counts for itself.
   */
  readonly counted?: (key: string) => Promise<boolean>
}

/**
 * Bounds wrong log-ins by address and name together, and by address. A name alone is never locked. Once the limit is reached the
 * credentials are not compared any more, so that a right guess is not told apart; credentials that cannot be guessed (tokens that the
 * service made, and tickets) are always compared. See docs/decisions/wrong-log-ins.md.
 */
export class LoginLimit {
  readonly #options: LoginLimitOptions
  readonly #now: () => number
  readonly #pairs: Buckets
  readonly #addresses: Buckets
  /** By address and a digest of what was tried. */
  readonly #guesses: Buckets
  /** Until when a pair of address and name is known, ms. */
  readonly #known = new Map<string, number>()
  /** Until when the burst of an address lasts, ms. */
  readonly #bursts = new Map<string, number>()
  readonly #wrong = counters()
  readonly #refused = counters()
  #seed: number | undefined

  constructor(options: LoginLimitOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#pairs = new Buckets(maxRemembered, this.#now)
    this.#addresses = new Buckets(maxRemembered, this.#now)
    this.#guesses = new Buckets(maxRemembered, this.#now)
  }

  /**
   * What `check` finds for the credentials; undefined: they are wrong, which is counted. 429 when there were too many wrong ones;
   * `check` is not called then, unless the credentials cannot be guessed. What it finds at once costs right log-ins nothing,
   * however many come together.
   */
  async attempt<T>(login: Login, check: () => T | undefined | Promise<T | undefined>): Promise<T | undefined> {
    const perMinute = this.#options.perMinute()
    if (perMinute <= 0 || login.address === '') return this.#counted(login, await check())
    if (isUnguessable(login)) {
      const found = await check()
      if (found === undefined) this.#allowed(login, perMinute).take()
      return this.#counted(login, found)
    }
    const tries = this.#allowed(login, perMinute)
    const finding = check()
    // Taken before it is known to be wrong: many that come at once are all counted.
    if (finding === undefined || finding instanceof Promise) tries.take()
    let found: T | undefined
    try {
      found = await finding
    } catch (error) {
      tries.giveBack()
      throw error
    }
    if (found !== undefined) {
      if (finding instanceof Promise) tries.giveBack()
      remember(this.#known, tries.pair, this.#now() + knownMs)
    } else if ((await this.#options.counted?.(tries.pair)) === false) tries.exhaust()
    return this.#counted(login, found)
  }

  /**
   * How long a log-in has to wait, in whole seconds; it is counted as refused then. 0: it may be tried. For a runtime that can answer
   * before it has looked at the rest of a request.
   */
  refusal(login: Login): number {
    const perMinute = this.#options.perMinute()
    if (perMinute <= 0 || login.address === '' || isUnguessable(login)) return 0
    const { wait, address } = this.#tries(login, perMinute)
    if (wait > 0) this.#countRefusal(login, address)
    return wait
  }

  /** How much is remembered: addresses, names and guesses. */
  get remembered(): number {
    return this.#pairs.size + this.#addresses.size + this.#guesses.size + this.#known.size + this.#bursts.size
  }

  /** What was counted until now. */
  families(): MetricFamily[] {
    const samples = (counts: Readonly<Record<LoginKind, number>>) =>
      loginKinds.map((kind) => ({ labels: { kind }, value: counts[kind] }))
    return [
      {
        name: 'patchbay_login_failures_total',
        help: 'Wrong log-ins, by the kind of the credentials.',
        type: 'counter',
        samples: samples(this.#wrong),
      },
      {
        name: 'patchbay_login_refusals_total',
        help: 'Log-ins that were refused because too many from that address were wrong, by the kind of the credentials.',
        type: 'counter',
        samples: samples(this.#refused),
      },
    ]
  }

  #counted<T>({ kind }: Login, found: T | undefined): T | undefined {
    if (found === undefined) this.#wrong[kind] += 1
    return found
  }

  /** The tries that are left for a log-in; 429 when there are none. */
  #allowed(login: Login, perMinute: number): Tries {
    const tries = this.#tries(login, perMinute)
    if (tries.wait === 0) return tries
    this.#countRefusal(login, tries.address)
    throw new ApiError(429, tooManyLogins(login, tries.wait), { headers: { 'Retry-After': String(tries.wait) } })
  }

  #tries(login: Login, perMinute: number): Tries {
    const address = networkOf(login.address)
    const pair = `${address} ${login.kind} ${login.name.slice(0, 100)}`
    const guess = `${address} ${login.kind} ${this.#digest(`${login.name}\n${login.secret}`)}`
    const ofName: BucketRate = { perSecond: perMinute / 60, burst: perMinute }
    const ofAddress: BucketRate = { perSecond: (namesOfAddress * perMinute) / 60, burst: namesOfAddress * perMinute }
    // A program that goes on with an old password guesses nothing new: it is held up itself, and not who has the right one.
    const isRepeated = this.#guesses.has(guess)
    const isKnown = (this.#known.get(pair) ?? 0) > this.#now()
    const wait =
      this.#guesses.wait(guess, ofName) ||
      (isRepeated ? 0 : this.#pairs.wait(pair, ofName)) ||
      (isKnown ? 0 : this.#addresses.wait(address, ofAddress))
    return {
      ...{ wait, address, pair },
      take: () => {
        this.#guesses.take(guess, ofName)
        if (!isRepeated) this.#pairs.take(pair, ofName)
        this.#addresses.take(address, ofAddress)
      },
      exhaust: () => {
        while (this.#pairs.take(pair, ofName)) {
          // Until none is left.
        }
      },
      giveBack: () => {
        this.#guesses.delete(guess)
        if (!isRepeated) this.#pairs.giveBack(pair, ofName)
        this.#addresses.giveBack(address, ofAddress)
      },
    }
  }

  #countRefusal({ kind, address: whole }: Login, address: string): void {
    this.#refused[kind] += 1
    const now = this.#now()
    const isNew = (this.#bursts.get(address) ?? 0) <= now
    remember(this.#bursts, address, now + burstPauseMs)
    if (isNew) this.#options.limited?.({ kind, address: whole })
  }

  /** Another one in every process, so that nothing can be learnt from where two texts meet. */
  #digest(text: string): string {
    this.#seed ??= crypto.getRandomValues(new Uint32Array(1))[0] ?? 0
    let [a, b] = [0xdeadbeef ^ this.#seed, 0x41c6ce57 ^ this.#seed]
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index)
      a = Math.imul(a ^ code, 2654435761)
      b = Math.imul(b ^ code, 1597334677)
    }
    a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909)
    b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909)
    return `${(a >>> 0).toString(36)}.${(b >>> 0).toString(36)}`
  }
}

/** What a client is told that has to wait, seconds. */
export const tooManyLogins = ({ address }: Pick<Login, 'address'>, seconds: number): string =>
  `Too many wrong log-ins from ${address}; wait ${seconds} s`

interface Tries {
  /** Until there is one, whole seconds; 0: there is. */
  readonly wait: number
  readonly address: string
  readonly pair: string
  take(): void
  giveBack(): void
  /** Takes all that are left for the name. */
  exhaust(): void
}

/** Tokens that the service made have at least 256 random bits, tickets 192. */
export const madeToken = /^pb_[0-9a-f]{16}_[\w.-]{64,}$/

const isUnguessable = ({ kind, secret }: Login): boolean => kind === 'ticket' || madeToken.test(secret)

const counters = (): Record<LoginKind, number> => ({ basic: 0, bearer: 0, ticket: 0, join: 0, session: 0 })

function remember(map: Map<string, number>, key: string, value: number): void {
  map.delete(key)
  map.set(key, value)
  for (const oldest of map.keys()) {
    if (map.size <= maxRemembered) break
    map.delete(oldest)
  }
}
