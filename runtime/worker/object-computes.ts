import { type Caller, headersFor } from '../../src/auth/caller.ts'
import { Connection } from '../../src/client/connection.ts'
import type { Outgoing } from '../../src/client/transport.ts'
import { ComputeClient } from '../../src/controller/compute-client.ts'
import type { LabComputes } from '../../src/controller/computes.ts'
import { isUpgrade } from '../../src/http/socket.ts'
import type { Env } from './env.ts'
import { isolateHeader, isolateKey } from './feed-message.ts'
import { resultOf } from './object-reply.ts'
import type { Objects } from './objects.ts'
import { lengthIn, sendWhole } from './whole-bodies.ts'

/** The methods of `LabComputes` that the objects of labs call at the object of the fleet. */
export const labQuestions = ['choose', 'candidates', 'absent', 'all', 'peers'] as const
export type LabQuestion = (typeof labQuestions)[number]

/** Prefix of requests to a compute, with its id, which the object of the fleet hands on. */
export const askPath = '/ask/'

const ourOwn: Caller = { isDirect: false, mayExecute: false }

const pieceBytes = 256 * 1024

/** Reads a large answer in pieces of `pieceBytes`: workerd has pieces of 4 KiB, and each costs a pass through all layers. */
function inLargePieces(answer: Response): Response {
  if (answer.body === null || (lengthIn(answer.headers) ?? 0) < pieceBytes) return answer
  const reader = answer.body.getReader({ mode: 'byob' })
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.readAtLeast(pieceBytes, new Uint8Array(pieceBytes))
        if (value !== undefined && value.byteLength > 0) controller.enqueue(value)
        if (done) controller.close()
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
  return new Response(body, answer)
}

/** The computes of the fleet for the object of a lab, by way of the object of the fleet. */
export function objectComputes(env: Env, objects: Objects): LabComputes {
  const fleet = () => objects.fleet()
  const tell = <T>(question: LabQuestion, ...args: unknown[]): Promise<T> =>
    resultOf(fleet().labComputes(question, JSON.stringify(args)))
  let key: string | undefined
  const ask = async (computeId: string, { path, ...init }: Omit<Outgoing, 'rests'>): Promise<Response> => {
    key ??= await isolateKey(env)
    const headers = { ...init.headers, [isolateHeader]: key }
    const url = `http://object${askPath}${encodeURIComponent(computeId)}${path}`
    return inLargePieces(await sendWhole(fleet(), new Request(url, { ...init, headers })))
  }
  return {
    client(computeId, caller = ourOwn) {
      const marks = headersFor(caller)
      return new ComputeClient(
        new Connection({
          name: computeId,
          send: ({ rests: _, ...request }) => ask(computeId, { ...request, headers: { ...request.headers, ...marks } }),
        }),
        (image) => fleet().bringImage(computeId, image),
      )
    },
    choose: (wanted, placement = {}) => tell('choose', wanted ?? null, placement),
    candidates: (own, wish) => tell('candidates', own, wish),
    absent: (ids) => tell('absent', ids),
    all: () => tell('all'),
    peers: (ends) => tell('peers', ends),
    async forward(computeId, { request, path, body, caller, upgrade }) {
      const { method, signal, url } = request
      const headers = { ...Object.fromEntries(request.headers), ...headersFor(caller) }
      const target = path + new URL(url).search
      const isGet = method === 'GET' || method === 'HEAD'
      const answer = await ask(computeId, {
        ...{ method, path: target, headers, signal },
        body: isGet ? null : (body ?? request.body),
      })
      if (upgrade !== undefined && isUpgrade(request) && answer.status === 101) return answer
      // The headers of a response of `fetch` are immutable; a copy has mutable ones.
      return new Response(answer.body, answer)
    },
  }
}
