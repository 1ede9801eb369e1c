import { isIP } from 'node:net'
import { isForbidden } from '../../../../../src/fleet/address.ts'
import type { LibvirtClient } from './client.ts'
import { type Domain, writeDomain } from './domain.ts'
import { LibvirtError } from './libvirt-error.ts'
import { procedures } from './protocol.ts'
import { type XdrReader, XdrWriter } from './xdr.ts'

/** virDomainInterfaceAddressesSource, the surest first: leases of libvirt's networks, what the guest's agent says, ARP of this host. */
const sources = { lease: 0, agent: 1, arp: 2 } as const
const lookMs = 15_000

/** Addresses of the adapters of a VM that runs, IPv4 first; none that leads nowhere from here. */
export async function guestAddresses(client: LibvirtClient, domain: Domain): Promise<string[]> {
  const found = new Set<string>()
  for (const source of Object.values(sources)) {
    for (const address of await addressesOf(client, domain, source)) found.add(address)
  }
  return [...found].filter(isReachable).sort((a, b) => isIP(a) - isIP(b))
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
