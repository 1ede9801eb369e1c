import { readdirSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import type { Readable } from 'node:stream'
import { identify, isSame, type ProcessIdentity, statFields } from '../../os/system/process-identity.ts'
import type { UnitEnd } from './runner.ts'

/**
 * A confined program is the grandchild of the keeper: wrapper, init of its PID namespace, program. The wrapper leads the process
 * group, and its exit ends all three. SIGTERM goes to the program alone, because the wrapper would die of it and take the program
 * with it.
 */
export class WrappedProgram {
  readonly pid: number
  readonly #identity: ProcessIdentity

  private constructor(identity: ProcessIdentity) {
    this.pid = identity.pid
    this.#identity = identity
  }

  /** The program of a wrapper that has reported the start; undefined when it has ended. */
  static of(wrapper: number): WrappedProgram | undefined {
    const init = childOf(wrapper)
    const program = init === undefined ? undefined : childOf(init)
    const identity = program === undefined ? undefined : identify(program)
    return identity === undefined ? undefined : new WrappedProgram(identity)
  }

  signal(name: NodeJS.Signals): void {
    try {
      if (isSame(this.#identity, identify(this.pid))) process.kill(this.pid, name)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

/** Pids to search after the parent's: the kernel allocates them in order. */
const near = 64

function childOf(parent: number): number | undefined {
  for (let pid = parent + 1; pid <= parent + near; pid++) if (parentOf(pid) === parent) return pid
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return all.map(Number).find((pid) => parentOf(pid) === parent)
}

/** The parent's pid: field 4 of /proc/pid/stat (proc(5)). */
function parentOf(pid: number): number | undefined {
  try {
    return Number(statFields(readFileSync(`/proc/${pid}/stat`, 'latin1'))[1])
  } catch {
    return undefined
  }
}

/** Whether data arrives on the descriptor, or it is closed, within `ms`. Closes it. */
export async function said(stream: Readable, ms: number): Promise<boolean> {
  const isInTime = await new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => resolve(false), ms)
    const done = () => {
      clearTimeout(timer)
      resolve(true)
    }
    for (const event of ['data', 'error', 'close']) stream.once(event, done)
  })
  stream.destroy()
  return isInTime
}

/** A wrapper exits with 128 plus the number of the signal that ended its program. */
export function endOfWrapped({ code, signal }: UnitEnd): UnitEnd {
  const name = Object.entries(constants.signals).find(([, number]) => code === 128 + number)?.[0]
  return name === undefined ? { code, signal } : { code: null, signal: name }
}
