import type { FleetAgent } from '../../host-agent.ts'
import type { AskOwner } from '../placement/project-locator.ts'

/** The operations at each end of a link between two computes. */
export const gatewayNodes = (owner: AskOwner): FleetAgent['nodes'] => ({
  get: (ref) => owner(ref.project_id, ({ nodes }) => nodes.get(ref), ref.node_id),
  nioState: (ref, port) => owner(ref.project_id, ({ nodes }) => nodes.nioState(ref, port), ref.node_id),
  attachNio: (ref, port, nio, origin) =>
    owner(ref.project_id, ({ nodes }) => nodes.attachNio(ref, port, nio, origin), ref.node_id),
  detachNio: (ref, port) => owner(ref.project_id, ({ nodes }) => nodes.detachNio(ref, port), ref.node_id),
})
