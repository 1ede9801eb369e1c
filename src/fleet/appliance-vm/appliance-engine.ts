import type { ApplianceEngineShown as ApplianceEngineView, ApplianceVmRecord } from '../../model/appliance-vm.ts'
import type { ComputeRecord } from '../../model/compute.ts'

/** A possible address of the service in the VM, and its credentials. */
export type ApplianceAddress = Pick<ComputeRecord, 'protocol' | 'host' | 'port' | 'user' | 'password'>

/**
 * Runs the appliance VM that the settings name. Failures are ApiErrors (409 with the message of the engine). Every call has a
 * timeout.
 */
export interface ApplianceEngine {
  readonly view: ApplianceEngineView
  /** Names of the VMs that can be the appliance. */
  vms(): Promise<readonly string[]>
  /** Starts the VM unless it runs. After a rejection the VM may run nevertheless. */
  start(settings: ApplianceVmRecord, signal: AbortSignal): Promise<void>
  /** Possible addresses of the service, the likeliest first; empty while they are unknown. */
  addresses(settings: ApplianceVmRecord): Promise<readonly ApplianceAddress[]>
  isRunning(settings: ApplianceVmRecord): Promise<boolean>
  /** Ends the VM if it runs. After the signal it no longer waits for the guest. */
  end(settings: ApplianceVmRecord, how: 'stop' | 'suspend', skipGracePeriod: AbortSignal): Promise<void>
  /** Calls `changed` when the state of the VM may have changed, by any cause; the returned function ends the watch. */
  watch(settings: ApplianceVmRecord, changed: () => void): () => void
}

export interface ApplianceStore {
  /** Undefined before the first save. */
  load(): Promise<ApplianceVmRecord | undefined>
  /** On disk when it resolves. Rejects with ApiError for an error that a client can repair (507 on a full disk). */
  save(settings: ApplianceVmRecord): Promise<void>
}
