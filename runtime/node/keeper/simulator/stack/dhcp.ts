import { formatIp4, prefixOf } from './address.ts'
import { read32 } from './bytes.ts'
import { buildDhcp, type DhcpMessage, type DhcpOption, dhcpOption, messageType, parseDhcp } from './dhcp-message.ts'
import { protocol } from './ip4.ts'
import type { Net } from './net.ts'
import { dhcpClientPort, type SendResult } from './net-event.ts'
import { buildUdp } from './transport.ts'

const serverPort = 67
const waitMs = 1000
const tries = 3
const broadcast = 0xffffffff
/** Lease time of a lease that does not end (RFC 2131, 3.3), s. */
export const endless = 0xffffffff

/** A lease from a server (RFC 2131), with the configuration in its options (RFC 2132). */
export interface Lease {
  readonly address: number
  readonly prefix: number
  readonly gateway: number
  readonly dns: readonly number[]
  readonly domain: string
  readonly server: number
  readonly seconds: number
  /** Seconds from the beginning to the renewal with the same server (T1). */
  readonly renewal: number
  /** Seconds from the beginning to the renewal with any server (T2). */
  readonly rebinding: number
  /** By performance.now(), ms: a step of the wall clock must not end it. */
  readonly began: number
}

const { mask, router, dns, domain, seconds, renewal, rebinding } = dhcpOption
const wanted: DhcpOption = [dhcpOption.wanted, [mask, router, dns, domain, seconds, renewal, rebinding]]
const final: readonly number[] = [messageType.ack, messageType.nak]

/** Gets a lease: discover, offer, request, acknowledge. `show` gets a letter for each; undefined without a lease. */
export async function obtain(
  net: Net,
  name: string,
  show: (letter: string) => void,
  signal: AbortSignal,
): Promise<Lease | undefined> {
  const id = newId()
  const always: readonly DhcpOption[] = [...hostName(name), wanted]
  for (let attempt = 0; attempt < tries && !signal.aborted; attempt++) {
    show('D')
    const discover = buildDhcp({ type: messageType.discover, id, mac: net.mac, own: 0, options: always })
    const offer = await exchange(net, id, toAll(net, 0, discover), [messageType.offer], waitMs, signal)
    if (offer === undefined) continue
    show('O')
    const server = offer.options.get(dhcpOption.server)
    const options: DhcpOption[] = [[dhcpOption.address, bytesOf(offer.address)]]
    if (server !== undefined) options.push([dhcpOption.server, [...server]])
    const wish = buildDhcp({ type: messageType.request, id, mac: net.mac, own: 0, options: [...options, ...always] })
    for (let request = 0; request < tries && !signal.aborted; request++) {
      show('R')
      const answer = await exchange(net, id, toAll(net, 0, wish), final, waitMs, signal)
      if (answer?.type === messageType.nak) break
      if (answer === undefined) continue
      show('A')
      return leaseOf(answer, offer.options)
    }
  }
  return undefined
}

/** Renews a lease with its server, or with any. `refused`: the address must not be used any more; undefined: no answer. */
export async function renew(
  net: Net,
  lease: Lease,
  name: string,
  isForAll: boolean,
  maxMs: number,
  signal: AbortSignal,
): Promise<Lease | 'refused' | undefined> {
  const id = newId()
  const { address, server } = lease
  const message = buildDhcp({
    type: messageType.request,
    id,
    mac: net.mac,
    own: address,
    options: [...hostName(name), wanted],
  })
  const send = isForAll ? toAll(net, address, message) : () => net.ip4.udp(server, dhcpClientPort, serverPort, message)
  const answer = await exchange(net, id, send, final, Math.min(waitMs, maxMs), signal)
  if (answer === undefined) return undefined
  return answer.type === messageType.nak ? 'refused' : leaseOf(answer, new Map(), lease)
}

/** Releases the address. */
export function release(net: Net, { address, server }: Lease): void {
  const options: readonly DhcpOption[] = [[dhcpOption.server, bytesOf(server)]]
  const message = buildDhcp({ type: messageType.release, id: newId(), mac: net.mac, own: address, options })
  void net.ip4.udp(server, dhcpClientPort, serverPort, message)
}

type Send = () => Promise<SendResult>

const toAll =
  (net: Net, source: number, data: Uint8Array): Send =>
  async () => {
    const datagram = { sourcePort: dhcpClientPort, destinationPort: serverPort, data }
    net.ip4.broadcast(source, protocol.udp, buildUdp(datagram, net.ip4.pseudo(source, broadcast)))
    return 'sent'
  }

async function exchange(
  net: Net,
  id: number,
  send: Send,
  accepted: readonly number[],
  ms: number,
  signal: AbortSignal,
): Promise<DhcpMessage | undefined> {
  const { close } = net.openPort(dhcpClientPort)
  try {
    const { answer } = await net.ask(send, ms, signal, (event) => {
      if (event.type !== 'udp' || event.datagram.destinationPort !== dhcpClientPort) return undefined
      const message = parseDhcp(event.datagram.data, id, net.mac)
      return message !== undefined && accepted.includes(message.type) ? message : undefined
    })
    return answer
  } finally {
    close()
  }
}

/** The lease of an acknowledgement. Missing options are those of the offer, or of the lease before. */
function leaseOf({ address, options }: DhcpMessage, offered: DhcpMessage['options'], before?: Lease): Lease {
  const given = (code: number) => options.get(code) ?? offered.get(code)
  const number = (code: number) => {
    const value = given(code)
    return value === undefined || value.length < 4 ? undefined : read32(value, 0)
  }
  const servers = given(dhcpOption.dns)
  const domain = given(dhcpOption.domain)
  const mask = number(dhcpOption.mask)
  const seconds = number(dhcpOption.seconds) ?? before?.seconds ?? endless
  // A server may send times in another order than T1, T2 and the end.
  const rebinding = Math.min(number(dhcpOption.rebinding) ?? Math.floor(seconds * 0.875), seconds)
  const renewal = Math.min(number(dhcpOption.renewal) ?? Math.floor(seconds / 2), rebinding)
  return {
    address: address === 0 ? (before?.address ?? 0) : address,
    prefix: (mask === undefined ? before?.prefix : prefixOf(mask)) ?? 24,
    gateway: number(dhcpOption.router) ?? before?.gateway ?? 0,
    dns: servers === undefined ? (before?.dns ?? []) : addressesOf(servers).slice(0, 2),
    domain:
      domain === undefined ? (before?.domain ?? '') : new TextDecoder().decode(domain).replace(/[^\x21-\x7e]/g, ''),
    server: number(dhcpOption.server) ?? before?.server ?? 0,
    seconds,
    renewal,
    rebinding,
    began: performance.now(),
  }
}

const addressesOf = (bytes: Uint8Array): number[] =>
  Array.from({ length: Math.floor(bytes.length / 4) }, (_, index) => read32(bytes, index * 4))

/** The name of a pc as a name of a host (RFC 2132, 3.14; RFC 1123, 2.1); nothing without a letter or digit of ASCII. */
function hostName(name: string): DhcpOption[] {
  const label = name
    .replace(/[^a-z0-9-]+/gi, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 63)
  return label === '' ? [] : [[dhcpOption.hostName, [...new TextEncoder().encode(label)]]]
}

const newId = (): number => Math.floor(Math.random() * 0xffffffff)
const bytesOf = (address: number): number[] => formatIp4(address).split('.').map(Number)
