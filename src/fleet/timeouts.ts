/** Timeouts and delays, ms. */
export interface FleetTimeouts {
  /** Timeout of the first answer of a compute. */
  readonly connectMs: number
  /** Silence after which a connected compute counts as lost. */
  readonly silenceMs: number
  /** Delay before a retry: the first, and the longest. */
  readonly retryMs: readonly [first: number, longest: number]
  /** A connection of this age resets the earlier failures. */
  readonly steadyMs: number
  /** Number of consecutive failures after which requests are refused at once. */
  readonly failures: number
  /** Time for the health checks of all computes; after it no further check starts. */
  readonly lookMs: number
  /** Delay before the second check of a compute that did not answer. */
  readonly lookAgainMs: number
}

export const defaultFleetTimeouts: FleetTimeouts = {
  connectMs: 20_000,
  // A feed sends a line every 5 s.
  silenceMs: 16_000,
  retryMs: [1000, 30_000],
  steadyMs: 10_000,
  failures: 3,
  lookMs: 15_000,
  lookAgainMs: 1500,
}
