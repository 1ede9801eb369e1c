import { type StartTimer, startTimer } from '../../../../src/async/pause.ts'
import type { Mac } from './address.ts'

const lifeMs = 120_000
const maxEntries = 256
const maxWaiting = 16
const askMs = 1000
const asks = 3

interface Waiting {
  readonly found: ((mac: Mac | undefined) => void)[]
  cancelTimer: () => void
  left: number
}

/** Which MAC address a next hop has: a bounded cache, and the questions under way. For ARP and for neighbour discovery. */
export class Neighbours {
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
    return entry !== undefined && entry.expires > Date.now() ? entry.mac : undefined
  }

  learn(address: string, mac: Mac): void {
    this.#known.delete(address)
    if (this.#known.size >= maxEntries) {
      const [oldest] = this.#known.keys()
      this.#known.delete(oldest ?? '')
    }
    this.#known.set(address, { mac: mac.slice(), expires: Date.now() + lifeMs })
    this.#settle(address, mac)
  }

  /** Asks up to three times, a second apart; undefined when nobody answers. */
  resolve(address: string): Promise<Mac | undefined> {
    const known = this.get(address)
    // A command that is ended may still be about to send.
    if (known !== undefined || this.#isClosed) return Promise.resolve(known)
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(address)
      if (waiting !== undefined) {
        // More would only pile up behind a host that is not there.
        if (waiting.found.length >= maxWaiting) resolve(undefined)
        else waiting.found.push(resolve)
        return
      }
      if (this.#waiting.size >= maxEntries) return resolve(undefined)
      const entry: Waiting = { found: [resolve], left: asks, cancelTimer: () => {} }
      this.#waiting.set(address, entry)
      this.#again(address, entry)
    })
  }

  /** What is known, with the seconds that it is still valid. */
  list(): { address: string; mac: Mac; seconds: number }[] {
    const now = Date.now()
    return [...this.#known]
      .filter(([, { expires }]) => expires > now)
      .map(([address, { mac, expires }]) => ({ address, mac, seconds: Math.round((expires - now) / 1000) }))
  }

  clear(): void {
    this.#known.clear()
  }

  /** Ends the questions under way; there are no more after it. */
  close(): void {
    this.#isClosed = true
    for (const address of [...this.#waiting.keys()]) this.#settle(address, undefined)
  }

  #again(address: string, entry: Waiting): void {
    entry.cancelTimer()
    if (entry.left === 0) {
      this.#settle(address, undefined)
      return
    }
    entry.left -= 1
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
