import { closeSync, openSync, readSync } from 'node:fs'
import { statFields } from './process-identity.ts'

/** /proc counts in ticks of USER_HZ, 100 a second on every system of Node (proc(5)). It rounds down, so sums over time are right. */
export const tickMs = 10

/** The processor time of a process: all its threads, including ended ones, without its children; or of one thread. */
export class ProcessorTime {
  // The open file belongs to this process: after its end reads fail, even if another process has the pid.
  readonly #stat: number
  readonly #buffer = Buffer.alloc(1024)

  /** Throws without such a process, and without /proc. */
  constructor(pid: number, thread?: number) {
    this.#stat = openSync(thread === undefined ? `/proc/${pid}/stat` : `/proc/${pid}/task/${thread}/stat`, 'r')
  }

  /** User and system time in ms, fields 14 and 15 of proc(5); undefined when the process has ended. */
  read(): number | undefined {
    try {
      const length = readSync(this.#stat, this.#buffer, 0, this.#buffer.length, 0)
      const fields = statFields(this.#buffer.toString('latin1', 0, length))
      return (Number(fields[11]) + Number(fields[12])) * tickMs
    } catch {
      return undefined
    }
  }

  close(): void {
    closeSync(this.#stat)
  }
}
