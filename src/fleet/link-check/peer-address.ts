import { connectHost, isLoopbackHost } from '../../compute/remote/address.ts'
import { notFound } from '../../lib/errors/api-error.ts'
import { type Compute, tunnelled } from '../../model/compute.ts'
import type { UdpAddress } from '../../model/link-check.ts'
import type { ProjectLocator } from '../placement/project-locator.ts'
import type { Fleet } from '../pool/fleet.ts'
import { checkedAddresses, type ReservedPort } from './link-check.ts'

/** A UDP port that was reserved for a node. */
export interface ReservedNodePort {
  readonly project_id: string
  readonly node_id: string
  readonly udp_port: number
}

/** For each end of a link: the address and port at which it reaches the other end. */
export type PeerAddresses = readonly [UdpAddress, UdpAddress]

/** See `Context.peers`. */
export const peersOfNodes =
  (fleet: Fleet, locator: Pick<ProjectLocator, 'find'>) =>
  async (ends: readonly [ReservedNodePort, ReservedNodePort]): Promise<PeerAddresses> => {
    const find = async ({ project_id, node_id, udp_port }: ReservedNodePort): Promise<ReservedPort> => {
      const member = await locator.find(project_id, node_id)
      if (member !== undefined) return { compute_id: member.id, project_id, udp_port }
      throw notFound('nodes: one of the projects is not on any compute', { code: 'no-such-project' })
    }
    return peerAddresses(
      fleet,
      await Promise.all([find(ends[0]), find(ends[1])]),
      'attach the NIOs with addresses that you choose',
    )
  }

/** The addresses of two ports on one compute. */
export const peersOnOneHost = ([a, b]: readonly [
  Pick<ReservedPort, 'udp_port'>,
  Pick<ReservedPort, 'udp_port'>,
]): PeerAddresses => [
  { address: '127.0.0.1', port: b.udp_port },
  { address: '127.0.0.1', port: a.udp_port },
]

/**
 * The addresses at which two reserved ports reach each other: the registered addresses of the computes, else those that a link check finds.
 * 409, with what to do, when there are none.
 */
export async function peerAddresses(
  fleet: Fleet,
  ends: readonly [ReservedPort, ReservedPort],
  toDo: string,
): Promise<PeerAddresses> {
  const [a, b] = ends
  if (a.compute_id === b.compute_id) return peersOnOneHost(ends)
  const [ours, theirs] = await Promise.all([fleet.get(a.compute_id), fleet.get(b.compute_id)])
  if (!isKnownTo(ours, theirs) || !isKnownTo(theirs, ours))
    return checkedAddresses(
      fleet,
      [
        { ...a, compute: ours },
        { ...b, compute: theirs },
      ],
      toDo,
    )
  return [
    { address: connectHost(theirs.host), port: b.udp_port },
    { address: connectHost(ours.host), port: a.udp_port },
  ]
}

/** Whether one compute reaches another at the address by which the gateway does. */
function isKnownTo(ours: Compute, theirs: Compute): boolean {
  if (theirs.protocol === tunnelled) return false
  if (!isLoopbackHost(connectHost(theirs.host))) return true
  return ours.protocol !== tunnelled && isLoopbackHost(connectHost(ours.host))
}
