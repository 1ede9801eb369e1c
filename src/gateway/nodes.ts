import type { LinkAgent, SharedAgent } from '../host-agent.ts'
import type { AskOwner } from './project-locator.ts'

/** What a link between two computes takes at each end. */
export const gatewayNodes = (owner: AskOwner): SharedAgent['nodes'] => ({
  get: (ref) => owner(ref.project_id, ({ nodes }) => nodes.get(ref)),
  nioState: (ref, port) => owner(ref.project_id, ({ nodes }) => nodes.nioState(ref, port)),
  attachNio: (ref, port, nio) => owner(ref.project_id, ({ nodes }) => nodes.attachNio(ref, port, nio)),
  detachNio: (ref, port) => owner(ref.project_id, ({ nodes }) => nodes.detachNio(ref, port)),
})

/** Links are where the project is. */
export const gatewayLinks = (owner: AskOwner): LinkAgent => ({
  join: (project, ...of) => owner(project, ({ links }) => links.join(project, ...of)),
  joinAll: (project, all) => owner(project, ({ links }) => links.joinAll(project, all)),
  update: (project, id, changes) => owner(project, ({ links }) => links.update(project, id, changes)),
  remove: (project, id) => owner(project, ({ links }) => links.remove(project, id)),
  state: (project, id) => owner(project, ({ links }) => links.state(project, id)),
  states: (project) => owner(project, ({ links }) => links.states(project)),
})
