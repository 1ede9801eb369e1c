import { readdirSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import type { Readable } from 'node:stream'
import { identify, isSame, type ProcessIdentity } from '../system/process-identity.ts'
import type { UnitEnd } from './runner.ts'

/**
 * A program that a wrapper confines is the grandchild of the keeper: the wrapper, the init of its PID namespace, the program.
 * The wrapper is the leader of the process group, and its end is that of all three. A polite end is asked of the program
 * alone, because the wrapper would not survive it, and take the program with it.
 */
export class WrappedProgram {
  readonly pid: number
  readonly #identity: ProcessIdentity

  private constructor(identity: ProcessIdentity) {
    this.pid = identity.pid
    this.#identity = identity
  }

  /** The program of a wrapper that has said that it begins; undefined when it has ended. */
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

/** Pids are given out in order, so a child is near its parent. */
const near = 64

function childOf(parent: number): number | undefined {
  for (let pid = parent + 1; pid <= parent + near; pid++) if (parentOf(pid) === parent) return pid
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return all.map(Number).find((pid) => parentOf(pid) === parent)
}

/** Field 4 of proc(5). */
function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in parentheses may hold spaces and parentheses itself.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ', 2)[1])
  } catch {
    return undefined
  }
}

/** Resolves when something is said on the descriptor, or it is closed, or after the bound; then it is closed. */
export async function said(stream: Readable, ms: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms)
    const done = () => {
      clearTimeout(timer)
      resolve()
    }
    stream.once('data', done)
    stream.once('error', done)
    stream.once('close', done)
  })
  stream.destroy()
}

/** A wrapper ends with 128 and the number of the signal that its program was ended by. */
export function endOfWrapped({ code, signal }: UnitEnd): UnitEnd {
  const name = Object.entries(constants.signals).find(([, number]) => code === 128 + number)?.[0]
  return name === undefined ? { code, signal } : { code: null, signal: name }
}
