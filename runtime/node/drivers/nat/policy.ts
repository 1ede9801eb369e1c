import type { BlockList } from 'node:net'
import { bytesOf4 } from '../../../../src/model/kinds/nat-subnet.ts'
import { networkList } from '../../os/host/networks.ts'
import { textOf } from './addresses.ts'

export interface PolicyOptions {
  /** Addresses and networks that are reachable although they are of the host, or private. */
  readonly reach: readonly string[]
  readonly isLocal: boolean
  /** Whether packets to the address leave the host, to one destination. */
  readonly isElsewhere: (address: Uint8Array) => boolean
}

/** Never the address of another host: this network, loopback, link-local, multicast, broadcast. */
const never = [
  ...['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '255.255.255.255/32'],
  ...['fe80::/10', 'ff00::/8'],
]
/** Not on the Internet (IANA, special-purpose address registries): reachable in local mode only. */
const unlisted = [
  ...['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24', '192.168.0.0/16'],
  ...['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '240.0.0.0/4'],
  ...['64:ff9b:1::/48', '100::/64', '2001:db8::/32', '3fff::/20', '5f00::/16', 'fc00::/7', 'fec0::/10'],
]
const maxKnown = 4096

/** Decides which addresses guests may send to. Results are cached until `forget`. */
export class Policy {
  readonly #isLocal: boolean
  readonly #isElsewhere: PolicyOptions['isElsewhere']
  readonly #reach: BlockList
  readonly #known4 = new Map<number, boolean>()
  readonly #known6 = new Map<string, boolean>()

  constructor({ reach, isLocal, isElsewhere }: PolicyOptions) {
    this.#isLocal = isLocal
    this.#isElsewhere = isElsewhere
    this.#reach = networkList(reach)
  }

  /** Clears the cache, as addresses or routes of the host have changed. */
  forget(): void {
    this.#known4.clear()
    this.#known6.clear()
  }

  allows4(address: number): boolean {
    const known = this.#known4.get(address)
    if (known !== undefined) return known
    const allows = this.names(bytesOf4(address)) || this.#isOther(bytesOf4(address))
    if (this.#known4.size >= maxKnown) this.#known4.clear()
    this.#known4.set(address, allows)
    return allows
  }

  allows6(address: Uint8Array): boolean {
    const key = String.fromCharCode(...address)
    const known = this.#known6.get(key)
    if (known !== undefined) return known
    const allows = this.#judge6(address)
    if (this.#known6.size >= maxKnown) this.#known6.clear()
    this.#known6.set(key, allows)
    return allows
  }

  /** Whether the setting `nat.reach` names the address. */
  names(address: Uint8Array): boolean {
    return isIn(this.#reach, address)
  }

  #isOther(address: Uint8Array): boolean {
    if (isIn(neverList, address) || (!this.#isLocal && isIn(unlistedList, address))) return false
    return this.#isElsewhere(address)
  }

  /** An IPv6 address with an embedded IPv4 address is allowed only if that is allowed, too. */
  #judge6(address: Uint8Array): boolean {
    const inside = (start: number) => {
      const [a = 0, b = 0, c = 0, d = 0] = address.subarray(start, start + 4)
      return this.allows4(((a << 24) | (b << 16) | (c << 8) | d) >>> 0)
    }
    // Unspecified, loopback, IPv4-mapped and -compatible (RFC 4291), and Teredo (RFC 4380).
    if (address[0] === 0 && !startsWith(address, nat64)) return false
    if (startsWith(address, teredo)) return false
    if (this.names(address)) return true
    if (startsWith(address, nat64) && !inside(12)) return false
    if (startsWith(address, sixToFour) && !inside(2)) return false
    return this.#isOther(address)
  }
}

/** RFC 6052, RFC 3056, RFC 4380. */
const nat64 = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]
const sixToFour = [0x20, 0x02]
const teredo = [0x20, 0x01, 0, 0]
const startsWith = (address: Uint8Array, start: readonly number[]): boolean =>
  start.every((byte, index) => address[index] === byte)

const isIn = (list: BlockList, address: Uint8Array): boolean =>
  list.check(textOf(address), address.length === 4 ? 'ipv4' : 'ipv6')
const neverList = networkList(never)
const unlistedList = networkList(unlisted)
