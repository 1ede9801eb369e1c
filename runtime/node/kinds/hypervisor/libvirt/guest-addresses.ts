import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { isForbidden } from '../../../../../src/fleet/address.ts'
import type { LibvirtClient } from './client.ts'
import { type Domain, writeDomain } from './domain.ts'
import { LibvirtError } from './libvirt-error.ts'
import { procedures } from './protocol.ts'
import { type XdrReader, XdrWriter } from './xdr.ts'

/**
 * virDomainInterfaceAddressesSource, the surest first: leases of libvirt's networks, and what the guest's agent says. Its third one,
 * ARP, fails in libvirt 9 ("wrong nlmsg len"), and libvirt is on this host: what the kernel knows is read here.
 */
const sources = { lease: 0, agent: 1 } as const
const lookMs = 15_000

/** Addresses of the adapters of a VM that runs, which have these MACs, IPv4 first; none that leads nowhere from here. */
export async function guestAddresses(
  client: LibvirtClient,
  domain: Domain,
  macs: ReadonlySet<string>,
): Promise<string[]> {
  const found = new Set<string>()
  for (const source of Object.values(sources)) {
    for (const address of await addressesOf(client, domain, source)) found.add(address)
  }
  const table = await readFile('/proc/net/arp', 'utf8').catch(() => '')
  for (const { address, mac } of neighbours(table)) if (macs.has(mac)) found.add(address)
  return [...found].filter(isReachable).sort((a, b) => isIP(a) - isIP(b))
}

/** The machines in the networks of this host that were heard of: /proc/net/arp. */
export function neighbours(table: string): { address: string; mac: string }[] {
  return table
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [address = '', , flags, mac = ''] = line.split(/\s+/)
      // ATF_COM: its MAC is known.
      return (Number(flags) & 2) === 0 ? [] : [{ address, mac: mac.toLowerCase() }]
    })
}

/** None for a source that the VM, or this libvirt, does not have. */
async function addressesOf(client: LibvirtClient, domain: Domain, source: number): Promise<string[]> {
  const args = writeDomain(new XdrWriter(), domain).uint(source).uint(0)
  try {
    return (await client.call(procedures.domainInterfaceAddresses, args, lookMs)).array(readInterface).flat()
  } catch (error) {
    if (error instanceof LibvirtError && error.code === 'refused') return []
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

/** Not that of the guest to itself, and not one of the link. */
function isReachable(address: string): boolean {
  return isIP(address) !== 0 && !/^(127\.|::1$|0\.|::$)/.test(address) && !isForbidden(address)
}
