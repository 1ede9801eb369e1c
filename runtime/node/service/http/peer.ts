import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { ServerRequest } from 'srvx'
import { plainAddress } from '../../../../src/lib/http/network.ts'
import type { Peer } from '../../../../src/server/access/peer.ts'
import type { Config } from '../config/config.ts'

/** Addresses and networks as a list. Throws for one that is neither an address nor a network such as 10.0.0.0/8. */
export function networkList(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', prefix, ...more] = network.split('/')
    const version = isIP(address)
    const bits = prefix === undefined || /^\d{1,3}$/.test(prefix) ? Number(prefix ?? (version === 4 ? 32 : 128)) : -1
    if (version === 0 || more.length > 0 || bits < 0 || bits > (version === 4 ? 32 : 128)) {
      throw new Error(`expected an address or a network such as 10.0.0.0/8, got ${JSON.stringify(network)}`)
    }
    list.addSubnet(address, bits, version === 4 ? 'ipv4' : 'ipv6')
  }
  return list
}

/** Whether an address is in the list; no other text is. */
export const isIn = (list: BlockList, address: string): boolean =>
  isIP(address) !== 0 && list.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6')

/** Who is at the other end of a request to the app. */
export function peerOf(config: Config): (request: Request) => Peer {
  const of = peerOfMessage(config)
  return (request) => {
    const message = (request as ServerRequest).runtime?.node?.req as IncomingMessage | undefined
    return message === undefined ? { address: '', isSecure: false } : of(message)
  }
}

/** The other end of requests: the client that a trusted proxy names, else the host that opened the connection. */
export function peerOfMessage(config: Config): (message: IncomingMessage) => Peer {
  let networks: readonly string[] | undefined
  let proxies = new BlockList()
  const isTrusted = (it: string) => isIn(proxies, it)
  return ({ socket, headers }) => {
    const { trusted_proxies } = config.current
    if (networks !== trusted_proxies) {
      networks = trusted_proxies
      proxies = networkList(trusted_proxies)
    }
    const address = plainAddress(socket.remoteAddress ?? '')
    const isSecure = (socket as TLSSocket).encrypted === true
    if (trusted_proxies.length === 0 || !isTrusted(address)) return { address, isSecure }
    return {
      address: clientOf(headers, isTrusted) ?? address,
      isSecure: isForwardedSecure(headers) ?? isSecure,
    }
  }
}

/**
 * The last address that no trusted proxy has: everything before it a client may have written. A proxy adds one header, and passes
 * the other one on as the client sent it: where both are there, they have to say the same.
 */
function clientOf(headers: IncomingHttpHeaders, isTrusted: (address: string) => boolean): string | undefined {
  const [byName, standard] = [textOf(headers['x-forwarded-for']), headers.forwarded]
  const last = (hops: readonly (string | undefined)[]) => {
    for (const hop of hops.toReversed()) if (hop === undefined || !isTrusted(hop)) return hop
    return hops[0]
  }
  const found = [
    ...(byName === undefined ? [] : [last(byName.split(',').map(addressIn))]),
    ...(standard === undefined ? [] : [last(standard.split(',').map((hop) => addressIn(parameter(hop, 'for') ?? '')))]),
  ]
  return found.every((it) => it === found[0]) ? found[0] : undefined
}

/** Several headers of a name are one list (RFC 9110, 5.3). */
const textOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(',') : value

/** What the nearest proxy says. */
function isForwardedSecure(headers: IncomingHttpHeaders): boolean | undefined {
  const byName = textOf(headers['x-forwarded-proto'])?.split(',').at(-1)?.trim()
  const standard = parameter(headers.forwarded?.split(',').at(-1) ?? '', 'proto')
  const said = [byName, standard].filter((it) => it !== undefined)
  return said.length === 0 ? undefined : said.every((it) => it.toLowerCase() === 'https')
}

/** A parameter of one element of Forwarded (RFC 7239). */
const parameter = (element: string, name: string): string | undefined =>
  new RegExp(`(?:^|;)\\s*${name}\\s*=\\s*(?:"([^"]*)"|([^;\\s]*))`, 'i')
    .exec(element)
    ?.slice(1)
    .find((address) => address !== undefined)

/** `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`; undefined for anything else, such as `unknown`. */
function addressIn(text: string): string | undefined {
  const bare = text.trim()
  const address = /^\[([^\]]+)\](?::\d+)?$/.exec(bare)?.[1] ?? /^([\d.]+):\d+$/.exec(bare)?.[1] ?? bare
  return isIP(address) === 0 ? undefined : plainAddress(address)
}
