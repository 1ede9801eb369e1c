import { readdirSync, readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'

/** A workerd that this process has started. */
export class Workerd {
  readonly #pid: number

  private constructor(pid: number) {
    this.#pid = pid
  }

  /** The one that was started last. */
  static async newest(): Promise<Workerd> {
    const found: { pid: number; startedAt: number }[] = []
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
      // Fields 4 and 22 of proc(5): the parent, and when it was started.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      if (stat.includes('(workerd)') && fields[1] === String(process.pid))
        found.push({ pid: Number(pid), startedAt: Number(fields[19]) })
    }
    const [last] = found.sort((a, b) => b.startedAt - a.startedAt || b.pid - a.pid)
    if (last === undefined) throw new Error('no workerd of this process runs')
    return new Workerd(last.pid)
  }

  /** Processor time of its threads so far, ms; to the ns, where the times of proc(5) are in ticks of 10 ms. */
  cpuMs(): number {
    const tasks = `/proc/${this.#pid}/task`
    let ns = 0
    for (const thread of readdirSync(tasks)) {
      // Documentation/scheduler/sched-stats.rst of Linux: the first number.
      const [ran] = readFileSync(`${tasks}/${thread}/schedstat`, 'latin1').split(' ')
      ns += Number(ran)
    }
    return ns / 1e6
  }

  /** Resident memory, MB. */
  async memoryMb(): Promise<number> {
    const status = await readFile(`/proc/${this.#pid}/status`, 'utf8')
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024
  }
}
