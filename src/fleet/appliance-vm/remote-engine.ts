import { conflict } from '../../lib/errors/api-error.ts'
import type { ApplianceVmRecord } from '../../model/appliance-vm.ts'
import type { ComputeRecord } from '../../model/compute.ts'
import type { Fleet } from '../pool/fleet.ts'
import type { ApplianceAddress, ApplianceEngine } from './appliance-engine.ts'

/** A registered compute in the place of the VM: the service neither starts nor ends it. */
export class RemoteEngine implements ApplianceEngine {
  readonly view = {
    engine_id: 'remote',
    name: 'Remote',
    description: 'Use a compute that is registered in place of a VM.',
    support_when_exit: false,
    support_headless: false,
    support_ram: false,
  }
  readonly #fleet: Fleet

  constructor(fleet: Fleet) {
    this.#fleet = fleet
  }

  async vms(): Promise<readonly string[]> {
    return [...this.#fleet.registered().keys()].sort()
  }

  async start(settings: ApplianceVmRecord): Promise<void> {
    if (this.#find(settings) === undefined) throw conflict(`There is no compute ${JSON.stringify(settings.vmname)}`)
  }

  async addresses(settings: ApplianceVmRecord): Promise<readonly ApplianceAddress[]> {
    const found = this.#find(settings)
    if (found === undefined) return []
    const { protocol, host, port, user, password } = found
    return [{ protocol, host, port, user, password }]
  }

  async isRunning(settings: ApplianceVmRecord): Promise<boolean> {
    return this.#find(settings) !== undefined
  }

  async end(): Promise<void> {}

  watch(settings: ApplianceVmRecord, changed: () => void): () => void {
    const id = this.#find(settings)?.compute_id
    return this.#fleet.listen((event) => {
      if ('compute' in event && event.compute.compute_id === id) changed()
    })
  }

  #find({ vmname }: ApplianceVmRecord): ComputeRecord | undefined {
    return this.#fleet.registered().get(vmname ?? '')
  }
}
