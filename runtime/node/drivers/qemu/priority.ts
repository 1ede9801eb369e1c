import { readdirSync } from 'node:fs'
import { setPriority } from 'node:os'
import type { MachineEmulatorNode } from '../../../../src/model/kinds/machine-emulator.ts'

/** nice(2) values; other priorities change nothing. */
const niceOf: Readonly<Partial<Record<MachineEmulatorNode['process_priority'], number>>> = {
  realtime: -20,
  'very high': -15,
  high: -5,
  low: 5,
  'very low': 19,
}

/** Sets the priority of all threads of a process (on Linux each thread has its own); returns the problem, if any. */
export function prioritise(pid: number, priority: MachineEmulatorNode['process_priority']): string | undefined {
  const nice = niceOf[priority]
  if (nice === undefined) return undefined
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) setPriority(Number(thread), nice)
    return undefined
  } catch (error) {
    const { message } = error as Error
    // A thread or the process has ended.
    if (/ESRCH|ENOENT/.test(message)) return undefined
    return `process_priority: ${/EACCES|EPERM/.test(message) ? `only root may set ${priority}` : message}`
  }
}
