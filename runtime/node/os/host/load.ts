import { readFileSync } from 'node:fs'
import { cpus, freemem, totalmem } from 'node:os'
import { type Load, noLoad } from '../../../../src/model/host.ts'

/** Minimum time between two measurements, ms; a shorter one distorts the CPU figure. */
const minMs = 2000

/** The load of the host. All callers share one measurement. */
export class LoadMeter {
  #measured = Number.NEGATIVE_INFINITY
  #times = { busy: 0, total: 0 }
  #load = noLoad

  read(now = performance.now()): Load {
    if (now - this.#measured < minMs) return this.#load
    const before = this.#times
    this.#times = cpuTimes()
    const total = this.#times.total - before.total
    const isFirst = this.#measured === Number.NEGATIVE_INFINITY
    this.#measured = now
    this.#load = {
      cpu_usage_percent: isFirst || total <= 0 ? 0 : percent(this.#times.busy - before.busy, total),
      memory_usage_percent: percent(totalmem() - availableMemory(), totalmem()),
    }
    return this.#load
  }
}

const percent = (part: number, whole: number): number =>
  Math.min(100, Math.max(0, Math.round((part / whole) * 1000) / 10))

function cpuTimes(): { busy: number; total: number } {
  let busy = 0
  let total = 0
  for (const { times } of cpus()) {
    const sum = times.user + times.nice + times.sys + times.irq + times.idle
    total += sum
    busy += sum - times.idle
  }
  return { busy, total }
}

/** Memory that programs can still allocate, bytes; includes the page cache. */
export function availableMemory(): number {
  try {
    const kb = /^MemAvailable:\s+(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]
    return kb === undefined ? freemem() : Number(kb) * 1024
  } catch {
    return freemem()
  }
}
