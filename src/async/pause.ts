/** Waits, or less when given up; `started` is given what ends it early. */
export function pause(ms: number, signal: AbortSignal, started?: (wake: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const over = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', over)
      resolve()
    }
    const timer = setTimeout(over, Math.max(0, ms))
    signal.addEventListener('abort', over, { once: true })
    started?.(over)
  })
}

/** Timers are 31 bits wide: longer ones end at once. */
const longestTimerMs = 0x7fffffff

/** Waits for a time, in milliseconds since 1970, however far away it is; less when given up. */
export async function pauseUntil(time: number, signal: AbortSignal): Promise<void> {
  for (let left = time - Date.now(); left > 0 && !signal.aborted; left = time - Date.now())
    await pause(Math.min(left, longestTimerMs), signal)
}
