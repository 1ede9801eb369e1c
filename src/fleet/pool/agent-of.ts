import { RemoteHostAgent } from '../../compute/remote/remote-host-agent.ts'
import { type Caller, headersFor } from '../../model/access/caller.ts'
import type { Fleet } from './fleet.ts'

/**
 * The host agent of a compute of a fleet. It sends with the credentials and over the session of the compute, and has no state: an
 * agent may be made for each request. 404 for an unknown id. `caller`: the caller that is named to the compute; absent: a user.
 */
export function agentOf(fleet: Fleet, id: string, caller?: Caller): RemoteHostAgent {
  const ofCaller = caller && headersFor(caller)
  return new RemoteHostAgent({
    name: fleet.nameOf(id),
    send: (request) => fleet.send(id, { ...request, headers: { ...request.headers, ...ofCaller } }),
    isWatched: fleet.isTunnelled(id),
  })
}
