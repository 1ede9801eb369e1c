import { bytesOf4, guestDomain, type Subnet, textOf4 } from '../../../../src/model/kinds/nat-subnet.ts'
import { bytesOfText, type Guests, type KnownGuest } from './guests.ts'

/** RFC 2131 and RFC 2132. */
const type = { discover: 1, offer: 2, request: 3, decline: 4, ack: 5, nak: 6, release: 7, inform: 8 } as const
const option = {
  mask: 1,
  router: 3,
  resolver: 6,
  hostName: 12,
  domain: 15,
  wanted: 50,
  lease: 51,
  type: 53,
  server: 54,
  renewal: 58,
  rebinding: 59,
  pad: 0,
  end: 255,
} as const
const cookie = 0x63825363
const leaseSeconds = 86_400
/** How long a declined address, and an offered one, are not given to other guests, ms. */
const declinedMs = 600_000
const offeredMs = 60_000
const fixedBytes = 240
/** Shorter messages may be refused (RFC 1542, 2.1); the longest options, those of a guest with a name, have 130 bytes. */
const [shortestReply, longestReply] = [300, 400] as const

interface Lease {
  readonly mac: string
  /** Until when, ms of `Date.now`. */
  readonly until: number
  /** Whether the guest has taken it; otherwise it is an offer. */
  readonly isTaken: boolean
}

/** A reply, and where it goes. */
export interface DhcpReply {
  readonly payload: Uint8Array
  readonly to: number
  readonly isBroadcast: boolean
}

/**
 * The DHCP server of a nat. A known guest gets its own address, whatever its MAC address; each other MAC address gets the lowest free one.
 * That of libslirp is limited to 16 guests.
 */
export class DhcpServer {
  readonly #subnet: Subnet
  readonly #leases = new Map<number, Lease>()
  /** Called when the leases have changed. */
  readonly #changed: (leases: Readonly<Record<string, string>>) => void
  readonly #guests: Pick<Guests, 'isReserved'>

