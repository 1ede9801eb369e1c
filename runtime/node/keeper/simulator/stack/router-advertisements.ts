import { type Ip6, isLinkLocal, type Mac, samePrefix, withInterfaceId } from './address.ts'
import { read16, read32 } from './bytes.ts'

/** Types of options (RFC 4861, 4.6). */
const option = { prefix: 3, mtu: 5 } as const
const [onLinkFlag, autonomousFlag] = [0x80, 0x40] as const
const infinite = 0xffffffff
const maxOnLink = 16
/** An unauthenticated advertisement shortens a lifetime to this at most, ms (RFC 4862, 5.5.3 e). */
const shortestMs = 2 * 3_600_000
const [smallestMtu, largestMtu] = [1280, 1500] as const

export interface Address6 {
  readonly address: Ip6
  readonly prefix: number
}

/** An address that a prefix gives; its time is by performance.now(), ms. */
interface TimedAddress extends Address6 {
  readonly validUntil: number
  /** Whether other addresses with the prefix are on the link; else they are behind the router (RFC 5942). */
  readonly isOnLink: boolean
}

const isTimed = (address: Address6 | undefined): address is TimedAddress =>
  address !== undefined && 'validUntil' in address

interface Prefix {
  readonly prefix: Ip6
  readonly length: number
  readonly isOnLink: boolean
  /** Flag A: addresses may be made of it. */
  readonly isAutonomous: boolean
  readonly validMs: number
  readonly preferredMs: number
}

/** What router advertisements say (RFC 4861, 6.3.4; RFC 4862, 5.5.3), and for how long. Times are by performance.now(), ms. */
export class RouterAdvertisements {
  readonly #mac: Mac
  #router: { readonly address: Ip6; readonly until: number } | undefined
  #onLink: { readonly prefix: Ip6; readonly length: number; readonly until: number }[] = []
  #own: Address6 | undefined

  constructor(mac: Mac) {
    this.#mac = mac
  }

  /** The global address, by hand or of an advertised prefix, while it is valid. */
  get global(): Address6 | undefined {
    if (isTimed(this.#own) && this.#own.validUntil <= performance.now()) this.#own = undefined
    return this.#own
  }

  set global(address: Address6 | undefined) {
    this.#own = address
  }

  /** The default router, while it is one. */
  get router(): Ip6 | undefined {
    return this.#router !== undefined && this.#router.until > performance.now() ? this.#router.address : undefined
  }

  forgetRouter(): void {
    this.#router = undefined
  }

  /** Whether an address is reached without a router. */
  isOnLink(address: Ip6): boolean {
    const { global } = this
    if (isLinkLocal(address)) return true
    if (
      global !== undefined &&
      !(isTimed(global) && !global.isOnLink) &&
      samePrefix(address, global.address, global.prefix)
    )
      return true
    return this.#onLink.some((it) => it.until > performance.now() && samePrefix(address, it.prefix, it.length))
  }

  /** Takes an advertisement; returns the address of its first usable prefix, and its MTU. */
  receive(
    message: Uint8Array,
    router: Ip6,
  ): { readonly address: Address6 | undefined; readonly mtu: number | undefined } {
    const now = performance.now()
    const lifetimeMs = read16(message, 6) * 1000
    if (lifetimeMs > 0) this.#router = { address: router.slice(), until: now + lifetimeMs }
    // Only of the router that says so: others go on.
    else if (this.#router !== undefined && samePrefix(this.#router.address, router, 128)) this.#router = undefined
    const prefixes = optionsOf(message, 16, option.prefix).flatMap((it) => readPrefix(it))
    for (const it of prefixes) if (it.isOnLink) this.#setOnLink(it, now)
    const usable = prefixes.filter((it) => it.isAutonomous && it.validMs > 0)
    this.#refresh(prefixes, now)
    const best = usable.find((it) => it.preferredMs > 0) ?? usable[0]
    const [mtu] = optionsOf(message, 16, option.mtu)
    return {
      address: best && this.#addressOf(best, now),
      mtu: mtu === undefined ? undefined : Math.min(Math.max(read32(mtu, 4), smallestMtu), largestMtu),
    }
  }

  #setOnLink({ prefix, length, validMs }: Prefix, now: number): void {
    const others = this.#onLink.filter(
      (it) => it.until > now && !(it.length === length && samePrefix(it.prefix, prefix, length)),
    )
    this.#onLink = validMs === 0 ? others : [...others, { prefix, length, until: now + validMs }].slice(-maxOnLink)
  }

  /** The lifetime of the address in use is that of its prefix, of which a stranger cannot take it away at once. */
  #refresh(prefixes: readonly Prefix[], now: number): void {
    const { global } = this
    if (!isTimed(global)) return
    const its = prefixes.find((it) => it.isAutonomous && samePrefix(it.prefix, global.address, it.length))
    if (its === undefined) return
    const left = global.validUntil - now
    const validMs = its.validMs > Math.min(left, shortestMs) ? its.validMs : Math.min(left, shortestMs)
    const refreshed: TimedAddress = { ...global, validUntil: now + validMs, isOnLink: its.isOnLink }
    this.#own = refreshed
  }

  #addressOf({ prefix, validMs, isOnLink }: Prefix, now: number): TimedAddress {
    return { address: withInterfaceId(prefix, this.#mac), prefix: 64, validUntil: now + validMs, isOnLink }
  }
}

/** A prefix that a host may use (RFC 4861, 4.6.2): not a link-local one, nor one that is preferred longer than valid. */
function readPrefix(bytes: Uint8Array): Prefix[] {
  const [, , length = 0, flags = 0] = bytes
  const [validMs, preferredMs] = [msOf(read32(bytes, 4)), msOf(read32(bytes, 8))]
  const prefix = bytes.slice(16, 32)
  if (bytes.length !== 32 || length > 128 || isLinkLocal(prefix)) return []
  // The interface identifier needs 64 bits.
  const isAutonomous = (flags & autonomousFlag) !== 0 && length === 64 && preferredMs <= validMs
  return [{ prefix, length, isOnLink: (flags & onLinkFlag) !== 0, isAutonomous, validMs, preferredMs }]
}

const msOf = (seconds: number): number => (seconds === infinite ? Number.POSITIVE_INFINITY : seconds * 1000)

/** The options of a type in a message of neighbour discovery, with their type and length (in units of eight bytes). */
export function optionsOf(message: Uint8Array, from: number, type: number): Uint8Array[] {
  const found: Uint8Array[] = []
  for (let at = from; at + 8 <= message.length; ) {
    const length = (message[at + 1] ?? 0) * 8
    if (length === 0 || at + length > message.length) break
    if (message[at] === type) found.push(message.subarray(at, at + length))
    at += length
  }
  return found
}
