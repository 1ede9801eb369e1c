import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { defaultHostAddress, type PortForward } from '../../../../src/model/kinds/nat-guests.ts'
import { bytesOf4, numberOf4, type Subnet, subnetOf } from '../../../../src/model/kinds/nat-subnet.ts'
import { Memory } from '../../dataplane/fast/memory.ts'
import { batch, Receiver } from '../../dataplane/fast/receiver.ts'
import { Sockets } from '../../dataplane/fast/sockets.ts'
import { type Output, Transmitter } from '../../dataplane/fast/transmitter.ts'
import { type Libc, linux, type Pointer } from '../../os/system/libc.ts'
import { bytesOf, leasesName } from './addresses.ts'
import { Coalescer } from './coalescer.ts'
import { type DhcpReply, DhcpServer } from './dhcp.ts'
import { FrameWriter, type PacketEnds } from './frame-writer.ts'
import { ethernetBytes, etherType, NatGate } from './gate.ts'
import { Guests } from './guests.ts'
import { Slirp } from './libslirp.ts'
import { NameForwarder } from './names.ts'
import { Policy } from './policy.ts'
import { NatRoutes } from './routes.ts'

/** The configuration of the process of a nat. */
export interface NatConfig {
  /** Private pairs of UDP ports with the switch. */
  readonly wires: readonly { readonly number: number; readonly guest_port: number; readonly switch_port: number }[]
  readonly subnet: string
  /** Empty: no IPv6. */
  readonly ipv6_prefix: string
  readonly port_forwards: readonly PortForward[]
  readonly reach: readonly string[]
  readonly isLocal: boolean
}

/** Up to this number of leases every change is stored at once, above it every `leasesWaitMs`. */
const fewLeases = 64
const leasesWaitMs = 1000

interface Port extends Output {
  readonly number: number
  readonly gro: boolean
}

/** Batches of one port in a round, for fairness. */
const rounds = 4
/** Size of the buffer in which frames of libslirp wait to be sent together. */
const outBytes = 1 << 18
const longestFrame = 9234
const maxMacs = 4096
/** The first bytes of the MAC addresses of libslirp; the last four of the IP address follow. */
const macs = { four: [0x52, 0x55], six: [0x52, 0x56] } as const

/** The network of a nat: a switch of its ports, with libslirp as the way out. `run` blocks its thread. */
export class NatNetwork {
  readonly #libc: Libc
  readonly #subnet: Subnet
  readonly #ports: readonly Port[]
  readonly #receiver: Receiver
  readonly #transmitter: Transmitter
  readonly #out: Memory
  #outUsed = 0
  readonly #routes: NatRoutes
  readonly #policy: Policy
  readonly #gate: NatGate
  readonly #slirp: Slirp
  readonly #coalescer: Coalescer
  readonly #names: NameForwarder
  readonly #dhcp: DhcpServer
  readonly #guests = new Guests()
  readonly #writer: FrameWriter
  readonly #written: Memory
  readonly #watchesFlows: boolean
  readonly #macs = new Map<number, Port>()
  #leases: Readonly<Record<string, string>> | undefined
  #leasesDue = Number.POSITIVE_INFINITY

