import { Type } from '@sinclair/typebox'
import { computeKey } from '../../../../src/fleet/pool/computes.ts'
import type { ComputeRegistry } from '../../../../src/fleet/pool/registry.ts'
import { ComputeRecord } from '../../../../src/model/compute.ts'
import { jsonOf } from '../../engine/storage/durable-file.ts'
import type { ServiceRecords } from '../../engine/storage/service-records.ts'

const FileContent = Type.Object({ version: Type.Literal(1), computes: Type.Array(ComputeRecord) })

const format = {
  file: 'computes.json',
  name: 'the computes',
  parse: jsonOf(FileContent),
  lost: 'register them again',
}

/** The computes in `{data}/computes.json`, which has their passwords. */
export class RegistryFile implements ComputeRegistry {
  readonly #files: ServiceRecords
  #records = new Map<string, ComputeRecord>()

  constructor(files: ServiceRecords) {
    this.#files = files
  }

  async load(): Promise<readonly ComputeRecord[]> {
    const { value } = await this.#files.read(format)
    this.#records = new Map(value?.computes.map((record) => [computeKey(record.compute_id), record]))
    return [...this.#records.values()]
  }

  async save(record: ComputeRecord): Promise<void> {
    await this.#write(new Map(this.#records).set(computeKey(record.compute_id), record), { isMore: true })
  }

  async remove(computeId: string): Promise<void> {
    const records = new Map(this.#records)
    if (records.delete(computeKey(computeId))) await this.#write(records)
  }

  async #write(records: Map<string, ComputeRecord>, options?: { isMore: boolean }): Promise<void> {
    await this.#files.write(format, { version: 1, computes: [...records.values()] }, options)
    this.#records = records
  }
}
