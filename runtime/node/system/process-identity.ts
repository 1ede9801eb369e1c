import { readFileSync } from 'node:fs'

/** What tells a process from a later one with the same pid. */
export interface ProcessIdentity {
  readonly pid: number
  /** Clock ticks since boot, field 22 of /proc/{pid}/stat (proc(5)). */
  readonly start_time: number
  readonly boot_id: string
}

let bootId: string | undefined

/** The identity of a running process; undefined when there is none with that pid (a zombie has ended). */
export function identify(pid: number): ProcessIdentity | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in parentheses may hold spaces and parentheses itself.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (state === 'Z' || state === 'X') return undefined
    bootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
    return { pid, start_time: Number(fields[18]), boot_id: bootId }
  } catch {
    return undefined
  }
}

export const isSame = (recorded: ProcessIdentity, found: ProcessIdentity | undefined): boolean =>
  found !== undefined && found.start_time === recorded.start_time && found.boot_id === recorded.boot_id
