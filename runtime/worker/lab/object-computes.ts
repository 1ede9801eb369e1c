import { RemoteHostAgent } from '../../../src/compute/remote/remote-host-agent.ts'
import { forward } from '../../../src/fleet/forward/forward.ts'
import { withComputeContext } from '../../../src/fleet/members/member-errors.ts'
import type { ComputePool } from '../../../src/labs/computes/compute-pool.ts'
import { headersFor } from '../../../src/model/access/caller.ts'
import type { FleetArguments, FleetMethod } from '../directory/rpc.ts'
import { CachedComputes } from '../shared/cached-computes.ts'
import type { Env } from '../shared/env.ts'
import { lengthIn } from '../shared/fixed-length-bodies.ts'
import { inLargePieces } from '../shared/large-pieces.ts'
import { resultOf } from '../shared/object-reply.ts'
import type { Objects } from '../shared/objects.ts'
import { encode } from '../shared/rpc-json.ts'

const pieceBytes = 256 * 1024

/** The answer; a large body in pieces of `pieceBytes`. */
function inPieces(answer: Response): Response {
  if (answer.body === null || (lengthIn(answer.headers) ?? 0) < pieceBytes) return answer
  return new Response(inLargePieces(answer.body, pieceBytes), answer)
}

/** The computes of the fleet for the object of a lab, which asks them itself. */
export function objectComputes(env: Env, objects: Objects): ComputePool {
  const directory = () => objects.directory()
  const ask = <Method extends FleetMethod>(method: Method, ...args: FleetArguments<Method>) =>
    resultOf(directory().labComputes(method, encode(args)))
  const known = new CachedComputes(env, objects)
  return {
    agent(computeId, caller) {
      const ofCaller = caller && headersFor(caller)
      return new RemoteHostAgent(
        {
          name: computeId,
          async send(request) {
            const computes = await known.with(computeId)
            const name = computes.find(computeId)?.name ?? computeId
            const marked = { ...request, headers: { ...request.headers, ...ofCaller } }
            const answer = await computes.send(computeId, marked).catch((error: unknown) => {
              throw withComputeContext(error, { name })
            })
            return answer instanceof Response ? inPieces(answer) : answer
          },
        },
        (image) => directory().bringImage(computeId, image),
      )
    },
    choose: (wanted, placement = {}) => ask('choose', wanted, placement),
    candidates: (own, wish) => ask('candidates', own, wish),
    absent: (ids) => ask('absent', ids),
    all: () => ask('all'),
    registered: () => ask('registered'),
    peers: (ends) => ask('peers', ends),
    async forward(computeId, forwarded) {
      const computes = await known.with(computeId)
      return forward(computes, computeId, forwarded)
    },
  }
}
