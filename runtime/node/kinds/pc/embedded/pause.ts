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
