/** How long things may take, ms. */
export interface FleetTimeouts {
  /** Until a compute has said what it is. */
  readonly connectMs: number
  /** A connected compute that says nothing for so long is not there any more. */
  readonly silenceMs: number
  /** Wait before another attempt: the first, and the longest. */
  readonly retryMs: readonly [first: number, longest: number]
  /** A connection that lived so long makes what failed before it forgotten. */
  readonly steadyMs: number
  /** Attempts in a row that fail before requests are refused at once. */
  readonly failures: number
  /** Looks at all computes: no more are begun then. */
  readonly lookMs: number
  /** Until what did not answer a look is looked at again. */
  readonly lookAgainMs: number
}

export const defaultFleetTimeouts: FleetTimeouts = {
  connectMs: 20_000,
  // A feed says something every 5 s.
  silenceMs: 16_000,
  retryMs: [1000, 30_000],
  steadyMs: 10_000,
  failures: 3,
  lookMs: 15_000,
  lookAgainMs: 1500,
}
