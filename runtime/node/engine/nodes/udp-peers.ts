import { BlockList, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { isForbidden, isOwnAddress } from '../../../../src/compute/remote/address.ts'
import { forbidden } from '../../../../src/lib/errors/api-error.ts'
import { networkList } from '../../os/host/networks.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import { refuseLinkLocal } from './resolve-host.ts'

/** Where the UDP links of a project may lead. */
export interface PeerRules {
  /** In local mode they lead anywhere. */
  readonly isLocal: boolean
  /** The setting udp_peers: networks of other hosts, and addresses of this one. */
  readonly networks: readonly string[]
  readonly ports: Pick<PortAllocator, 'ownerOfUdp'>
}

/** The numeric address and the port at the other end of a link. */
export interface UdpPeer {
  readonly address: string
  readonly port: number
}

const unspecified = networkList(['0.0.0.0/8', '::'])

/**
 * 403 unless the links of a project may lead to the address: at this host to ports of the same project, elsewhere to the networks of
 * the setting udp_peers. A network of it does not stand for this host, whose addresses have to be listed as such. `isOwnLink`: of
 * a link that this service or its gateway makes; no client has chosen its address.
 */
export function requirePeer(
  { address, port }: UdpPeer,
  { projectId, isOwnLink }: { readonly projectId: string; readonly isOwnLink: boolean },
  { isLocal, networks, ports }: PeerRules,
): void {
  if (isLocal) return
  refuseLinkLocal(address)
  const [plain = ''] = address.split('%')
  if (isForbidden(plain) || isIn(unspecified, plain))
    throw forbidden(
      `rhost: ${address} is not the address of one host (multicast, broadcast, unspecified, or of a metadata service); only local mode allows it`,
    )
  if (isOwnLink) return
  if (isOwnAddress(plain) || isIn(addressesOfHost(), plain)) {
    if (isIn(networkList(networks.filter(namesThisHost)), plain)) return
    const owner = ports.ownerOfUdp(port)
    if (owner === projectId || owner?.startsWith(`${projectId}/`) === true) return
    throw forbidden(
      `rhost: ${address} is an address of this host, and UDP port ${port} is not reserved for the project; outside local mode a link to this host needs a port from POST .../ports/udp`,
    )
  }
  if (isIn(networkList(networks), plain)) return
  throw forbidden(
    `rhost: ${address} is not in a network of the setting udp_peers, which lists the hosts that UDP links may reach outside local mode`,
  )
}

/** Whether an entry is a single address, or a network of loopback. */
const namesThisHost = (entry: string): boolean => !entry.includes('/') || entry.startsWith('127.')

/** Read each time: addresses come and go. */
function addressesOfHost(): BlockList {
  const list = new BlockList()
  for (const { address, family } of Object.values(networkInterfaces()).flatMap((all) => all ?? []))
    list.addAddress(address, family === 'IPv6' ? 'ipv6' : 'ipv4')
  return list
}

/** Also for an IPv4 address that is mapped into IPv6 (RFC 4291, 2.5.5.2). */
const isIn = (list: BlockList, address: string): boolean => list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
