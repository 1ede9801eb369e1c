import { setNewest } from '../../../../../src/lib/async/newest.ts'
import { type StartTimer, startTimer } from '../../../../../src/lib/async/pause.ts'
import type { Mac } from './address.ts'

const lifeMs = 120_000
const maxEntries = 256
const maxWaiting = 16
const askMs = 1000
const asks = 3

interface Waiting {
  readonly found: ((mac: Mac | undefined) => void)[]
  cancelTimer: () => void
  asksLeft: number
}

/** A bounded cache of the MAC addresses of next hops, with the pending requests. For ARP and for neighbour discovery. */
export class Neighbours {
  /** `expires` by performance.now(): a step of the wall clock must not keep entries. */
  readonly #known = new Map<string, { readonly mac: Mac; readonly expires: number }>()
  readonly #waiting = new Map<string, Waiting>()
  readonly #ask: (address: string) => void
  readonly #startTimer: StartTimer
  #isClosed = false

  constructor(ask: (address: string) => void, timer: StartTimer = startTimer) {
    this.#ask = ask
    this.#startTimer = timer
  }

  get(address: string): Mac | undefined {
    const entry = this.#known.get(address)
    return entry !== undefined && entry.expires > performance.now() ? entry.mac : undefined
  }

  learn(address: string, mac: Mac): void {
    setNewest(this.#known, address, { mac: mac.slice(), expires: performance.now() + lifeMs }, maxEntries)
    this.#settle(address, mac)
  }

  /** Learns an address only where it is known or asked for, so that unasked messages cannot fill the cache. */
  update(address: string, mac: Mac): void {
    if (this.get(address) !== undefined || this.#waiting.has(address)) this.learn(address, mac)
  }

  /** Sends up to three requests, a second apart; undefined without an answer. */
  resolve(address: string): Promise<Mac | undefined> {
    const known = this.get(address)
    // A cancelled command may still send.
    if (known !== undefined || this.#isClosed) return Promise.resolve(known)
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(address)
      if (waiting !== undefined) {
        // Limits the queue for a host that does not answer.
        if (waiting.found.length >= maxWaiting) resolve(undefined)
        else waiting.found.push(resolve)
        return
      }
      if (this.#waiting.size >= maxEntries) return resolve(undefined)
      const entry: Waiting = { found: [resolve], asksLeft: asks, cancelTimer: () => {} }
      this.#waiting.set(address, entry)
      this.#again(address, entry)
    })
  }

  /** The entries, with their remaining seconds. */
  list(): { address: string; mac: Mac; seconds: number }[] {
    const now = performance.now()
    return [...this.#known]
      .filter(([, { expires }]) => expires > now)
      .map(([address, { mac, expires }]) => ({ address, mac, seconds: Math.round((expires - now) / 1000) }))
  }

  clear(): void {
    this.#known.clear()
  }

  /** Cancels the pending requests and refuses new ones. */
  close(): void {
    this.#isClosed = true
    for (const address of [...this.#waiting.keys()]) this.#settle(address, undefined)
  }

  #again(address: string, entry: Waiting): void {
    entry.cancelTimer()
    if (entry.asksLeft === 0) return this.#settle(address, undefined)
    entry.asksLeft -= 1
    entry.cancelTimer = this.#startTimer(() => this.#again(address, entry), askMs)
    this.#ask(address)
  }

  #settle(address: string, mac: Mac | undefined): void {
    const waiting = this.#waiting.get(address)
    if (waiting === undefined) return
    this.#waiting.delete(address)
    waiting.cancelTimer()
    for (const found of waiting.found) found(mac)
  }
}
