import type { BucketRate } from '../../lib/async/bucket.ts'
import { Buckets } from '../../lib/async/buckets.ts'
import { setNewest } from '../../lib/async/newest.ts'
import { thenSync } from '../../lib/async/then-sync.ts'
import { retryLater } from '../../lib/errors/api-error.ts'
import { networkOf } from '../../lib/http/network.ts'
import type { MetricFamily } from '../../model/metrics.ts'

/** Most entries of each table: addresses, pairs of address and name, wrong credentials. */
const maxRemembered = 10_000
/** The limit of an address is this multiple of the limit of a name. */
const namesOfAddress = 10
/** How long the limit of an address spares a name that logged in from it, ms. */
const knownMs = 3_600_000
/** After a pause of this length a burst is logged again, ms. */
const burstPauseMs = 60_000

/** The ways to log in. */
const loginKinds = ['basic', 'bearer', 'ticket', 'join', 'session', 'ssh'] as const
export type LoginKind = (typeof loginKinds)[number]

/** An attempt to log in. */
export interface LoginAttempt {
  readonly kind: LoginKind
  /** IP address of the client; empty: unknown, and not limited. */
  readonly address: string
  /** The name that the client gives. */
  readonly name: string
  /** The password, token or public key; it is not stored. */
  readonly secret: string
}

export interface LoginLimitOptions {
  /** Wrong log-ins a minute for one name from one address; 0: no limit. Read for every log-in. */
  readonly perMinute: () => number
  /** Called once when the service begins to refuse the log-ins of an address. */
  readonly limited?: (login: Pick<LoginAttempt, 'kind' | 'address'>) => void
  readonly now?: () => number
  /** Counts a wrong log-in in a counter that processes share; false: too many. Without it every process counts its own. */
  readonly counted?: (key: string) => Promise<boolean>
}

/**
 * Limits wrong log-ins by address and name together, and by address; never by name alone. Above the limit the service does not
 * compare the credentials, so a right guess looks like a wrong one. Credentials that cannot be guessed (tokens that the service
 * made, and tickets) are always compared. See docs/decisions/wrong-log-ins.md.
 */
