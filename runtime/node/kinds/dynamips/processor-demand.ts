import { readdirSync, readFileSync } from 'node:fs'

/**
 * Processor time in seconds that the threads of a process had or waited for; undefined where the kernel does not tell. On
 * a busy host a program that never rests gets so little that it looks like one that does: what it waited for shows it.
 */
export function processorDemand(pid: number): number | undefined {
  try {
    let nanoseconds = 0
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      // proc(5): time spent on a processor, and waiting for one.
      const [had, waited] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')
      nanoseconds += Number(had) + Number(waited)
    }
    return Number.isFinite(nanoseconds) ? nanoseconds / 1e9 : undefined
  } catch {
    return undefined
  }
}
