import { type Caller, headersFor } from '../auth/caller.ts'
import type { Fleet } from '../fleet/fleet.ts'
import type { ClientLimits } from './options.ts'
import { RemoteHostAgent } from './remote-host-agent.ts'

/**
 * The host agent of a compute of a fleet: asked with its credentials, over its session, refused at once while it is. 404 for
 * an unknown id. It holds nothing: one may be made for every request, and has the name by which the compute goes then. `caller`:
 * of whom the compute is told; without one it is a user.
 */
export function agentOf(
  fleet: Fleet,
  id: string,
  { caller, limits }: { caller?: Caller; limits?: Partial<ClientLimits> } = {},
): RemoteHostAgent {
  const ofCaller = caller && headersFor(caller)
  const marked = <T extends { readonly headers: Readonly<Record<string, string>> }>(request: T): T => ({
    ...request,
    headers: { ...request.headers, ...ofCaller },
  })
  return new RemoteHostAgent({
    name: fleet.nameOf(id),
    send: (request) => fleet.send(id, marked(request)),
    isWatched: fleet.isTunnelled(id),
    ...(limits !== undefined && { limits }),
  })
}
