import { connectHost, isLoopbackHost } from '../client/address.ts'
import { conflict, notFound } from '../errors/api-error.ts'
import type { Fleet } from '../fleet/fleet.ts'
import type { NodePlace } from '../http/endpoint.ts'
import { type Compute, tunnelled } from '../model/compute.ts'
import type { ProjectLocator } from './project-locator.ts'

const loopback = '127.0.0.1'

/** See `Context.between`. */
export const peerAddress =
  (fleet: Fleet, locator: Pick<ProjectLocator, 'find'>) =>
  async (from: NodePlace, to: NodePlace): Promise<string> => {
    const [here, there] = await Promise.all([from, to].map((it) => locator.find(it.project_id, it.node_id)))
    if (here === undefined || there === undefined)
      throw notFound('nodes: no compute has one of the projects', { word: 'no-such-project' })
    if (here.id === there.id) return loopback
    const [ours, theirs] = await Promise.all([fleet.get(here.id), fleet.get(there.id)])
    const why = unknownTo(ours, theirs)
    if (why === undefined) return connectHost(theirs.host)
    throw conflict(`nodes: the compute ${theirs.name} ${why}; attach the NIOs with addresses of your own`)
  }

/** Why one compute cannot reach another at the address by which the gateway does; undefined when it may. */
function unknownTo(ours: Compute, theirs: Compute): string | undefined {
  if (theirs.protocol === tunnelled) return 'has joined by itself, and no address of it is known'
  if (!isLoopbackHost(connectHost(theirs.host))) return undefined
  const isSameMachine = ours.protocol !== tunnelled && isLoopbackHost(connectHost(ours.host))
  return isSameMachine ? undefined : `is registered at ${theirs.host}, which is only so on this machine`
}
