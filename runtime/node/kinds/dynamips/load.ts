import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

/** Says the percent of one processor since it was made. */
export type LoadWatch = () => Promise<number>

/** A thread that was kept from running for nearly all of the time may want all of it. */
const minKnownLoad = 0.02
/** A wait for a processor is counted when it is over: how long its end is waited for, and how often it is looked for, ms. */
const maxWaitMs = 500
const lookMs = 10
/** Threads that were read within this were read at one time, ms; how often they are read at most. */
const maxReadMs = 5
const maxReads = 10

/**
 * The load that a process would make alone on the host: of its busiest thread, how much of the time it ran in which it
 * ran or rested. On a busy host a program that never rests gets little, and looks by that like one that does. undefined
 * where the kernel does not tell.
 */
export function watchLoad(pid: number): LoadWatch | undefined {
  const { threads: before, at: since } = snapshot(pid)
  if (before.size === 0) return undefined
  return async () => {
    const { threads: after, at } = await whenCounted(pid)
    const elapsed = (at - since) / 1000
    // It has ended, which is no rest: whoever asks will learn that elsewhere.
    let most = after.size === 0 ? 1 : 0
    for (const [thread, { ran, waited }] of after) {
      const then = before.get(thread) ?? { ran: 0, waited: 0 }
      const own = Math.max(0, elapsed - (waited - then.waited))
      most = Math.max(most, own < elapsed * minKnownLoad ? 1 : (ran - then.ran) / own)
    }
    return Math.min(100, most * 100)
  }
}

/** The threads when none waits for a processor, or when one has done so for too long. */
async function whenCounted(pid: number): Promise<Snapshot> {
  const deadline = performance.now() + maxWaitMs
  for (let before = snapshot(pid); ; ) {
    await pause(lookMs)
    const after = snapshot(pid)
    const waits = [...after.threads].some(
      ([thread, { isRunnable, ran }]) => isRunnable && before.threads.get(thread)?.ran === ran,
    )
    if (!waits || performance.now() > deadline) return after
    before = after
  }
}

interface Snapshot {
  readonly threads: ReadonlyMap<string, Thread>
  /** When they were read, ms. */
  readonly at: number
}

/** The threads at one time: they are read again when this process was itself kept from running meanwhile. */
function snapshot(pid: number): Snapshot {
  for (let tries = 1; ; tries++) {
    const at = performance.now()
    const threads = threadsOf(pid)
    if (performance.now() - at < maxReadMs || tries === maxReads) return { threads, at }
  }
}

interface Thread {
  /** Seconds on a processor, and seconds of waiting for one. */
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
      // The name in parentheses may hold spaces and parentheses itself.
      const isRunnable = /\) R [^)]*$/.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1'))
      if (!Number.isNaN(ran + waited)) threads.set(thread, { ran, waited, isRunnable })
    }
  } catch {
    // The process or one of its threads has ended, or the kernel keeps no such numbers.
  }
  return threads
}
