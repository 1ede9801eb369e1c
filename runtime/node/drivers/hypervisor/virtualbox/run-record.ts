import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { withDiskErrors } from '../../../engine/storage/disk.ts'
import {
  jsonOf,
  makeDirectory,
  readDurable,
  removeDurable,
  removeTemporaries,
  writeDurable,
} from '../../../engine/storage/durable-file.ts'

const Word = Type.String({ maxLength: 4096 })

const AdapterRecord = Type.Object({
  number: Type.Integer({ minimum: 1, maximum: 64 }),
  /** The attachment during the run. */
  set: Type.Union([Type.Literal('generic'), Type.Literal('none')]),
  attachment: Word,
  to: Type.Optional(Word),
  /** Absent for a disabled adapter, until it was enabled. */
  type: Type.Optional(Word),
  hasCable: Type.Optional(Type.Boolean()),
  isTraced: Type.Optional(Type.Boolean()),
  properties: Type.Optional(Type.Record(Type.String(), Word)),
})
export type AdapterRecord = Static<typeof AdapterRecord>

/** The settings of a VM before its run (`before`, and members outside `set`), and those of the run (`set`). */
export type RunRecord = Static<typeof RunRecord>
export const RunRecord = Type.Object({
  version: Type.Literal(1),
  uuid: Type.String({ pattern: '^[0-9a-f-]{36}$' }),
  memory: Type.Optional(Type.Object({ before: Type.Integer(), set: Type.Integer() })),
  serialPort: Type.Optional(Type.Object({ at: Word, mode: Type.Optional(Word), set: Word })),
  screen: Type.Optional(
    Type.Object({
      isOn: Type.Boolean(),
      ports: Type.Optional(Word),
      address: Type.Optional(Word),
      set: Type.Object({ ports: Word, address: Word }),
    }),
  ),
  adapters: Type.Array(AdapterRecord, { maxItems: 64 }),
})

const suffix = '.json'

/** Run records on disk, so that a later service can restore the settings of a VM. */
export class RunRecords {
  readonly #directory: string
  #records: Promise<Map<string, RunRecord>> | undefined

  constructor(directory: string) {
    this.#directory = directory
  }

  async get(uuid: string): Promise<RunRecord | undefined> {
    return (await this.#all()).get(uuid)
  }

  async uuids(): Promise<string[]> {
    return [...(await this.#all()).keys()]
  }

  /** Saves a record durably. */
  async put(record: RunRecord): Promise<void> {
    const all = await this.#all()
    await withDiskErrors('The record of a VM', async () => {
      await makeDirectory(this.#directory)
      await writeDurable(this.#file(record.uuid), `${JSON.stringify(record)}\n`)
    })
    all.set(record.uuid, record)
  }

  async remove(uuid: string): Promise<void> {
    const all = await this.#all()
    await withDiskErrors('The record of a VM', () => removeDurable(this.#file(uuid)))
    all.delete(uuid)
  }

  #file(uuid: string): string {
    return join(this.#directory, `${uuid}${suffix}`)
  }

  #all(): Promise<Map<string, RunRecord>> {
    this.#records ??= this.#read()
    return this.#records
  }

  async #read(): Promise<Map<string, RunRecord>> {
    await removeTemporaries(this.#directory)
    const names = await readdir(this.#directory).catch(() => [])
    const records = new Map<string, RunRecord>()
    for (const name of names.filter((each) => each.endsWith(suffix))) {
      // Records of a newer version stay for that version.
      const found = await readDurable(join(this.#directory, name), jsonOf(RunRecord)).catch(() => undefined)
      if (found !== undefined && `${found.value.uuid}${suffix}` === name) records.set(found.value.uuid, found.value)
    }
    return records
  }
}
