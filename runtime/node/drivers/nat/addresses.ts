import { isIPv6 } from 'node:net'

/** An IPv4 or IPv6 address in network order: 4 or 16 bytes. */
export function bytesOf(address: string): Uint8Array {
  if (!isIPv6(address)) return Uint8Array.from(address.split('.').map(Number))
  const groups = (text = '') => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)))
  const [head, tail] = address.split('::')
  const [before, after] = [groups(head), groups(tail)]
  const all = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
  return Uint8Array.from(all.flatMap((group) => [group >> 8, group & 0xff]))
}

/** The text of an address, as `bytesOf` takes it; IPv6 in full length. */
export function textOf(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  return Array.from({ length: 8 }, (_, at) =>
    (((bytes[2 * at] ?? 0) << 8) | (bytes[2 * at + 1] ?? 0)).toString(16),
  ).join(':')
}

/** The files of the leases and of the guests, in the directory of the node. */
export const leasesName = 'leases.json'
export const guestsName = 'guests.json'
