import { maxAnswerBytes } from '../../lib/http/answer-budget.ts'
import type { Send } from './transport.ts'

/** Timeouts, ms, and limits, bytes. */
export const defaultClientLimits = {
  /** Timeout of an answer that only reports a state: as long as a silent compute counts as connected. */
  readMs: 16_000,
  /** Timeout of an operation: the compute has its own, shorter timeouts. */
  workMs: 600_000,
  /** Timeout of the next piece of a body. */
  idleMs: 60_000,
  /** Timeout of the next line of a feed: a compute sends one every 5 s. */
  feedMs: 30_000,
  /** Limit of a JSON answer. */
  answerBytes: maxAnswerBytes,
  /** Limit of a line of a feed. */
  lineBytes: 4 << 20,
}
export type ClientLimits = Readonly<typeof defaultClientLimits>

export interface RemoteOptions {
  /** The name of the compute in messages. */
  readonly name: string
  /** Sends with the credentials of the compute; its ApiErrors are passed on. */
  readonly send: Send
  readonly limits?: Partial<ClientLimits>
  /** Whether `send` detects a lost compute by itself, also without requests. */
  readonly isWatched?: boolean
}
