import { connectHost, isLoopbackHost } from '../client/address.ts'
import { conflict, notFound } from '../errors/api-error.ts'
import type { Fleet } from '../fleet/fleet.ts'
import type { NodePlace } from '../http/endpoint.ts'
import { type Compute, tunnelled } from '../model/compute.ts'
import type { ProjectLocator } from './project-locator.ts'

/** See `Context.between`. */
export const peerAddress =
  (fleet: Fleet, locator: Pick<ProjectLocator, 'find'>) =>
  async (from: NodePlace, to: NodePlace): Promise<string> => {
    const [here, there] = await Promise.all([from, to].map((it) => locator.find(it.project_id, it.node_id)))
    if (here === undefined || there === undefined)
      throw notFound('nodes: no compute has one of the projects', { word: 'no-such-project' })
    return addressFor(fleet, here.id, there.id, 'attach the NIOs with addresses of your own')
  }

/** The address at which one compute reaches another. 409 when there is none, with what to do then. */
export async function addressFor(fleet: Fleet, from: string, to: string, toDo: string): Promise<string> {
  if (from === to) return '127.0.0.1'
  const [ours, theirs] = await Promise.all([fleet.get(from), fleet.get(to)])
  const why = unknownTo(ours, theirs)
  if (why === undefined) return connectHost(theirs.host)
  throw conflict(`nodes: the compute ${theirs.name} ${why}; ${toDo}`)
}

/** Why one compute cannot reach another at the address by which the gateway does; undefined when it may. */
function unknownTo(ours: Compute, theirs: Compute): string | undefined {
  if (theirs.protocol === tunnelled) return 'has joined by itself, and no address of it is known'
  if (!isLoopbackHost(connectHost(theirs.host))) return undefined
  const isSameMachine = ours.protocol !== tunnelled && isLoopbackHost(connectHost(ours.host))
  return isSameMachine ? undefined : `is registered at ${theirs.host}, which is only so on this machine`
}
