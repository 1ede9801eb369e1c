import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/** Processor time of the threads that a process has now, ms; by another counter than the program itself reads. */
function processorTime(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  const times = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0]),
  )
  return times.reduce((sum, time) => sum + time, 0) / 1e6
}

/** Processor time of this thread, ms; of this process before Node 23.9. */
export function threadMs(): number {
  const { user, system } = (process.threadCpuUsage ?? process.cpuUsage)()
  return (user + system) / 1000
}

/** What a process uses during so many milliseconds, in percent of one processor. */
export async function usage(pid: number, ms: number): Promise<number> {
  const [before, start] = [processorTime(pid), performance.now()]
  await delay(ms)
  return ((processorTime(pid) - before) / (performance.now() - start)) * 100
}

/** The letter of its state in proc(5); T when it is stopped. */
export function processState(pid: number): string {
  return /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1] ?? ''
}