export class LoginLimit {
  readonly #options: LoginLimitOptions
  readonly #now: () => number
  readonly #pairs: Buckets
  readonly #addresses: Buckets
  /** Wrong credentials, by address and digest. */
  readonly #guesses: Buckets
  /** When the entry of a pair of address and name expires, ms. */
  readonly #known = new Map<string, number>()
  /** When the burst of an address ends, ms. */
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
   * The result of `check`; undefined: the credentials are wrong, and are counted. 429 after too many wrong log-ins: then `check` is
   * not called, unless the credentials cannot be guessed. With a synchronous `check` simultaneous right log-ins are not counted.
   */
  attempt<T>(
    login: LoginAttempt,
    check: () => T | undefined | Promise<T | undefined>,
  ): T | undefined | Promise<T | undefined> {
    const perMinute = this.#options.perMinute()
    if (perMinute > 0 && login.address !== '') return this.#limited(login, check, perMinute)
    return thenSync(check(), (found) => this.#counted(login, found))
  }

  async #limited<T>(
    login: LoginAttempt,
    check: () => T | undefined | Promise<T | undefined>,
    perMinute: number,
  ): Promise<T | undefined> {
    if (isUnguessable(login)) {
      const found = await check()
      if (found === undefined) this.#allowed(login, perMinute).consume()
      return this.#counted(login, found)
    }
    const tries = this.#allowed(login, perMinute)
    const finding = check()
    // Counted before the result is known: simultaneous wrong log-ins all count.
    if (finding === undefined || finding instanceof Promise) tries.consume()
    let found: T | undefined
    try {
      found = await finding
    } catch (error) {
      tries.refund()
      throw error
    }
    if (found !== undefined) {
      if (finding instanceof Promise) tries.refund()
      setNewest(this.#known, tries.pair, this.#now() + knownMs, maxRemembered)
    } else if ((await this.#options.counted?.(tries.pair)) === false) tries.exhaust()
    return this.#counted(login, found)
  }

  /** Whole seconds until the log-in may be tried, and counts a refusal; 0: now. For runtimes that can refuse by headers alone. */
  secondsToWait(login: LoginAttempt): number {
    const perMinute = this.#options.perMinute()
    if (perMinute <= 0 || login.address === '' || isUnguessable(login)) return 0
    const { wait, address } = this.#tries(login, perMinute)
    if (wait > 0) this.#countRefusal(login, address)
    return wait
  }

  /** Entries in all tables: addresses, names and guesses. */
  get remembered(): number {
    return this.#pairs.size + this.#addresses.size + this.#guesses.size + this.#known.size + this.#bursts.size
  }

  /** The counters as metrics. */
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

  #counted<T>({ kind }: LoginAttempt, found: T | undefined): T | undefined {
    if (found === undefined) this.#wrong[kind] += 1
    return found
  }

  /** The remaining attempts of a log-in; 429 when none remain. */
  #allowed(login: LoginAttempt, perMinute: number): Tries {
    const tries = this.#tries(login, perMinute)
    if (tries.wait === 0) return tries
    this.#countRefusal(login, tries.address)
    throw retryLater(429, tooManyLogins(login, tries.wait), tries.wait)
  }

  #tries(login: LoginAttempt, perMinute: number): Tries {
    const address = networkOf(login.address)
    const pair = `${address} ${login.kind} ${login.name.slice(0, 100)}`
    const guess = `${address} ${login.kind} ${this.#digest(`${login.name}\n${login.secret}`)}`
    const ofName: BucketRate = { perSecond: perMinute / 60, burst: perMinute }
    const ofAddress: BucketRate = { perSecond: (namesOfAddress * perMinute) / 60, burst: namesOfAddress * perMinute }
    // A program that repeats an old password does not guess: it must not block a client with the right password.
    const isRepeated = this.#guesses.has(guess)
    const isKnown = (this.#known.get(pair) ?? 0) > this.#now()
    const wait =
      this.#guesses.wait(guess, ofName) ||
      (isRepeated ? 0 : this.#pairs.wait(pair, ofName)) ||
      (isKnown ? 0 : this.#addresses.wait(address, ofAddress))
    return {
      wait,
      address,
      pair,
      consume: () => {
        this.#guesses.consume(guess, ofName)
        if (!isRepeated) this.#pairs.consume(pair, ofName)
        this.#addresses.consume(address, ofAddress)
      },
      exhaust: () => {
        while (this.#pairs.consume(pair, ofName)) {
          // take() does the work.
        }
      },
      refund: () => {
        this.#guesses.delete(guess)
        if (!isRepeated) this.#pairs.refund(pair, ofName)
        this.#addresses.refund(address, ofAddress)
      },
    }
  }

  #countRefusal({ kind, address: whole }: LoginAttempt, address: string): void {
    this.#refused[kind] += 1
    const now = this.#now()
    const isNew = (this.#bursts.get(address) ?? 0) <= now
    setNewest(this.#bursts, address, now + burstPauseMs, maxRemembered)
    if (isNew) this.#options.limited?.({ kind, address: whole })
  }

  /** Seeded in each process: a collision of two texts reveals nothing to a client. */
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

/** The message of a 429. */
export const tooManyLogins = ({ address }: Pick<LoginAttempt, 'address'>, seconds: number): string =>
  `Too many wrong log-ins from ${address}; wait ${seconds} s`

interface Tries {
  /** Whole seconds until an attempt is allowed; 0: now. */
  readonly wait: number
  readonly address: string
  readonly pair: string
  consume(): void
  refund(): void
  /** Takes all remaining attempts of the name. */
  exhaust(): void
}

/** Tokens that the service made have at least 256 random bits, tickets 192. Nobody guesses the key of a public key. */
export const madeToken = /^pb_[0-9a-f]{16}_[\w.-]{64,}$/

const isUnguessable = ({ kind, secret }: LoginAttempt): boolean =>
  kind === 'ticket' || kind === 'ssh' || madeToken.test(secret)

const counters = (): Record<LoginKind, number> => ({ basic: 0, bearer: 0, ticket: 0, join: 0, session: 0, ssh: 0 })
