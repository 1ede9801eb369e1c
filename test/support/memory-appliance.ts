import type { ApplianceStore } from '../../src/fleet/appliance-vm/appliance-engine.ts'
import type { ApplianceVmRecord } from '../../src/model/appliance-vm.ts'

/** Settings that are gone with their test. `fault`: what saving fails with. */
export class MemoryAppliance implements ApplianceStore {
  settings: ApplianceVmRecord | undefined
  fault: Error | undefined

  async load(): Promise<ApplianceVmRecord | undefined> {
    return this.settings
  }

  async save(settings: ApplianceVmRecord): Promise<void> {
    if (this.fault !== undefined) throw this.fault
    this.settings = settings
  }
}
