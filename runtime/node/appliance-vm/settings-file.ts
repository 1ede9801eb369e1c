import { Check } from '@sinclair/typebox/value'
import type { ApplianceStore } from '../../../src/fleet/appliance-engine.ts'
import { ApplianceVmRecord, defaultAppliance } from '../../../src/model/appliance-vm.ts'
import type { RecordFormat, ServiceRecords } from '../storage/service-records.ts'

const format: RecordFormat<ApplianceVmRecord> = {
  file: 'appliance-vm.json',
  name: 'the settings of the appliance VM',
  parse(text) {
    const said = JSON.parse(text) as Record<string, unknown>
    // Nothing that is not known here is kept, and so shown.
    const value: unknown = Object.fromEntries(
      Object.entries(defaultAppliance).map(([name, usual]) => [name, Object.hasOwn(said, name) ? said[name] : usual]),
    )
    if (!Check(ApplianceVmRecord, value)) throw new Error('not the settings of an appliance VM')
    return value
  },
  lost: 'set them again',
}

/** The settings of the appliance VM in `{data}/appliance-vm.json`, which has a password. */
export class ApplianceFile implements ApplianceStore {
  readonly #files: ServiceRecords

  constructor(files: ServiceRecords) {
    this.#files = files
  }

  async load(): Promise<ApplianceVmRecord | undefined> {
    return (await this.#files.read(format)).value
  }

  save(settings: ApplianceVmRecord): Promise<void> {
    return this.#files.write(format, settings, { isMore: true })
  }
}
