/** Runs work once after a time in milliseconds; returns a function that cancels it. */
export type StartTimer = (work: () => void, ms: number) => () => void

export const startTimer: StartTimer = (work, ms) => {
  const timer = setTimeout(work, ms)
  return () => clearTimeout(timer)
}

/** Waits, or less when given up; `started` is given what ends it early. */
export function pause(
  ms: number,
  signal: AbortSignal,
  started?: (wake: () => void) => void,
  timer: StartTimer = startTimer,
): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const over = () => {
      cancel()
      signal.removeEventListener('abort', over)
      resolve()
    }
    const cancel = timer(over, Math.max(0, ms))
    signal.addEventListener('abort', over, { once: true })
    started?.(over)
  })
}

/** Timers are 31 bits wide: longer ones end at once. */
const longestTimerMs = 0x7fffffff

/** Waits for a time, in milliseconds since 1970, however far away it is; less when given up. */
export async function pauseUntil(time: number, signal: AbortSignal, timer: StartTimer = startTimer): Promise<void> {
  for (let left = time - Date.now(); left > 0 && !signal.aborted; left = time - Date.now())
    await pause(Math.min(left, longestTimerMs), signal, undefined, timer)
}
