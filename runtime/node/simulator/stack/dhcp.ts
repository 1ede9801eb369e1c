import { formatIp4, prefixOf } from './address.ts'
import { read32 } from './bytes.ts'
import { buildDhcp, type DhcpMessage, type DhcpOption, dhcpOption, messageType, parseDhcp } from './dhcp-message.ts'
import { protocol } from './ip4.ts'
import type { Net } from './net.ts'
import type { SendResult } from './net-event.ts'
import { buildUdp } from './transport.ts'

const [clientPort, serverPort] = [68, 67]
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
  /** Milliseconds since 1970. */
  readonly began: number
}

const { mask, router, dns, domain, seconds, renewal, rebinding } = dhcpOption
const wanted: DhcpOption = [dhcpOption.wanted, [mask, router, dns, domain, seconds, renewal, rebinding]]
const final: readonly number[] = [messageType.ack, messageType.nak]

/** Gets a lease: discover, offer, request, acknowledge. `show` gets a letter for each; undefined without a lease. */
export async function obtain(
  net: Net,
  show: (letter: string) => void,
  signal: AbortSignal,
): Promise<Lease | undefined> {
  const id = newId()
  for (let attempt = 0; attempt < tries && !signal.aborted; attempt++) {
    show('D')
    const discover = buildDhcp({ type: messageType.discover, id, mac: net.mac, own: 0, options: [wanted] })
    const offer = await exchange(net, id, toAll(net, 0, discover), [messageType.offer], waitMs, signal)
    if (offer === undefined) continue
    show('O')
    const server = offer.options.get(dhcpOption.server)
    const options: DhcpOption[] = [[dhcpOption.address, bytesOf(offer.address)]]
    if (server !== undefined) options.push([dhcpOption.server, [...server]])
    const wish = buildDhcp({ type: messageType.request, id, mac: net.mac, own: 0, options: [...options, wanted] })
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
  isForAll: boolean,
  maxMs: number,
  signal: AbortSignal,
): Promise<Lease | 'refused' | undefined> {
  const id = newId()
  const { address, server } = lease
  const message = buildDhcp({ type: messageType.request, id, mac: net.mac, own: address, options: [wanted] })
  const send = isForAll ? toAll(net, address, message) : () => net.ip4.udp(server, clientPort, serverPort, message)
  const answer = await exchange(net, id, send, final, Math.min(waitMs, maxMs), signal)
  if (answer === undefined) return undefined
  return answer.type === messageType.nak ? 'refused' : leaseOf(answer, new Map(), lease)
}

/** Releases the address. */
export function release(net: Net, { address, server }: Lease): void {
  const options: readonly DhcpOption[] = [[dhcpOption.server, bytesOf(server)]]
  const message = buildDhcp({ type: messageType.release, id: newId(), mac: net.mac, own: address, options })
  void net.ip4.udp(server, clientPort, serverPort, message)
}

type Send = () => Promise<SendResult>

const toAll =
  (net: Net, source: number, data: Uint8Array): Send =>
  async () => {
    const datagram = { sourcePort: clientPort, destinationPort: serverPort, data }
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
  const { close } = net.openPort(clientPort)
  try {
    const { answer } = await net.ask(send, ms, signal, (event) => {
      if (event.type !== 'udp' || event.datagram.destinationPort !== clientPort) return undefined
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
  const number = (code: number) => {
    const value = options.get(code) ?? offered.get(code)
    return value === undefined || value.length < 4 ? undefined : read32(value, 0)
  }
  const servers = options.get(dhcpOption.dns) ?? new Uint8Array(0)
  const mask = number(dhcpOption.mask)
  const seconds = number(dhcpOption.seconds) ?? before?.seconds ?? endless
  // A server may send times in another order than T1, T2 and the end.
  const rebinding = Math.min(number(dhcpOption.rebinding) ?? Math.floor(seconds * 0.875), seconds)
  const renewal = Math.min(number(dhcpOption.renewal) ?? Math.floor(seconds / 2), rebinding)
  return {
    address: address === 0 ? (before?.address ?? 0) : address,
    prefix: (mask === undefined ? before?.prefix : prefixOf(mask)) ?? 24,
    gateway: number(dhcpOption.router) ?? before?.gateway ?? 0,
    dns: Array.from({ length: Math.min(2, Math.floor(servers.length / 4)) }, (_, index) => read32(servers, index * 4)),
    domain: new TextDecoder().decode(options.get(dhcpOption.domain) ?? new Uint8Array(0)).replace(/[^\x21-\x7e]/g, ''),
    server: number(dhcpOption.server) ?? before?.server ?? 0,
    seconds,
    renewal,
    rebinding,
    began: Date.now(),
  }
}

const newId = (): number => Math.floor(Math.random() * 0xffffffff)
const bytesOf = (address: number): number[] => formatIp4(address).split('.').map(Number)
