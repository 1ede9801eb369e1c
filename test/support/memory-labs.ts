import { EventLog } from '../../src/fleet/events/event-log.ts'
import { defaultLabLimits } from '../../src/labs/lab/lab-limits.ts'
import type { LabEntries, LabStorage, StoredHead } from '../../src/labs/lab/store.ts'
import type { LabPorts } from '../../src/labs/service.ts'

/** Documents of labs that are gone with their test. */
export class MemoryLabs implements LabStorage {
  readonly #labs = new Map<string, Map<string, unknown>>()

  async heads(): Promise<ReadonlyMap<string, StoredHead>> {
    return new Map()
  }

  async load(id: string): Promise<LabEntries | undefined> {
    return this.#labs.get(id)
  }

  async save(id: string, changes: LabEntries): Promise<void> {
    const entries = new Map(this.#labs.get(id))
    for (const [key, value] of changes) {
      if (value === undefined || value === null) entries.delete(key)
      else entries.set(key, structuredClone(value))
    }
    this.#labs.set(id, entries)
  }

  async remove(id: string): Promise<void> {
    this.#labs.delete(id)
  }
}

/** What labs get in tests. */
export function memoryPorts(store: LabStorage = new MemoryLabs()): LabPorts {
  const load = { cpu_usage_percent: 0, memory_usage_percent: 0 }
  return {
    store,
    events: new EventLog({ history: 1000, feeds: () => 64 }, () => load),
    limits: () => defaultLabLimits,
    warn: (message) => process.stderr.write(`${message}\n`),
    report: (error, what) => process.stderr.write(`${what}: ${(error as Error).stack}\n`),
  }
}
