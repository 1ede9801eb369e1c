import { Connection } from '../../../src/compute/remote/connection.ts'
import { forward } from '../../../src/fleet/forward/forward.ts'
import { withComputeContext } from '../../../src/fleet/members/fan-out.ts'
import { ComputeClient } from '../../../src/labs/computes/compute-client.ts'
import type { LabComputes } from '../../../src/labs/computes/computes.ts'
import { type Caller, headersFor } from '../../../src/model/access/caller.ts'
import type { Env } from '../shared/env.ts'
import { lengthIn } from '../shared/fixed-length-bodies.ts'
import { KnownComputes } from '../shared/known-computes.ts'
import { inLargePieces } from '../shared/large-pieces.ts'
import { resultOf } from '../shared/object-reply.ts'
import type { Objects } from '../shared/objects.ts'

/** The methods of `LabComputes` that the objects of labs call at the directory. */
const labQuestions = ['choose', 'candidates', 'absent', 'all', 'registered', 'peers'] as const
export type LabQuestion = (typeof labQuestions)[number]

const serviceCaller: Caller = { isDirect: false, mayExecute: false }

const pieceBytes = 256 * 1024

/** The answer; a large body in pieces of `pieceBytes`. */
function inPieces(answer: Response): Response {
  if (answer.body === null || (lengthIn(answer.headers) ?? 0) < pieceBytes) return answer
  return new Response(inLargePieces(answer.body, pieceBytes), answer)
}

/** The computes of the fleet for the object of a lab, which asks them itself. */
export function objectComputes(env: Env, objects: Objects): LabComputes {
  const directory = () => objects.directory()
  const tell = <T>(question: LabQuestion, ...args: unknown[]): Promise<T> =>
    resultOf(directory().labComputes(question, JSON.stringify(args)))
  const known = new KnownComputes(env, objects)
  return {
    client(computeId, caller = serviceCaller) {
      const marks = headersFor(caller)
      return new ComputeClient(
        new Connection({
          name: computeId,
          async send(request) {
            const computes = await known.with(computeId)
            const name = computes.find(computeId)?.name ?? computeId
            const marked = { ...request, headers: { ...request.headers, ...marks } }
            const answer = await computes.send(computeId, marked).catch((error: unknown) => {
              throw withComputeContext(error, { name })
            })
            return answer instanceof Response ? inPieces(answer) : answer
          },
        }),
        (image) => directory().bringImage(computeId, image),
      )
    },
    choose: (wanted, placement = {}) => tell('choose', wanted ?? null, placement),
    candidates: (own, wish) => tell('candidates', own, wish),
    absent: (ids) => tell('absent', ids),
    all: () => tell('all'),
    registered: () => tell('registered'),
    peers: (ends) => tell('peers', ends),
    async forward(computeId, forwarded) {
      const computes = await known.with(computeId)
      return forward(computes, computeId, forwarded)
    },
  }
}
