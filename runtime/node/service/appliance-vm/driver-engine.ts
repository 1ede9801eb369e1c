import type { ApplianceAddress, ApplianceEngine } from '../../../../src/fleet/appliance-vm/appliance-engine.ts'
import type { ApplianceEngineShown, ApplianceVmRecord } from '../../../../src/model/appliance-vm.ts'
import type { ApplianceDriver, ApplianceRun, Vm } from '../../drivers/hypervisor/driver.ts'

/** An engine on a hypervisor of this host. */
export class DriverEngine implements ApplianceEngine {
  readonly view: ApplianceEngineShown
  readonly #driver: ApplianceDriver
  /** UUIDs of started VMs by name, because the user may rename a VM. */
  readonly #uuids = new Map<string | null, string>()

  constructor(driver: ApplianceDriver, shown: Omit<ApplianceEngineShown, 'engine_id' | 'support_when_exit'>) {
    this.#driver = driver
    this.view = { engine_id: driver.name, support_when_exit: true, ...shown }
  }

  async vms(): Promise<readonly string[]> {
    return (await this.#driver.list()).map(({ name }) => name).sort()
  }

  async start(settings: ApplianceVmRecord, signal: AbortSignal): Promise<void> {
    const { headless, allocate_vcpus_ram: isSized, ram, vcpus } = settings
    const vm = await this.#driver.find(settings.vmname ?? '')
    this.#uuids.set(settings.vmname, vm.uuid)
    signal.throwIfAborted()
    const run = { headless, ...(isSized && { size: { ram, vcpus } }) }
    try {
      await this.#run(vm, run)
    } catch (error) {
      // The state of the VM may have changed meanwhile, by its user or by an operation of a killed service.
      const now = await this.#driver.get(vm.uuid)
      if (now === undefined || now.state === vm.state) throw error
      signal.throwIfAborted()
      await this.#run(now, run)
    }
  }

  async addresses(settings: ApplianceVmRecord): Promise<readonly ApplianceAddress[]> {
    const { address, port, user, password } = settings
    const access = { protocol: 'http', user, password } as const
    if (address !== null) return [{ ...access, host: address, port }]
    const uuid = this.#uuids.get(settings.vmname)
    if (uuid === undefined) return []
    return (await this.#driver.reach(uuid, port)).map((reached) => ({ ...access, ...reached }))
  }

  async isRunning(settings: ApplianceVmRecord): Promise<boolean> {
    return (await this.#find(settings))?.state === 'started'
  }

  async end(settings: ApplianceVmRecord, how: 'stop' | 'suspend', skipGracePeriod: AbortSignal): Promise<void> {
    const vm = await this.#find(settings)
    if (vm === undefined || vm.state === 'stopped' || vm.state === 'saved') return
    if (how === 'suspend') return this.#driver.stop(vm.uuid, 'save_vm_state')
    try {
      await this.#driver.stop(vm.uuid, 'shutdown_signal', skipGracePeriod)
    } catch {
      // The guest did not shut down.
      await this.#driver.stop(vm.uuid, 'power_off')
    }
  }

  watch(settings: ApplianceVmRecord, changed: () => void): () => void {
    const uuid = this.#uuids.get(settings.vmname)
    return this.#driver.watch((it) => {
      if (it === uuid) changed()
    })
  }

  async #run({ uuid, state }: Vm, run: ApplianceRun): Promise<void> {
    if (state === 'suspended') await this.#driver.resume(uuid)
    else if (state !== 'started') await this.#driver.startAppliance(uuid, run)
  }

  /** Undefined when the service did not start the VM, or the VM is gone. Rejects when the hypervisor does not answer. */
  async #find({ vmname }: ApplianceVmRecord): Promise<Vm | undefined> {
    const uuid = this.#uuids.get(vmname)
    return uuid === undefined ? undefined : this.#driver.get(uuid)
  }
}
