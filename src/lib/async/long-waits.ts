const minuteMs = 60_000
const hourMs = 60 * minuteMs

/** Waits between attempts at something that may fail for days, ms. After the last one nothing tries again by itself. */
export const longWaitsMs: readonly number[] = [
  ...[2000, minuteMs, 10 * minuteMs, hourMs, 6 * hourMs],
  ...[24 * hourMs, 24 * hourMs, 24 * hourMs],
]
