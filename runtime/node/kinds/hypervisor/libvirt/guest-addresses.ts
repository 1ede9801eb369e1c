import { createSocket } from 'node:dgram'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { isForbidden } from '../../../../../src/client/address.ts'
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

/** Nobody listens there (RFC 863). */
const discardPort = 9

/** Where guests are. */
export class GuestAddresses {
  readonly #client: LibvirtClient
  /** Where each was, by its id. */
  readonly #before = new Map<string, readonly string[]>()

  constructor(client: LibvirtClient) {
    this.#client = client
  }

  /** Addresses of the adapters of a VM that runs, which have these MACs, IPv4 first; none that leads nowhere from here. */
  async find(domain: Domain, macs: ReadonlySet<string>): Promise<string[]> {
    const found = new Set<string>()
    for (const source of Object.values(sources)) {
      for (const address of await addressesOf(this.#client, domain, source)) found.add(address)
    }
    const table = await readFile('/proc/net/arp', 'utf8').catch(() => '')
    for (const { address, mac } of neighbours(table)) if (macs.has(mac)) found.add(address)
    const reachable = [...found].filter(isReachable).sort((a, b) => isIP(a) - isIP(b))
    if (reachable.length > 0) this.#before.set(domain.uuid, reachable)
    // A guest that was woken up says nothing by itself: the kernel asks for it, and its answer is in the table the next time.
    else await Promise.all((this.#before.get(domain.uuid) ?? []).map(poke))
    return reachable
  }
}

/** Has the kernel find out who has an address; what is sent means nothing to anybody. */
async function poke(address: string): Promise<void> {
  const socket = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4')
  await new Promise((resolve) => {
    socket.once('error', resolve)
    socket.send('', discardPort, address, resolve)
  })
  socket.close()
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
