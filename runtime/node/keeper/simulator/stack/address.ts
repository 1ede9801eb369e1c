import { read16 } from './bytes.ts'

/** MAC addresses are six bytes, IPv4 addresses unsigned numbers, IPv6 addresses sixteen bytes. */
export type Mac = Uint8Array
export type Ip6 = Uint8Array

export const broadcastMac: Mac = new Uint8Array(6).fill(255)
export const parseMac = (text: string): Mac => Uint8Array.from(text.split(':'), (part) => Number.parseInt(part, 16))
export const formatMac = (mac: Uint8Array): string =>
  Array.from(mac, (byte) => byte.toString(16).padStart(2, '0')).join(':')

/** Parses a dotted IPv4 address; undefined when it is invalid. */
export function parseIp4(text: string): number | undefined {
  const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)?.slice(1).map(Number)
  if (parts === undefined || parts.some((part) => part > 255)) return undefined
  return parts.reduce((address, part) => address * 256 + part, 0)
}

export const formatIp4 = (address: number): string => [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.')

export const maskOf = (prefix: number): number => (prefix === 0 ? 0 : (0xffffffff << (32 - prefix)) >>> 0)

/** The prefix length of a netmask; undefined when it is invalid. */
export function prefixOf(mask: number): number | undefined {
  for (let prefix = 0; prefix <= 32; prefix++) if (maskOf(prefix) === mask) return prefix
  return undefined
}

/** Parses an IPv6 address (RFC 4291, 2.2); undefined when it is invalid. */
export function parseIp6(text: string): Ip6 | undefined {
  if (!/^[0-9a-f:.]+$/i.test(text) || !text.includes(':')) return undefined
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const [head = [], tail = []] = halves.map((half) => (half === '' ? [] : half.split(':').flatMap(wordsOf)))
  const words =
    halves.length === 2
      ? [...head, ...new Array<number>(Math.max(0, 8 - head.length - tail.length)).fill(0), ...tail]
      : head
  if (words.length !== 8 || words.some((word) => !Number.isInteger(word) || word > 0xffff)) return undefined
  return Uint8Array.from(words.flatMap((word) => [word >>> 8, word & 255]))
}

function wordsOf(part: string): number[] {
  const ip4 = parseIp4(part)
  if (ip4 !== undefined) return [ip4 >>> 16, ip4 & 0xffff]
  return [/^[0-9a-f]{1,4}$/i.test(part) ? Number.parseInt(part, 16) : Number.NaN]
}

/** Formats by RFC 5952: the longest run of zeros is shortened. */
export function formatIp6(address: Ip6): string {
  const words = Array.from({ length: 8 }, (_, index) => read16(address, index * 2).toString(16))
  let [start, length] = [-1, 1]
  for (let from = 0; from < 8; from++) {
    let to = from
    while (words[to] === '0') to++
    if (to - from > length) [start, length] = [from, to - from]
  }
  if (start < 0) return words.join(':')
  return `${words.slice(0, start).join(':')}::${words.slice(start + length).join(':')}`
}

/** A prefix of eight bytes with the interface identifier of a MAC address (RFC 4291, appendix A). */
export function withInterfaceId(prefix: Uint8Array, mac: Mac): Ip6 {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = mac
  return Uint8Array.of(...prefix.subarray(0, 8), a ^ 2, b, c, 0xff, 0xfe, d, e, f)
}

export const linkLocalPrefix = Uint8Array.of(0xfe, 0x80, 0, 0, 0, 0, 0, 0)
export const isLinkLocal = (address: Ip6): boolean => address[0] === 0xfe && ((address[1] ?? 0) & 0xc0) === 0x80
export const isMulticast6 = (address: Ip6): boolean => address[0] === 0xff
/** Whether an address is that of one host on a network: neither unspecified, nor loopback, nor multicast (RFC 4291, 2.5). */
export const isHost6 = (address: Ip6): boolean =>
  !isMulticast6(address) && !(address.subarray(0, 15).every((byte) => byte === 0) && (address[15] ?? 0) < 2)
export const allNodes: Ip6 = Uint8Array.of(0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
export const allRouters: Ip6 = Uint8Array.of(0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2)

/** The solicited-node multicast address (RFC 4291, 2.7.1). */
export const solicitedNode = (address: Ip6): Ip6 =>
  Uint8Array.of(0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, ...address.subarray(13))
/** The Ethernet multicast address (RFC 2464, 7). */
export const multicastMac = (address: Ip6): Mac => Uint8Array.of(0x33, 0x33, ...address.subarray(12))

export function samePrefix(a: Ip6, b: Ip6, prefix: number): boolean {
  for (let bit = 0; bit < prefix; bit++) {
    const mask = 0x80 >>> (bit & 7)
    if (((a[bit >> 3] ?? 0) & mask) !== ((b[bit >> 3] ?? 0) & mask)) return false
  }
  return true
}

export const equalBytes = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, index) => byte === b[index])
