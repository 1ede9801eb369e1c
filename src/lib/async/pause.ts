import { onAbort } from './abort.ts'

/** Runs work once after a time in milliseconds; returns a function that cancels it. */
export type StartTimer = (work: () => void, ms: number) => () => void

export const startTimer: StartTimer = (work, ms) => {
  const timer = setTimeout(work, ms)
  return () => clearTimeout(timer)
}

/** Resolves after `ms`, or earlier when the signal aborts or `wake` is called, which `started` receives. */
export function pause(
  ms: number,
  signal: AbortSignal,
  started?: (wake: () => void) => void,
  timer: StartTimer = startTimer,
): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const finish = () => {
      cancel()
      forget()
      resolve()
    }
    const cancel = timer(finish, Math.max(0, ms))
    const forget = onAbort(signal, finish)
    started?.(finish)
  })
}

/** The delay of a timer has 31 bits: a longer timer would end at once. */
const longestTimerMs = 0x7fffffff

/** Resolves at a time of the clock `now` (ms since 1970 by default), or earlier when the signal aborts. */
export async function pauseUntil(
  time: number,
  signal: AbortSignal,
  timer: StartTimer = startTimer,
  now: () => number = Date.now,
): Promise<void> {
  for (let left = time - now(); left > 0 && !signal.aborted; left = time - now())
    await pause(Math.min(left, longestTimerMs), signal, undefined, timer)
}
