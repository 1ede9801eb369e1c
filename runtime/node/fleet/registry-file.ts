import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { keyOf } from '../../../src/fleet/computes.ts'
import type { Registry } from '../../../src/fleet/registry.ts'
import { ComputeRecord } from '../../../src/model/compute.ts'
import type { Log } from '../log/log.ts'
import { requireSpace, translated } from '../storage/disk.ts'
import { readDurable, removeTemporaries, writeDurable } from '../storage/durable-file.ts'
import { closeToOthers, putAside } from '../storage/secret-file.ts'

const FileContent = Type.Object({ version: Type.Literal(1), computes: Type.Array(ComputeRecord) })

/** The computes in `{data}/computes.json`, which nobody else may read: it has the passwords. */
export class RegistryFile implements Registry {
  readonly #directory: string
  readonly #path: string
  readonly #minFreeMb: () => number
  readonly #log: Log
  #records = new Map<string, ComputeRecord>()

  constructor({ data, minFreeMb, log }: { data: string; minFreeMb: () => number; log: Log }) {
    this.#directory = data
    this.#path = join(data, 'computes.json')
    this.#minFreeMb = minFreeMb
    this.#log = log
  }

  async load(): Promise<readonly ComputeRecord[]> {
    await removeTemporaries(this.#directory)
    const found = await readDurable(this.#path, (text) => {
      const value: unknown = JSON.parse(text)
      if (!Check(FileContent, value)) throw new Error('not the computes of a fleet')
      return value.computes
    })
    if (found?.damaged === true) this.#log.warn({ path: this.#path }, 'the computes are read from the copy before')
    if (found === undefined && (await putAside(this.#path))) {
      this.#log.error({ path: this.#path }, 'the computes cannot be read; they were put aside')
    }
    for (const path of [this.#path, `${this.#path}.bak`]) await closeToOthers(path)
    this.#records = new Map(found?.value.map((record) => [keyOf(record.compute_id), record]))
    return [...this.#records.values()]
  }

  async save(record: ComputeRecord): Promise<void> {
    await requireSpace(this.#directory, this.#minFreeMb())
    await this.#write(new Map(this.#records).set(keyOf(record.compute_id), record))
  }

  async remove(computeId: string): Promise<void> {
    const records = new Map(this.#records)
    if (records.delete(keyOf(computeId))) await this.#write(records)
  }

  async #write(records: Map<string, ComputeRecord>): Promise<void> {
    const content = { version: 1, computes: [...records.values()] }
    await translated('The computes were not saved', () =>
      writeDurable(this.#path, `${JSON.stringify(content, null, 2)}\n`),
    )
    this.#records = records
  }
}
