import { setNewest } from '../../../../../src/lib/async/newest.ts'

const maxPackets = 16
const maxBytes = 65_535
/** Maximum number of fragments. The largest packet has 46 on Ethernet; only an attack uses fragments of eight bytes. */
const maxParts = 256
const lifeMs = 10_000

interface Partial {
  readonly parts: Map<number, Uint8Array>
  readonly began: number
  total: number | undefined
  size: number
}

/** Reassembles fragments (RFC 791, 3.2). At the limit a new packet replaces the oldest. */
export class Reassembly {
  readonly #packets = new Map<string, Partial>()

  /** Adds a fragment; returns the payload when it is complete. */
  add(key: string, offset: number, part: Uint8Array, isLast: boolean): Uint8Array | undefined {
    const isMalformed = part.length === 0 || (!isLast && part.length % 8 !== 0) || offset + part.length > maxBytes
    if (isMalformed) return undefined
    const packet = this.#packet(key)
    if (!packet.parts.has(offset)) {
      packet.size += part.length
      packet.parts.set(offset, part.slice())
    }
    if (isLast) packet.total = offset + part.length
    if (packet.size > maxBytes || packet.parts.size > maxParts) {
      this.#packets.delete(key)
      return undefined
    }
    if (packet.total === undefined || packet.size < packet.total) return undefined
    this.#packets.delete(key)
    const whole = new Uint8Array(packet.total)
    let reached = 0
    for (const [at, bytes] of [...packet.parts].sort(([a], [b]) => a - b)) {
      // Overlaps and gaps indicate an attack: the packet is dropped.
      if (at !== reached || at + bytes.length > whole.length) return undefined
      whole.set(bytes, at)
      reached = at + bytes.length
    }
    return whole
  }

  clear(): void {
    this.#packets.clear()
  }

  #packet(key: string): Partial {
    const now = performance.now()
    const known = this.#packets.get(key)
    if (known !== undefined && now - known.began < lifeMs) return known
    const fresh: Partial = { parts: new Map(), began: now, total: undefined, size: 0 }
    setNewest(this.#packets, key, fresh, maxPackets)
    return fresh
  }
}
