import { Check } from '@sinclair/typebox/value'
import type { ApplianceStore } from '../../../../src/fleet/appliance-vm/appliance-engine.ts'
import { ApplianceVmRecord, defaultAppliance } from '../../../../src/model/appliance-vm.ts'
import type { RecordFormat, ServiceRecords } from '../../engine/storage/service-records.ts'

const format: RecordFormat<ApplianceVmRecord> = {
  file: 'appliance-vm.json',
  name: 'the settings of the appliance VM',
  parse(text) {
    const record = JSON.parse(text) as Record<string, unknown>
    // Unknown members are dropped, so that the API does not show them.
    const value: unknown = Object.fromEntries(
      Object.entries(defaultAppliance).map(([name, value]) => [
        name,
        Object.hasOwn(record, name) ? record[name] : value,
      ]),
    )
    if (!Check(ApplianceVmRecord, value)) throw new Error('not the settings of an appliance VM')
    return value
  },
  lost: 'set them again',
}

/** The settings of the appliance VM, with a password, in `{data}/appliance-vm.json`. */
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
