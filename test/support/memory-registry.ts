import type { ComputeRegistry } from '../../src/fleet/pool/registry.ts'
import type { ComputeRecord } from '../../src/model/compute.ts'

/** A registry that is gone with its test. `fault`: what saving fails with. */
export class MemoryRegistry implements ComputeRegistry {
  readonly records: Map<string, ComputeRecord>
  fault: Error | undefined

  constructor(records: readonly ComputeRecord[] = []) {
    this.records = new Map(records.map((record) => [record.compute_id.toLowerCase(), record]))
  }

  async load(): Promise<readonly ComputeRecord[]> {
    return [...this.records.values()]
  }

  async save(record: ComputeRecord): Promise<void> {
    if (this.fault !== undefined) throw this.fault
    this.records.set(record.compute_id.toLowerCase(), record)
  }

  async remove(computeId: string): Promise<void> {
    this.records.delete(computeId.toLowerCase())
  }
}
