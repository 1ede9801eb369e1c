import { createSocket } from 'node:dgram'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { isForbidden } from '../../../../../src/compute/remote/address.ts'
import type { LibvirtClient } from './client.ts'
import { type Domain, writeDomain } from './domain.ts'
import { LibvirtError } from './libvirt-error.ts'
import { procedures } from './protocol.ts'
import { type XdrReader, XdrWriter } from './xdr.ts'

/**
 * virDomainInterfaceAddressesSource, the surest first: DHCP leases of libvirt's networks, and the guest agent. The third source,
 * ARP, fails in libvirt 9 ("wrong nlmsg len"), so the ARP table of the kernel is read instead.
 */
const sources = { lease: 0, agent: 1 } as const
const lookMs = 15_000

/** The discard port (RFC 863). */
const discardPort = 9

/** Finds the addresses of guests. */
export class GuestAddresses {
  readonly #client: LibvirtClient
  /** The last addresses, by UUID. */
  readonly #last = new Map<string, readonly string[]>()

  constructor(client: LibvirtClient) {
    this.#client = client
  }

  /** The reachable addresses of a running VM with these MAC addresses, IPv4 first. */
  async find(domain: Domain, macs: ReadonlySet<string>): Promise<string[]> {
    const found = new Set<string>()
    for (const source of Object.values(sources)) {
      for (const address of await addressesOf(this.#client, domain, source)) found.add(address)
    }
    const table = await readFile('/proc/net/arp', 'utf8').catch(() => '')
    for (const { address, mac } of neighbours(table)) if (macs.has(mac)) found.add(address)
    const reachable = [...found].filter(isReachable).sort((a, b) => isIP(a) - isIP(b))
    if (reachable.length > 0) this.#last.set(domain.uuid, reachable)
    // A resumed guest sends nothing, so a datagram makes the kernel resolve its address for the next call.
    else await Promise.all((this.#last.get(domain.uuid) ?? []).map(triggerArp))
    return reachable
  }
}

/** Makes the kernel resolve an address by ARP, with an empty datagram. */
async function triggerArp(address: string): Promise<void> {
  const socket = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4')
  await new Promise((resolve) => {
    socket.once('error', resolve)
    socket.send('', discardPort, address, resolve)
  })
  socket.close()
}

/** Parses /proc/net/arp (proc(5)). */
export const neighbours = (table: string): { address: string; mac: string }[] =>
  table
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [address = '', , flags, mac = ''] = line.split(/\s+/)
      // ATF_COM (2): the entry is complete (arp(7)).
      return (Number(flags) & 2) === 0 ? [] : [{ address, mac: mac.toLowerCase() }]
    })

/** Empty for a source that the VM or libvirt does not have. */
async function addressesOf(client: LibvirtClient, domain: Domain, source: number): Promise<string[]> {
  const args = writeDomain(new XdrWriter(), domain).uint(source).uint(0)
  try {
    return (await client.call(procedures.domainInterfaceAddresses, args, lookMs)).array(readInterface).flat()
  } catch (error) {
    if (error instanceof LibvirtError && error.reason === 'refused') return []
    throw error
  }
}

/** remote_domain_interface. */
function readInterface(reader: XdrReader): string[] {
  reader.string()
  reader.maybe((it) => it.string())
  return reader.array((it) => {
    it.int()
    const address = it.string()
    it.uint()
    return address
  })
}

/** Neither loopback, nor unspecified, nor link-local. */
const isReachable = (address: string): boolean =>
  isIP(address) !== 0 && !/^(127\.|::1$|0\.|::$)/.test(address) && !isForbidden(address)
