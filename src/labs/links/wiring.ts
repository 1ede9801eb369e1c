import { type ReservedPort, reserveApart } from '../../fleet/link-check/link-check.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { mapLimit } from '../../lib/async/map-limit.ts'
import { ignoreNotFound } from '../../lib/errors/api-error.ts'
import { Revert } from '../../lib/revert.ts'
import type { DirectLink, DirectLinkJoin } from '../../model/direct-link.ts'
import type { LabLinkEnd } from '../../model/lab/link.ts'
import type { Nio } from '../../model/schema/nio.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import type { LinkRecord } from '../lab/document.ts'
import type { Lab } from '../lab/lab.ts'
import { createOrCleanUp, linkOrphan } from '../lab/leftovers.ts'
import { nodeRefOf, portRefOf } from '../lab/node-on-compute.ts'
import type { Labs } from '../service.ts'
import { type Ends, type FoundEnd, findEnd } from './link-ends.ts'
import { keepState } from './link-states.ts'

/** The filters of each direction of a link. */
const filtersOf = ({ filters, filters_ab, filters_ba }: LinkRecord) => ({
  filters_ab: { ...filters, ...filters_ab },
  filters_ba: { ...filters, ...filters_ba },
})

/** The options of the NIO at one end, which apply to frames that leave it. */
const optionsOf = (record: LinkRecord, end: 0 | 1) => ({
  filters: end === 0 ? filtersOf(record).filters_ab : filtersOf(record).filters_ba,
  suspend: record.suspend,
})

/** The input of a direct link for its compute. */
export function directOf(lab: Lab, record: LinkRecord): DirectLinkJoin {
  const portOf = ({ node_id, adapter_number, port_number }: LabLinkEnd) => ({
    node_type: nodeRefOf(lab, lab.node(node_id)).kind,
    node_id,
    adapter_number,
    port_number,
  })
  const [a, b] = record.nodes as unknown as readonly [LabLinkEnd, LabLinkEnd]
  return { link_id: record.link_id, nodes: [portOf(a), portOf(b)], ...filtersOf(record), suspend: record.suspend }
}

/** Creates a direct link on its compute, or changes it. */
function putLink(lab: Lab, computeId: string, record: LinkRecord, agentFor: ComputeAgents): Promise<DirectLink> {
  const { link_id, nodes, ...settings } = directOf(lab, record)
  return agentFor(computeId).links.join(lab.id, link_id, nodes, settings)
}

/** Attaches both endpoints, or neither; none of a link of a placeholder. */
export async function wire(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  ends: Ends,
  record: LinkRecord,
  agentFor: ComputeAgents,
): Promise<void> {
  if (record.wiring.type === 'none') return
  if (record.wiring.type === 'direct') {
    const { compute_id } = record.wiring
    const put = () => putLink(lab, compute_id, record, agentFor)
    keepState(lab, await createOrCleanUp(lab, put, linkOrphan(lab, compute_id, record.link_id, agentFor)))
    return
  }
  await using revert = new Revert(ignore('the client gets the first error'))
  const reserve = async ({ node: { compute_id } }: FoundEnd): Promise<ReservedPort> => ({
    compute_id,
    project_id: lab.id,
    udp_port: await agentFor(compute_id).projects.reserveUdpPort(lab.id),
  })
  const release = ({ compute_id, udp_port }: ReservedPort) =>
    agentFor(compute_id).projects.releaseUdpPort(lab.id, udp_port)
  const ports = await reserveApart([() => reserve(ends[0]), () => reserve(ends[1])], release, revert)
  const peers = await labs.computes.peers(ports)
  for (const [index, { node, end }] of ends.entries()) {
    const { address: rhost, port: rport } = peers[index as 0 | 1]
    const lport = ports[index as 0 | 1].udp_port
    const nio: Nio = { type: 'nio_udp', lport, rhost, rport, ...optionsOf(record, index as 0 | 1) }
    const { nodes } = agentFor(node.compute_id)
    const [ref, port] = [nodeRefOf(lab, node), portRefOf(end)]
    await revert.make(
      () => nodes.attachNio(ref, port, nio, 'service'),
      () => nodes.detachNio(ref, port),
    )
  }
  revert.commit()
}

export async function impair(lab: Lab, record: LinkRecord, agentFor: ComputeAgents): Promise<void> {
  if (record.wiring.type === 'none') return
  if (record.wiring.type === 'direct') {
    keepState(lab, await putLink(lab, record.wiring.compute_id, record, agentFor))
    return
  }
  for (const [index, end] of record.nodes.entries()) {
    const node = lab.node(end.node_id)
    const { nodes } = agentFor(node.compute_id)
    await nodes.updateNio(nodeRefOf(lab, node), portRefOf(end), optionsOf(record, index as 0 | 1))
  }
  lab.linksReadAt = 0
}

/** Detaches the NIOs at ports, whatever link they belong to. */
export async function detachEnds(lab: Lab, ends: readonly FoundEnd[], agentFor: ComputeAgents): Promise<void> {
  for (const { end, node } of ends)
    await agentFor(node.compute_id).nodes.detachNio(nodeRefOf(lab, node), portRefOf(end)).catch(ignoreNotFound)
}

/** Attaches a link as it was before `unwire`. A capture of it has ended: the next reading of its compute takes note of that. */
export async function wireAgain(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  record: LinkRecord,
  agentFor: ComputeAgents,
): Promise<void> {
  if (record.wiring.type === 'none') return
  const ends = record.nodes.map((end) => findEnd(lab, end)) as unknown as Ends
  await wire(labs, lab, ends, record, agentFor)
}

/** Detaches links that were attached in vain. */
export async function unwireAll(lab: Lab, records: readonly LinkRecord[], agentFor: ComputeAgents): Promise<void> {
  const failures: unknown[] = []
  await mapLimit(records, (record) => unwire(lab, record, agentFor).catch((error: unknown) => failures.push(error)))
  if (failures.length > 0) throw failures[0]
}

/** Detaches both endpoints; a missing one is skipped. */
export async function unwire(lab: Lab, record: LinkRecord, agentFor: ComputeAgents): Promise<void> {
  if (record.wiring.type === 'none') return
  if (record.wiring.type === 'direct')
    return agentFor(record.wiring.compute_id).links.remove(lab.id, record.link_id).catch(ignoreNotFound)
  for (const end of record.nodes) {
    const node = lab.document.nodes.get(end.node_id)
    if (node === undefined) continue
    await agentFor(node.compute_id).nodes.detachNio(nodeRefOf(lab, node), portRefOf(end)).catch(ignoreNotFound)
  }
}
