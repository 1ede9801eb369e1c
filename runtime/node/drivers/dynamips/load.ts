import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

/** The load since the watch began, percent of one processor. */
export type LoadWatch = () => Promise<number>

/** A thread that waited for a processor nearly all of the time counts as full load. */
const minKnownLoad = 0.02
/** The kernel counts a wait for a processor when the wait is over: the longest wait, and the interval of the polls, ms. */
const maxWaitMs = 500
const pollMs = 10
/** A thread that ran between two polls may have waited for the rest of that time, which is not counted yet: the longest such time, ms. */
const maxUncountedMs = 3 * pollMs
/** A snapshot must be read within this time, ms; the most attempts. */
const maxReadMs = 5
const maxReads = 10

/**
 * The load that a process would cause on an idle host: for its busiest thread, the time on a processor divided by the time without
 * waits for a processor. The plain processor time would not do: on a busy host a program that never sleeps gets little of it.
 * Undefined where the kernel keeps no statistics.
 */
export function watchLoad(pid: number): LoadWatch | undefined {
  const { threads: before, at: since } = snapshot(pid)
  if (before.size === 0) return undefined
  return async () => {
    const { threads: after, at } = await whenCounted(pid)
    const elapsed = (at - since) / 1000
    // A process that ended counts as full load; the caller learns of the end elsewhere.
    let most = after.size === 0 ? 1 : 0
    for (const [thread, { ran, waited }] of after) {
      const then = before.get(thread) ?? { ran: 0, waited: 0 }
      const own = Math.max(0, elapsed - (waited - then.waited))
      most = Math.max(most, own < elapsed * minKnownLoad ? 1 : (ran - then.ran) / own)
    }
    return Math.min(100, most * 100)
  }
}

/** A snapshot in which no thread waits for a processor, or the last one before the timeout. */
async function whenCounted(pid: number): Promise<Snapshot> {
  const deadline = performance.now() + maxWaitMs
  for (let before = snapshot(pid); ; ) {
    await pause(pollMs)
    const after = snapshot(pid)
    // This process waits for a processor itself.
    const isLate = after.at - before.at > maxUncountedMs
    const waits = [...after.threads].some(
      ([thread, { isRunnable, ran }]) => isRunnable && (isLate || before.threads.get(thread)?.ran === ran),
    )
    if (!waits || performance.now() > deadline) return after
    before = after
  }
}

interface Snapshot {
  readonly threads: ReadonlyMap<string, Thread>
  /** ms */
  readonly at: number
}

/** Reads the threads again when this process itself had to wait for a processor meanwhile. */
function snapshot(pid: number): Snapshot {
  for (let tries = 1; ; tries++) {
    const at = performance.now()
    const threads = threadsOf(pid)
    if (performance.now() - at < maxReadMs || tries === maxReads) return { threads, at }
  }
}

interface Thread {
  /** Seconds on a processor, and seconds of waiting for a processor. */
  readonly ran: number
  readonly waited: number
  /** Whether it runs or waits for a processor. */
  readonly isRunnable: boolean
}

/** /proc/{pid}/task/{tid}/schedstat and stat, Documentation/scheduler/sched-stats.rst of Linux. */
function threadsOf(pid: number): Map<string, Thread> {
  const threads = new Map<string, Thread>()
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const [ran = Number.NaN, waited = Number.NaN] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1')
        .split(' ')
        .map((nanoseconds) => Number(nanoseconds) / 1e9)
      // The name in parentheses may contain spaces and parentheses.
      const isRunnable = /\) R [^)]*$/.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1'))
      if (!Number.isNaN(ran + waited)) threads.set(thread, { ran, waited, isRunnable })
    }
  } catch {
    // The process or a thread has ended, or the kernel has no schedstat.
  }
  return threads
}
