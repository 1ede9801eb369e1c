import type { ComputeAnswer } from '../../src/compute/remote/transport.ts'
import type { RelayedAnswer } from '../../src/lib/http/relayed-answer.ts'

/** The body of an answer, however it came. */
function bodyOf(answer: ComputeAnswer | RelayedAnswer | Response): Response {
  if (answer instanceof Response) return answer
  return new Response('content' in answer ? answer.content : (answer.whole ?? answer.body))
}

export const textOf = (answer: ComputeAnswer | RelayedAnswer | Response): Promise<string> => bodyOf(answer).text()
export const jsonOf = (answer: ComputeAnswer | RelayedAnswer | Response): Promise<unknown> => bodyOf(answer).json()
export const bytesOf = (answer: ComputeAnswer | RelayedAnswer | Response): Promise<ArrayBuffer> =>
  bodyOf(answer).arrayBuffer()
