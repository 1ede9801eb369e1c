import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { identify, isSame, type ProcessIdentity } from '../../os/system/process-identity.ts'

interface Record extends ProcessIdentity {
  readonly key: string
}

/** One small file for each child. After a keeper was killed, its successor finds the orphans by these files. */
export class ChildRecords {
  readonly #directory: string

  constructor(runDirectory: string) {
    this.#directory = join(runDirectory, 'children')
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
  }

  add(key: string, pid: number): void {
    const identity = identify(pid)
    if (identity !== undefined) writeFileSync(this.#file(key), JSON.stringify({ key, ...identity }), { mode: 0o600 })
  }

  remove(key: string): void {
    try {
      rmSync(this.#file(key), { force: true })
    } catch {
      // A stale record is harmless: its process no longer exists.
    }
  }

  #file(key: string): string {
    return join(this.#directory, `${createHash('sha256').update(key).digest('hex').slice(0, 32)}.json`)
  }
}

/**
 * Ends the orphans of a killed keeper: SIGTERM to the recorded process groups, then SIGKILL after `graceMs`. A process must match
 * its record by pid, start time and boot. Returns the keys of the ended units.
 */
export async function reapLeftovers(runDirectory: string, graceMs = 2000): Promise<string[]> {
  const directory = join(runDirectory, 'children')
  const names = readdirSync(directory, { withFileTypes: true }).filter((it) => it.isFile() && it.name.endsWith('.json'))
  const leftovers = names.flatMap(({ name }) => {
    const record = read(join(directory, name))
    return record !== undefined && isSame(record, identify(record.pid)) ? [record] : []
  })
  const isLeft = (record: Record) => isSame(record, identify(record.pid))
  for (const record of leftovers) {
    signal(record, 'SIGTERM')
    // A CPU limit may have stopped the process.
    signal(record, 'SIGCONT')
  }
  const deadline = Date.now() + graceMs
  // The orphans are no children of this process, so their exit raises no event. They are few, and the wait is short.
  while (leftovers.some(isLeft) && Date.now() < deadline) await delay(20)
  for (const record of leftovers.filter(isLeft)) signal(record, 'SIGKILL')
  while (leftovers.some(isLeft) && Date.now() < deadline + 2000) await delay(20)
  for (const { name } of names) rmSync(join(directory, name), { force: true })
  return leftovers.map(({ key }) => key)
}

function read(file: string): Record | undefined {
  try {
    const record = JSON.parse(readFileSync(file, 'utf8')) as Record
    return Number.isInteger(record.pid) && record.pid > 1 ? record : undefined
  } catch {
    return undefined
  }
}

function signal({ pid }: Record, name: NodeJS.Signals): void {
  try {
    process.kill(-pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
