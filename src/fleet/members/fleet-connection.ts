import { Connection } from '../../compute/remote/connection.ts'
import { type Caller, headersFor } from '../../model/access/caller.ts'
import { localId } from '../../model/compute.ts'
import type { Fleet } from '../pool/fleet.ts'
import { withComputeContext } from './fan-out.ts'

const serviceCaller: Caller = { isDirect: false, mayExecute: false }

/** The connection to a compute of a fleet, on behalf of a caller, or of the service itself. */
export function fleetConnection(fleet: Fleet, computeId: string, caller: Caller = serviceCaller): Connection {
  const marks = computeId === localId ? {} : headersFor(caller)
  const name = fleet.find(computeId)?.name ?? computeId
  return new Connection({
    name,
    send: (request) =>
      fleet.send(computeId, { ...request, headers: { ...request.headers, ...marks } }).catch((error: unknown) => {
        throw withComputeContext(error, { name })
      }),
    isWatched: fleet.isTunnelled(computeId),
  })
}
