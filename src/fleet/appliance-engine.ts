import type { ApplianceEngineShown, ApplianceVmRecord } from '../model/appliance-vm.ts'
import type { ComputeRecord } from '../model/compute.ts'

/** Where the service in the VM may be, and who may use it. */
export type AppliancePlace = Pick<ComputeRecord, 'protocol' | 'host' | 'port' | 'user' | 'password'>

/**
 * What runs the appliance VM, which is the one that the settings name. Failures are ApiErrors (409 with the engine's own words).
 * Every call is bounded.
 */
export interface ApplianceEngine {
  readonly shown: ApplianceEngineShown
  /** Names of the VMs that it can be. */
  vms(): Promise<readonly string[]>
  /** Has it run: one that runs already is used as it is. When it rejects, it may run all the same. */
  start(settings: ApplianceVmRecord, signal: AbortSignal): Promise<void>
  /** Where the service may be now, the likeliest first; empty while that is not known. */
  places(settings: ApplianceVmRecord): Promise<readonly AppliancePlace[]>
  isRunning(settings: ApplianceVmRecord): Promise<boolean>
  /** Ends it, if it runs. The signal says that its guest is not waited for any longer. */
  end(settings: ApplianceVmRecord, how: 'stop' | 'suspend', expedite: AbortSignal): Promise<void>
  /** Calls back when it may have changed, whoever changed it; the function that comes back ends that. */
  watch(settings: ApplianceVmRecord, changed: () => void): () => void
}

export interface ApplianceStore {
  /** Undefined when nothing was saved yet. */
  load(): Promise<ApplianceVmRecord | undefined>
  /** On disk when it resolves. Rejects with ApiError for what a client can mend (507 on a full disk). */
  save(settings: ApplianceVmRecord): Promise<void>
}
