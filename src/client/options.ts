import { maxAnswerBytes } from '../http/answer-budget.ts'
import type { Send } from './transport.ts'

export interface ClientLimits {
  /** How long an answer may take that only tells what is known, ms. */
  readonly readMs: number
  /** How long what is to be done may take, ms: the compute has its own, shorter bounds. */
  readonly workMs: number
  /** How long a body that should move may stand still, ms. */
  readonly idleMs: number
  /** How long a feed may be silent, ms: a compute says something every 5 s. */
  readonly feedMs: number
  /** Most bytes of a JSON answer. */
  readonly answerBytes: number
  /** Most bytes of a line of a feed. */
  readonly lineBytes: number
}

export const defaultClientLimits: ClientLimits = {
  // As long as a fleet takes a compute for there that says nothing: what only tells what is known is not waited for longer.
  readMs: 16_000,
  workMs: 600_000,
  idleMs: 60_000,
  feedMs: 30_000,
  answerBytes: maxAnswerBytes,
  lineBytes: 4 << 20,
}

export interface RemoteOptions {
  /** What the compute is called in messages. */
  readonly name: string
  /** How it is asked, with what lets us in; ApiErrors of it are passed on. */
  readonly send: Send
  readonly limits?: Partial<ClientLimits>
  /** Whoever sends finds out by itself when the compute is not there any more, also when nothing is asked. */
  readonly isWatched?: boolean
}
