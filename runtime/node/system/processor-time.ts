import { closeSync, openSync, readSync } from 'node:fs'

/** USER_HZ is 100 wherever Node runs; /proc rounds down to its ticks, so that sums over time are right. */
export const tickMs = 10

/** The processor time of one process with all its threads, those that have ended too, without its children; or of one thread. */
export class ProcessorTime {
  // Stays with this process: once it is gone, reading fails, also when another one has its pid.
  readonly #stat: number
  readonly #buffer = Buffer.alloc(1024)

  /** Throws where there is no such process, or no /proc. */
  constructor(pid: number, thread?: number) {
    this.#stat = openSync(thread === undefined ? `/proc/${pid}/stat` : `/proc/${pid}/task/${thread}/stat`, 'r')
  }

  /** User and system time in ms, fields 14 and 15 of proc(5); undefined when the process is gone. */
  read(): number | undefined {
    try {
      const length = readSync(this.#stat, this.#buffer, 0, this.#buffer.length, 0)
      const stat = this.#buffer.toString('latin1', 0, length)
      // The name in parentheses may hold spaces and parentheses itself.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 13)
      return (Number(fields[11]) + Number(fields[12])) * tickMs
    } catch {
      return undefined
    }
  }

  close(): void {
    closeSync(this.#stat)
  }
}