  /** Throws with the reason when a port or libslirp is not available. */
  constructor(libc: Libc, { wires, subnet, ipv6_prefix, port_forwards, reach, isLocal }: NatConfig) {
    const found = subnetOf(subnet)
    if (found === undefined) throw new Error(`${subnet} is not a network`)
    this.#libc = libc
    this.#subnet = found
    this.#out = new Memory(libc, outBytes)
    this.#written = new Memory(libc, longestFrame)
    this.#writer = new FrameWriter(this.#written.bytes, this.#written.view)
    this.#receiver = new Receiver(libc)
    this.#transmitter = new Transmitter(libc)
    this.#routes = new NatRoutes(libc)
    this.#policy = new Policy({ reach, isLocal, isElsewhere: (address) => this.#routes.isElsewhere(address) })
    const prefix = ipv6_prefix === '' ? undefined : bytesOf(ipv6_prefix.split('/')[0] ?? '')
    const inPrefix = (last: number) => Uint8Array.from(prefix ?? [], (byte, index) => (index === 15 ? last : byte))
    const six = prefix && { prefix: prefix.subarray(0, 8), gateway: inPrefix(1), host: inPrefix(2) }
    const udpForwards = new Set(port_forwards.flatMap((it) => (it.protocol === 'udp' ? [it.guest_port] : [])))
    this.#watchesFlows = port_forwards.length > 0
    const isForwardedUdp = (port: number) => udpForwards.has(port)
    this.#gate = new NatGate({ subnet: found, six, policy: this.#policy, isForwardedUdp }, this.#receiver.bytes)
    const addresses = {
      network: bytesOf4(found.network),
      mask: bytesOf4(found.mask),
      host: bytesOf4(found.host),
      resolver: bytesOf4(found.gateway),
      firstGuest: bytesOf4(found.first),
      six: prefix && { prefix, host: inPrefix(2), resolver: inPrefix(1) },
    }
    this.#slirp = new Slirp(libc, addresses, this.#takeOut)
    this.#coalescer = new Coalescer(libc, this.#receiver, (frame, length) => this.#slirp.input(frame, length))
    for (const { protocol, host_address = defaultHostAddress, guest_address, host_port, guest_port } of port_forwards) {
      this.#slirp.forward({
        isUdp: protocol === 'udp',
        hostAddress: bytesOf(host_address),
        hostPort: host_port,
        guestAddress: guest_address === undefined ? bytesOf4(found.first) : bytesOf(guest_address),
        guestPort: guest_port,
      })
    }
    this.#names = new NameForwarder(libc)
    this.#dhcp = new DhcpServer(
      found,
      readLeases(),
      (leases) => {
        this.#leases = leases
        const isAtOnce = Object.keys(leases).length <= fewLeases
        this.#leasesDue = Math.min(this.#leasesDue, performance.now() + (isAtOnce ? 0 : leasesWaitMs))
      },
      this.#guests,
    )
    const sockets = new Sockets(libc, true)
    this.#ports = wires.map(({ number, guest_port, switch_port }): Port => {
      const ends = { local: loopback(guest_port), remote: loopback(switch_port) }
      return { number, ...sockets.udp(ends), kind: 'udp', refused: ignored, failed: ignored }
    })
  }

  /** Moves frames until the process ends. */
  run(): never {
    for (;;) {
      const names = [...this.#names.descriptors()]
      const due = Math.min(this.#names.nextDue, this.#leasesDue) - performance.now()
      const descriptors = [...this.#ports.map(({ fd }) => fd), ...names]
      this.#slirp.wait(descriptors, Math.max(0, due), { before: this.#flush, first: () => this.#takeAll(names) })
      this.#names.expire()
      if (this.#leasesDue <= performance.now()) this.#saveLeases()
    }
  }

  /** Handles all sockets that have data. */
  #takeAll(names: readonly number[]): void {
    this.#ports.forEach((port, index) => {
      if (this.#slirp.isReady(index)) this.#drain(port)
    })
    names.forEach((fd, index) => {
      if (this.#slirp.isReady(this.#ports.length + index)) this.#names.read(fd)
    })
  }

  readonly #flush = (): void => {
    this.#transmitter.flush()
    this.#outUsed = 0
  }

  #drain(port: Port): void {
    for (let round = 0; round < rounds; round++) {
      const count = this.#receiver.udp(port.fd, port.gro)
      // The switch of the keeper may open its port after the nat.
      if (count < 0 && this.#libc.errno() === linux.ECONNREFUSED) continue
      if (count <= 0) return
      // After receiving: so a change of routes before a frame was sent is known when the frame is judged.
      if (this.#routes.haveChanged()) this.#policy.forget()
      const { offsets, lengths, segments } = this.#receiver
      for (let index = 0; index < count; index++) {
        const [offset, length, segment] = [offsets[index] ?? 0, lengths[index] ?? 0, segments[index] ?? 0]
        const step = segment > 0 && segment < length ? segment : length
        for (let at = offset; at < offset + length; at += step) {
          this.#forward(port, at, Math.min(step, offset + length - at))
        }
      }
      this.#coalescer.flush()
      this.#flush()
      if (count < batch) return
    }
  }

  /** A frame of a guest: to other guests, to the nat, or to both. */
  #forward(port: Port, offset: number, length: number): void {
    if (length < ethernetBytes || length > longestFrame) return
    const { bytes, view, address } = this.#receiver
    if (this.#ports.length > 1) {
      const source = view.getUint16(offset + 6, false) * 2 ** 32 + view.getUint32(offset + 8, false)
      if (this.#macs.get(source) !== port) {
        if (this.#macs.size >= maxMacs) this.#macs.clear()
        this.#macs.set(source, port)
      }
    }
    const isForMany = ((bytes[offset] as number) & 1) !== 0
    const isOurs = this.#isOurs(offset)
    if (!isOurs && this.#ports.length > 1) this.#deliver(view, offset, address + offset, length, port)
    if (isOurs || isForMany) this.#takeIn(offset, length, port)
  }

  #isOurs(offset: number): boolean {
    const { view } = this.#receiver
    const start = view.getUint16(offset, false)
    const end = view.getUint32(offset + 2, false)
    if (start === 0x5255) return end === this.#subnet.gateway || end === this.#subnet.host
    return start === 0x5256 && (end === 1 || end === 2)
  }

  #takeIn(offset: number, length: number, port: Port): void {
    const { bytes } = this.#receiver
    switch (this.#gate.judge(offset, length)) {
      case 'pass':
        return this.#coalescer.add(offset, length)
      case 'dhcp': {
        const request = bytes.subarray(this.#gate.transport + 8, this.#gate.end)
        const reply = this.#dhcp.answer(request, this.#guests.at(port.number))
        if (reply !== undefined) this.#sendDhcp(reply, bytes.slice(offset + 6, offset + 12))
        return
      }
      case 'dns':
        return this.#ask(offset)
      case 'refuse': {
        const packet = bytes.slice(offset + ethernetBytes, this.#gate.end)
        const ends = this.#back(offset)
        const isSix = ends.from.length === 16
        const from = isSix ? { ...ends, from: bytesOf('fe80::2') } : { ...ends, from: bytesOf4(this.#subnet.gateway) }
        return this.#send(this.#writer.prohibited(from, packet))
      }
    }
  }

  /** The addresses of an answer to the guest that sent a frame. */
  #back(offset: number): PacketEnds {
    const { bytes, view } = this.#receiver
    const isSix = view.getUint16(offset + 12, false) === etherType.ip6
    const [at, size] = isSix ? [offset + ethernetBytes + 8, 16] : [offset + ethernetBytes + 12, 4]
    return {
      fromMac: bytes.slice(offset, offset + 6),
      toMac: bytes.slice(offset + 6, offset + 12),
      from: bytes.slice(at + size, at + 2 * size),
      to: bytes.slice(at, at + size),
    }
  }

  #ask(offset: number): void {
    const { bytes, view } = this.#receiver
    const { transport, end } = this.#gate
    const sourcePort = view.getUint16(transport, false)
    const back = this.#back(offset)
    const query = bytes.subarray(transport + 8, end)
    const send = (answer: Uint8Array) => this.#send(this.#writer.udp(back, 53, sourcePort, answer))
    const known = this.#guests.answer(query)
    if (known !== undefined) send(known)
    else this.#names.ask(query, send)
  }

  #sendDhcp({ payload, to, isBroadcast }: DhcpReply, guest: Uint8Array): void {
    const gateway = bytesOf4(this.#subnet.gateway)
    const ends = {
      fromMac: Uint8Array.from([...macs.four, ...gateway]),
      toMac: isBroadcast ? new Uint8Array(6).fill(0xff) : guest,
      from: gateway,
      to: bytesOf4(to),
    }
    this.#send(this.#writer.udp(ends, 67, 68, payload))
  }

  /** Sends the frame in `#written`. */
  #send(length: number): void {
    this.#takeOut(this.#written.address, length)
  }

  /** Takes a frame of libslirp to a guest. Its memory is valid only during this call, so it is copied. */
  readonly #takeOut = (frame: Pointer, length: number): void => {
    if (length < ethernetBytes + 20 || length > longestFrame) return
    if (this.#outUsed + length > outBytes) this.#flush()
    const { bytes, view, address } = this.#out
    const offset = this.#outUsed
    this.#libc.memcpy(address + offset, frame, length)
    this.#outUsed += length
    const isIp = view.getUint16(offset + 12, false) !== etherType.arp
    // libslirp sends with the MAC address of its host for the gateway; with that of the gateway switches learn its port.
    if (isIp && view.getUint16(offset + 6, false) === 0x5255) view.setUint32(offset + 8, this.#subnet.gateway, false)
    if (isIp && this.#watchesFlows) this.#gate.sent(bytes, view, offset)
    this.#deliver(view, offset, address + offset, length, undefined)
  }

  #deliver(view: DataView, offset: number, frame: Pointer, length: number, from: Port | undefined): void {
    const target = view.getUint16(offset, false) * 2 ** 32 + view.getUint32(offset + 2, false)
    const known = this.#ports.length === 1 ? this.#ports[0] : this.#macs.get(target)
    if (known !== undefined) {
      if (known !== from) this.#transmitter.add(known, frame, length)
      return
    }
    for (const port of this.#ports) if (port !== from) this.#transmitter.add(port, frame, length)
  }

  #saveLeases(): void {
    this.#leasesDue = Number.POSITIVE_INFINITY
    try {
      writeFileSync(`${leasesName}.writing`, JSON.stringify(this.#leases))
      renameSync(`${leasesName}.writing`, leasesName)
    } catch (error) {
      // Without stored leases guests may get other addresses after a restart of the nat.
      process.stderr.write(`the leases are not stored: ${(error as Error).message}\n`)
    }
  }
}

const ignored = (): void => {}
const loopback = (port: number) => ({ address: '127.0.0.1', port })

function readLeases(): Record<string, number> {
  try {
    const stored = Object.entries(JSON.parse(readFileSync(leasesName, 'utf8')) as Record<string, string>)
    return Object.fromEntries(stored.map(([mac, address]) => [mac, numberOf4(String(address))]))
  } catch {
    return {}
  }
}
