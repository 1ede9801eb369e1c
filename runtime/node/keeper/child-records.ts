import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { identify, isSame, type ProcessIdentity } from '../system/process-identity.ts'

interface Record extends ProcessIdentity {
  readonly key: string
}

/** One small file for every child, so that whoever comes after a killed keeper knows what it left behind. */
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

  /** A record that cannot be removed names a process that is gone, as who reads it sees. */
  remove(key: string): void {
    try {
      rmSync(this.#file(key), { force: true })
    } catch {
      // The end of a process is no time to fail.
    }
  }

  #file(key: string): string {
    return join(this.#directory, `${createHash('sha256').update(key).digest('hex').slice(0, 32)}.json`)
  }
}

/**
 * Ends what a keeper that was killed left running: SIGTERM, then SIGKILL after `graceMs`, to the process group of exactly the
 * recorded processes, which must still be the same by pid, start time and boot. Gives the keys of those that were ended.
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
    // A limit of its processor time may have it stopped.
    signal(record, 'SIGCONT')
  }
  const deadline = Date.now() + graceMs
  // They are nobody's children here, so their end is no event; there are few of them, and the wait is short.
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
