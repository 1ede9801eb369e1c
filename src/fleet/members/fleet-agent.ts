import { RemoteHostAgent } from '../../compute/remote/remote-host-agent.ts'
import type { Outgoing } from '../../compute/remote/transport.ts'
import type { HostAgent } from '../../host-agent.ts'
import { type Caller, headersFor } from '../../model/access/caller.ts'
import { localId } from '../../model/compute.ts'
import type { ReplicateImage } from '../images/image-copies.ts'
import { computeKey } from '../pool/computes.ts'
import type { Fleet } from '../pool/fleet.ts'
import { withComputeContext } from './member-errors.ts'

/**
 * The agent of a compute of a fleet, on behalf of a caller, or of the service itself; of the compute `local` that of this process. It has no
 * state, and may be made for each request. The calls of an unknown id reject with 404. `replicateImage`: absent where images are not copied
 * between computes.
 */
export function fleetAgent(
  fleet: Fleet,
  computeId: string,
  { caller, replicateImage }: { caller?: Caller | undefined; replicateImage?: ReplicateImage | undefined } = {},
): HostAgent {
  if (computeKey(computeId) === localId && fleet.localAgent !== undefined) return fleet.localAgent
  const ofCaller = caller && headersFor(caller)
  const name = fleet.find(computeId)?.name ?? computeId
  const remote = {
    name,
    send: (request: Outgoing) =>
      fleet.send(computeId, { ...request, headers: { ...request.headers, ...ofCaller } }).catch((error: unknown) => {
        throw withComputeContext(error, { name })
      }),
    isWatched: fleet.isTunnelled(computeId),
  }
  return new RemoteHostAgent(remote, replicateImage && ((image) => replicateImage(computeId, image)))
}
