const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i

/** An IPv4 address that came over IPv6 (RFC 4291, 2.5.5.2), written as such; any other address as it is, without its zone. */
export function plainAddress(address: string): string {
  const [bare = ''] = address.split('%', 1)
  return mapped.exec(bare)?.[1] ?? bare.toLowerCase()
}

/** The prefix that identifies one client: the whole IPv4 address, or the first 64 bits of an IPv6 address. */
export function networkOf(address: string): string {
  const plain = plainAddress(address)
  if (!plain.includes(':')) return plain
  const [head = '', tail] = plain.split('::', 2)
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - first.length - last.length)
  const groups = [...first, ...Array.from({ length: zeros }, () => '0'), ...last].slice(0, 4)
  return `${groups.map((group) => group.replace(/^0+(?=.)/, '')).join(':')}::/64`
}

export const isLoopback = (address: string): boolean => {
  const plain = plainAddress(address)
  return /^127\./.test(plain) || plain === '::1'
}
