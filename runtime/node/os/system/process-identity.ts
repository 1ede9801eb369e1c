import { readFileSync } from 'node:fs'

/** Distinguishes a process from a later process with the same pid. */
export interface ProcessIdentity {
  readonly pid: number
  /** Clock ticks since boot, field 22 of /proc/{pid}/stat (proc(5)). */
  readonly start_time: number
  readonly boot_id: string
}

let known: string | undefined
/** Made by the kernel at every boot (random(4)); undefined where there is none. */
export function bootId(): string | undefined {
  try {
    known ??= readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
  } catch {
    // Only Linux has it.
  }
  return known
}

/** The fields of /proc/{pid}/stat from field 3 on (proc(5)). The name before them may contain spaces and parentheses. */
export const statFields = (stat: string): string[] => stat.slice(stat.lastIndexOf(')') + 2).split(' ')

/** The identity of a running process; undefined when no process with the pid runs (a zombie has ended). */
export function identify(pid: number): ProcessIdentity | undefined {
  try {
    const [state, ...fields] = statFields(readFileSync(`/proc/${pid}/stat`, 'latin1'))
    if (state === 'Z' || state === 'X') return undefined
    return { pid, start_time: Number(fields[18]), boot_id: bootId() as string }
  } catch {
    return undefined
  }
}

export const isSame = (recorded: ProcessIdentity, found: ProcessIdentity | undefined): boolean =>
  found !== undefined && found.start_time === recorded.start_time && found.boot_id === recorded.boot_id
