import { formatIp4, prefixOf } from './address.ts'
import { read32, write16, write32 } from './bytes.ts'
import { protocol } from './ip4.ts'
import type { Net } from './net.ts'
import { buildUdp } from './transport.ts'

const [clientPort, serverPort] = [68, 67]
const magic = 0x63825363
const optionsAt = 240
const waitMs = 1000
const tries = 3
const type = { discover: 1, offer: 2, request: 3, ack: 5, nak: 6, release: 7 } as const
const broadcast = 0xffffffff

/** What a server gave (RFC 2131, 2132). */
export interface Lease {
  readonly address: number
  readonly prefix: number
  readonly gateway: number
  readonly dns: readonly number[]
  readonly domain: string
  readonly server: number
  /** Seconds. */
  readonly seconds: number
  /** Milliseconds since 1970. */
  readonly began: number
}

interface Message {
  readonly type: number
  readonly address: number
  readonly options: ReadonlyMap<number, Uint8Array>
}

/** Discover, offer, request, acknowledge; `show` is given a letter for each. Undefined when no server gives an address. */
export async function obtain(
  net: Net,
  show: (letter: string) => void,
  signal: AbortSignal,
  wait = waitMs,
): Promise<Lease | undefined> {
  const id = Math.floor(Math.random() * 0xffffffff)
  for (let attempt = 0; attempt < tries && !signal.aborted; attempt++) {
    show('D')
    const offer = await exchange(net, id, [[53, [type.discover]]], signal, wait, [type.offer])
    if (offer === undefined) continue
    show('O')
    const server = offer.options.get(54)
    const wanted: Option[] = [
      [53, [type.request]],
      [50, bytesOf(offer.address)],
    ]
    if (server !== undefined) wanted.push([54, [...server]])
    for (let request = 0; request < tries && !signal.aborted; request++) {
      show('R')
      const answer = await exchange(net, id, wanted, signal, wait, [type.ack, type.nak])
      if (answer?.type === type.nak) break
      if (answer === undefined) continue
      show('A')
      return leaseOf(answer, offer)
    }
  }
  return undefined
}

/** Tells the server that the address is free again. */
export function release(net: Net, lease: Lease): void {
  const message = build(net, 0, lease.address, [
    [53, [type.release]],
    [54, bytesOf(lease.server)],
  ])
  void net.ip4.udp(lease.server, clientPort, serverPort, message)
}

type Option = readonly [code: number, value: readonly number[]]

async function exchange(
  net: Net,
  id: number,
  options: readonly Option[],
  signal: AbortSignal,
  wait: number,
  accepted: readonly number[],
): Promise<Message | undefined> {
  const { close } = net.openPort(clientPort)
  try {
    const data = build(net, id, 0, [...options, [55, [1, 3, 6, 15, 51]]])
    const datagram = { sourcePort: clientPort, destinationPort: serverPort, data }
    const send = async () => {
      net.ip4.broadcast(0, protocol.udp, buildUdp(datagram, net.ip4.pseudo(0, broadcast)))
      return 'sent' as const
    }
    const { answer } = await net.ask(send, wait, signal, (event) => {
      if (event.type !== 'udp' || event.datagram.destinationPort !== clientPort) return undefined
      const message = parse(event.datagram.data, id, net.mac)
      return message !== undefined && accepted.includes(message.type) ? message : undefined
    })
    return answer
  } finally {
    close()
  }
}

function build(net: Net, id: number, address: number, options: readonly Option[]): Uint8Array {
  const message = new Uint8Array(300)
  message.set([1, 1, 6, 0])
  write32(message, 4, id)
  // We cannot take a unicast to an address that is not ours yet.
  write16(message, 10, address === 0 ? 0x8000 : 0)
  write32(message, 12, address)
  message.set(net.mac, 28)
  write32(message, 236, magic)
  let at = optionsAt
  for (const [code, value] of [...options, [61, [1, ...net.mac]] as const]) {
    message.set([code, value.length, ...value], at)
    at += 2 + value.length
  }
  message[at] = 255
  return message
}

function parse(data: Uint8Array, id: number, mac: Uint8Array): Message | undefined {
  if (data.length < optionsAt || data[0] !== 2 || read32(data, 4) !== id || read32(data, 236) !== magic)
    return undefined
  if (!mac.every((byte, index) => data[28 + index] === byte)) return undefined
  const options = new Map<number, Uint8Array>()
  for (let at = optionsAt; at < data.length && data[at] !== 255; ) {
    const code = data[at] ?? 0
    const length = code === 0 ? -1 : (data[at + 1] ?? 0)
    if (length >= 0) options.set(code, data.slice(at + 2, at + 2 + length))
    at += 2 + length
  }
  return { type: options.get(53)?.[0] ?? 0, address: read32(data, 16), options }
}

function leaseOf({ address, options }: Message, offer: Message): Lease {
  const number = (code: number) => {
    const value = options.get(code) ?? offer.options.get(code)
    return value === undefined || value.length < 4 ? 0 : read32(value, 0)
  }
  const servers = options.get(6) ?? new Uint8Array(0)
  return {
    address,
    prefix: prefixOf(number(1)) ?? 24,
    gateway: number(3),
    dns: Array.from({ length: Math.min(2, Math.floor(servers.length / 4)) }, (_, index) => read32(servers, index * 4)),
    domain: new TextDecoder().decode(options.get(15) ?? new Uint8Array(0)).replace(/[^\x21-\x7e]/g, ''),
    server: number(54),
    seconds: number(51),
    began: Date.now(),
  }
}

const bytesOf = (address: number): number[] => formatIp4(address).split('.').map(Number)
