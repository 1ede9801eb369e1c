import type { MacEntry } from '../../../keeper/protocol/protocol.ts'

const minSlots = 256
const maxSlots = 131_072
const none = -1
/** After which time a full table looks again for what is too old, ms. */
const fullMs = 1000

/** Which port an address of a VLAN was last seen at: a hash table with open addressing, without objects. */
export class MacTable {
  #mask = 0
  /** The first four bytes of the address; its last two, and the VLAN. */
  #highs = new Uint32Array()
  #lows = new Uint32Array()
  /** `none`: the slot is empty. */
  #ports = new Int32Array()
  /** When the address was last seen, ms. */
  #seen = new Float64Array()
  #used = 0
  #fullUntil = Number.NEGATIVE_INFINITY
  ageingMs = 300_000

  constructor() {
    this.#allocate(minSlots)
  }

  clear(): void {
    this.#allocate(minSlots)
  }

  /** The port of an address, or a negative number. */
  find(high: number, low: number, now: number): number {
    const slot = this.#slotOf(high, low)
    const port = this.#ports[slot] as number
    return port !== none && now - (this.#seen[slot] as number) < this.ageingMs ? port : none
  }

  /** Notes where an address was seen; a full table learns nothing new. */
  learn(high: number, low: number, port: number, now: number): void {
    let slot = this.#slotOf(high, low)
    if (this.#ports[slot] === none) {
      if (this.#used * 2 >= this.#ports.length) {
        if (now < this.#fullUntil) return
        this.#rebuild(now)
        if (this.#used * 2 >= this.#ports.length) {
          this.#fullUntil = now + fullMs
          return
        }
        slot = this.#slotOf(high, low)
      }
      this.#used += 1
      this.#highs[slot] = high
      this.#lows[slot] = low
    }
    this.#ports[slot] = port
    this.#seen[slot] = now
  }

  /** Forgets the addresses of ports that fit. */
  forget(fits: (port: number) => boolean): void {
    for (const [slot, port] of this.#ports.entries())
      if (port !== none && fits(port)) this.#seen[slot] = Number.NEGATIVE_INFINITY
  }

  entries(now: number): MacEntry[] {
    const found: MacEntry[] = []
    for (const [slot, port_number] of this.#ports.entries()) {
      const age = now - (this.#seen[slot] as number)
      if (port_number === none || age >= this.ageingMs) continue
      const [high, low] = [this.#highs[slot] as number, this.#lows[slot] as number]
      found.push({ mac: macText(high, low), vlan: low & 0xfff, port_number, age_s: Math.floor(age / 1000) })
    }
    return found
  }

  /** The slot of an address, or the empty one where it goes. */
  #slotOf(high: number, low: number): number {
    let slot = (Math.imul(high, 0x9e3779b1) ^ Math.imul(low, 0x85ebca6b)) >>> 8
    for (; ; slot++) {
      slot &= this.#mask
      if (this.#ports[slot] === none) return slot
      if (this.#lows[slot] === low && this.#highs[slot] === high) return slot
    }
  }

  /** Drops what is too old, and makes room. */
  #rebuild(now: number): void {
    const [highs, lows, ports, seen] = [this.#highs, this.#lows, this.#ports, this.#seen]
    const isFresh = (slot: number) => ports[slot] !== none && now - (seen[slot] as number) < this.ageingMs
    const fresh = [...ports.keys()].filter(isFresh)
    this.#allocate(Math.min(maxSlots, Math.max(minSlots, 2 ** Math.ceil(Math.log2((fresh.length + 1) * 4)))))
    for (const slot of fresh)
      this.learn(highs[slot] as number, lows[slot] as number, ports[slot] as number, seen[slot] as number)
  }

  #allocate(slots: number): void {
    this.#mask = slots - 1
    this.#highs = new Uint32Array(slots)
    this.#lows = new Uint32Array(slots)
    this.#ports = new Int32Array(slots).fill(none)
    this.#seen = new Float64Array(slots)
    this.#used = 0
  }
}

/** An address as text, from its first four bytes, and its last two in the upper half of `low`. */
export const macText = (high: number, low: number): string =>
  [high >>> 24, (high >>> 16) & 255, (high >>> 8) & 255, high & 255, low >>> 24, (low >>> 16) & 255]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join(':')
