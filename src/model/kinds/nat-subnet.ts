/** An IPv4 address in a schema. */
const octet = '(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)'
export const ip4Pattern = `${octet}(?:\\.${octet}){3}`

export const numberOf4 = (address: string): number =>
  address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
export const bytesOf4 = (address: number): Uint8Array =>
  Uint8Array.of(address >>> 24, (address >>> 16) & 0xff, (address >>> 8) & 0xff, address & 0xff)
export const textOf4 = (address: number): string => bytesOf4(address).join('.')

/** The network of the guests of a nat that is given none. */
export const defaultSubnet = '192.168.122.0/24'

/** The domain of the guests with names: it is for private use (ICANN, 2024). */
export const guestDomain = 'internal'

/** The IPv4 network of the guests of a nat. */
export interface Subnet {
  readonly network: number
  readonly mask: number
  /** Gateway, DHCP server and resolver. */
  readonly gateway: number
  /** Stands for the loopback of the host. */
  readonly host: number
  /** The addresses that DHCP gives. */
  readonly first: number
  readonly last: number
  readonly broadcast: number
}

const sizes = { largest: 8, smallest: 28 } as const
/** Most addresses that DHCP gives. */
const maxLeases = 4096

/** The subnet of a text such as `192.168.122.0/24`; undefined unless it is a usable network of /8 to /28. */
export function subnetOf(text: string): Subnet | undefined {
  const [address = '', length = ''] = text.split('/')
  const bits = Number(length)
  const parts = address.split('.').map(Number)
  if (parts.length !== 4 || parts.some((part) => part > 255)) return undefined
  if (!(bits >= sizes.largest && bits <= sizes.smallest)) return undefined
  const [network, mask] = [numberOf4(address), (0xffffffff << (32 - bits)) >>> 0]
  const [start = 0] = parts
  if ((network & mask) >>> 0 !== network || start === 0 || start === 127 || start >= 224) return undefined
  const broadcast = (network | ~mask) >>> 0
  // Lower addresses are for static configuration.
  const first = network + (bits <= 24 ? 10 : 3)
  return {
    network,
    mask,
    gateway: network + 1,
    host: network + 2,
    first,
    last: Math.min(broadcast, first + maxLeases) - 1,
    broadcast,
  }
}
