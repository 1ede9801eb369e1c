/** Timeouts and delays, ms. */
export const defaultFleetTimeouts = {
  /** Timeout of the first answer of a compute. */
  connectMs: 20_000,
  /** Silence after which a connected compute counts as lost: a feed sends a line every 5 s. */
  silenceMs: 16_000,
  /** Delay before a retry: the first, and the longest. */
  retryMs: [1000, 30_000] as readonly [first: number, longest: number],
  /** A connection of this age resets the earlier failures. */
  steadyMs: 10_000,
  /** Number of consecutive failures after which requests are refused at once. */
  failures: 3,
  /** Time for the health checks of all computes; after it no further check starts. */
  lookMs: 15_000,
  /** Delay before the second check of a compute that did not answer. */
  lookAgainMs: 1500,
}
export type FleetTimeouts = Readonly<typeof defaultFleetTimeouts>