  /** `known`: the leases of an earlier run, address by MAC address. */
  constructor(
    subnet: Subnet,
    known: Readonly<Record<string, number>>,
    changed: (leases: Readonly<Record<string, string>>) => void,
    guests: Pick<Guests, 'isReserved'>,
  ) {
    this.#subnet = subnet
    this.#guests = guests
    this.#changed = changed
    for (const [mac, address] of Object.entries(known)) {
      if (this.#isGiven(address))
        this.#leases.set(address, { mac, until: Date.now() + leaseSeconds * 1000, isTaken: true })
    }
  }

  /** `guest`: who is known to be at the port of the request. */
  answer(request: Uint8Array, guest?: KnownGuest, now = Date.now()): DhcpReply | undefined {
    const view = new DataView(request.buffer, request.byteOffset, request.length)
    if (request.length < fixedBytes || request[0] !== 1 || request[2] !== 6) return undefined
    if (view.getUint32(236, false) !== cookie) return undefined
    const options = optionsOf(request)
    const mac = Array.from(request.subarray(28, 34), (byte) => byte.toString(16).padStart(2, '0')).join(':')
    const current = view.getUint32(12, false)
    const wanted = numberIn(options.get(option.wanted)) ?? current
    const server = numberIn(options.get(option.server))
    if (guest !== undefined)
      return this.#answerKnown(request, guest, { kind: options.get(option.type)?.[0], wanted, server })
    switch (options.get(option.type)?.[0]) {
      case type.discover: {
        const address = this.#choose(mac, wanted, now)
        if (address === undefined) return undefined
        const kept = this.#leases.get(address)?.mac === mac
        if (!kept) this.#leases.set(address, { mac, until: now + offeredMs, isTaken: false })
        return this.#reply(request, type.offer, address)
      }
      case type.request: {
        if (server !== undefined && server !== this.#subnet.gateway) return undefined
        if (!this.#isFor(wanted, mac, now)) return this.#reply(request, type.nak, 0)
        this.#give(wanted, mac, now)
        return this.#reply(request, type.ack, wanted)
      }
      case type.inform:
        return this.#reply(request, type.ack, 0)
      case type.release:
        if (this.#leases.get(current)?.mac === mac) this.#leases.set(current, { mac, until: now, isTaken: true })
        return undefined
      case type.decline:
        if (this.#isFor(wanted, mac, now))
          this.#leases.set(wanted, { mac: '', until: now + declinedMs, isTaken: false })
        return undefined
      default:
        return undefined
    }
  }

  /** A guest whose address is known needs no lease. */
  #answerKnown(
    request: Uint8Array,
    guest: KnownGuest,
    { kind, wanted, server }: { kind: number | undefined; wanted: number; server: number | undefined },
  ): DhcpReply | undefined {
    if (kind === type.discover) return this.#reply(request, type.offer, guest.address, guest.name)
    if (kind === type.inform) return this.#reply(request, type.ack, 0, guest.name)
    if (kind !== type.request || (server !== undefined && server !== this.#subnet.gateway)) return undefined
    if (wanted !== guest.address) return this.#reply(request, type.nak, 0)
    return this.#reply(request, type.ack, wanted, guest.name)
  }

  #isGiven(address: number): boolean {
    return address >= this.#subnet.first && address <= this.#subnet.last && !this.#guests.isReserved(address)
  }

  #isFor(address: number, mac: string, now: number): boolean {
    const lease = this.#leases.get(address)
    return this.#isGiven(address) && (lease === undefined || lease.mac === mac || lease.until < now)
  }

  /** The guest's last address, else the requested one, else the first unused one, else the one that is free for longest. */
  #choose(mac: string, wanted: number, now: number): number | undefined {
    for (const [address, lease] of this.#leases) if (lease.mac === mac && this.#isGiven(address)) return address
    if (this.#isFor(wanted, mac, now)) return wanted
    for (let address = this.#subnet.first; address <= this.#subnet.last; address++) {
      if (!this.#leases.has(address) && this.#isGiven(address)) return address
    }
    const isOver = ([address, { until }]: [number, Lease]) => until < now && this.#isGiven(address)
    const over = [...this.#leases].filter(isOver).sort(([, a], [, b]) => a.until - b.until)
    return over[0]?.[0]
  }

  #give(address: number, mac: string, now: number): void {
    for (const [other, lease] of this.#leases) if (lease.mac === mac && other !== address) this.#leases.delete(other)
    const before = this.#leases.get(address)
    this.#leases.set(address, { mac, until: now + leaseSeconds * 1000, isTaken: true })
    if (before?.mac === mac && before.isTaken) return
    const given = [...this.#leases].filter(([, { isTaken }]) => isTaken)
    this.#changed(Object.fromEntries(given.map(([it, lease]) => [lease.mac, textOf4(it)])))
  }

  #reply(request: Uint8Array, kind: number, address: number, name?: string): DhcpReply {
    const { gateway, mask } = this.#subnet
    const header = new DataView(request.buffer, request.byteOffset, request.length)
    const payload = new Uint8Array(longestReply)
    const view = new DataView(payload.buffer)
    payload.set([2, 1, 6, 0])
    // Transaction, flags, and the MAC address.
    payload.set(request.subarray(4, 8), 4)
    payload.set(request.subarray(10, 12), 10)
    payload.set(request.subarray(24, 44), 24)
    const current = header.getUint32(12, false)
    if (kind !== type.nak) payload.set(request.subarray(12, 16), 12)
    view.setUint32(16, address, false)
    view.setUint32(20, kind === type.nak ? 0 : gateway, false)
    view.setUint32(236, cookie, false)
    let at = fixedBytes
    const add = (code: number, value: Uint8Array) => {
      payload.set([code, value.length, ...value], at)
      at += 2 + value.length
    }
    add(option.type, Uint8Array.of(kind))
    add(option.server, bytesOf4(gateway))
    if (kind !== type.nak) {
      add(option.mask, bytesOf4(mask))
      add(option.router, bytesOf4(gateway))
      add(option.resolver, bytesOf4(gateway))
      if (name !== undefined) {
        add(option.hostName, bytesOfText(name))
        add(option.domain, bytesOfText(guestDomain))
      }
      if (address !== 0) {
        add(option.lease, bytesOf4(leaseSeconds))
        add(option.renewal, bytesOf4(leaseSeconds / 2))
        add(option.rebinding, bytesOf4((leaseSeconds * 7) / 8))
      }
    }
    payload[at] = option.end
    const wantsBroadcast = (header.getUint16(10, false) & 0x8000) !== 0
    const isBroadcast = kind === type.nak || (current === 0 && (wantsBroadcast || address === 0))
    return {
      payload: payload.subarray(0, Math.max(shortestReply, at + 1)),
      to: isBroadcast ? 0xffffffff : current !== 0 ? current : address,
      isBroadcast,
    }
  }
}

/** A broken option ends the list. */
function optionsOf(request: Uint8Array): Map<number, Uint8Array> {
  const found = new Map<number, Uint8Array>()
  for (let at = fixedBytes; at + 1 < request.length; ) {
    const code = request[at] as number
    if (code === option.end) break
    if (code === option.pad) {
      at += 1
      continue
    }
    const length = request[at + 1] as number
    if (at + 2 + length > request.length) break
    found.set(code, request.subarray(at + 2, at + 2 + length))
    at += 2 + length
  }
  return found
}

const numberIn = (value: Uint8Array | undefined): number | undefined =>
  value?.length === 4 ? new DataView(value.buffer, value.byteOffset, 4).getUint32(0, false) : undefined
