import { join } from 'node:path'
import { Check } from '@sinclair/typebox/value'
import type { ApplianceStore } from '../../../src/fleet/appliance-engine.ts'
import { ApplianceVmRecord, defaultAppliance } from '../../../src/model/appliance-vm.ts'
import type { Log } from '../log/log.ts'
import { requireSpace, translated } from '../storage/disk.ts'
import { readDurable, writeDurable } from '../storage/durable-file.ts'
import { closeToOthers, putAside } from '../storage/secret-file.ts'

/** The settings of the appliance VM in `{data}/appliance-vm.json`, which nobody else may read: it has a password. */
export class ApplianceFile implements ApplianceStore {
  readonly #directory: string
  readonly #path: string
  readonly #minFreeMb: () => number
  readonly #log: Log

  constructor({ data, minFreeMb, log }: { data: string; minFreeMb: () => number; log: Log }) {
    this.#directory = data
    this.#path = join(data, 'appliance-vm.json')
    this.#minFreeMb = minFreeMb
    this.#log = log
  }

  async load(): Promise<ApplianceVmRecord | undefined> {
    const found = await readDurable(this.#path, (text) => {
      const said = JSON.parse(text) as Record<string, unknown>
      // Nothing that is not known here is kept, and so shown.
      const value: unknown = Object.fromEntries(
        Object.entries(defaultAppliance).map(([name, usual]) => [name, Object.hasOwn(said, name) ? said[name] : usual]),
      )
      if (!Check(ApplianceVmRecord, value)) throw new Error('not the settings of an appliance VM')
      return value
    })
    if (found?.damaged === true) {
      this.#log.warn({ path: this.#path }, 'the settings of the appliance VM are read from the copy before')
    }
    if (found === undefined && (await putAside(this.#path))) {
      this.#log.error({ path: this.#path }, 'the settings of the appliance VM cannot be read; they were put aside')
    }
    for (const path of [this.#path, `${this.#path}.bak`]) await closeToOthers(path)
    return found?.value
  }

  async save(settings: ApplianceVmRecord): Promise<void> {
    await requireSpace(this.#directory, this.#minFreeMb())
    await translated('The settings of the appliance VM were not saved', () =>
      writeDurable(this.#path, `${JSON.stringify(settings, null, 2)}\n`),
    )
  }
}
