/** The state of a VM. `saved`: its memory is on disk, and a start continues from there. */
export type VmState = 'stopped' | 'started' | 'suspended' | 'saved'

/** A VM of a hypervisor. Its name can change, its UUID cannot. */
export interface Vm {
  readonly uuid: string
  readonly name: string
  /** MB. */
  readonly ram: number
  readonly state: VmState
}

/** An adapter of a VM that is a port of its node. */
export interface VmAdapter {
  /** From 0. */
  readonly index: number
  /** UDP ports on 127.0.0.1 of the VM and of the switch. */
  readonly guestPort: number
  readonly switchPort: number
  /** Whether the guest sees a connected cable. */
  readonly carrier: boolean
  /** One of `adapterTypes`. Default: the type of the plan. */
  readonly type?: string
}

/** The settings of a run. They do not stay in the definition of a VM of the user. */
export interface VmPlan {
  /** MB. Default: as the VM is defined. */
  readonly ram?: number
  /** The adapters that are ports, in order. */
  readonly adapters: readonly VmAdapter[]
  /** One of `adapterTypes`. */
  readonly adapterType: string
  /** Whether adapters in other use may be taken. */
  readonly useAnyAdapter: boolean
  /** TCP port on 127.0.0.1 of the first serial port, raw bytes. */
  readonly serialPort: number
  /** Address of the VNC server; absent: no screen. */
  readonly screen?: { readonly host: string; readonly port: number }
  /** The node, for guest properties. */
  readonly node?: { readonly name: string; readonly directory: string }
  /** Without a window on the screen of the host. */
  readonly headless: boolean
}

/** How a VM is stopped: at once, by its power button (with a timeout, 409), or with its memory saved to disk. */
export type StopMode = 'power_off' | 'shutdown_signal' | 'save_vm_state'

export interface CloneRequest {
  /** The source VM. */
  readonly uuid: string
  readonly name: string
  /** Default: a new UUID. */
  readonly clone_uuid?: string
  /** Absolute path; all files of the clone are in it. */
  readonly directory: string
}

/** A hypervisor of this host. Each call has a timeout. Failures are 409 with the message of the hypervisor. */
export interface HypervisorDriver {
  readonly name: 'libvirt' | 'virtualbox'
  /** The adapter types, the default first. */
  readonly adapterTypes: readonly string[]
  /** The adapter type that a text of a client means. */
  adapterType(text: string): string | undefined
  /** All VMs without the clones of nodes. */
  list(): Promise<Vm[]>
  /** 409 when no VM has the name. */
  find(name: string): Promise<Vm>
  /** Undefined when the VM is gone. */
  get(uuid: string): Promise<Vm | undefined>
  maxAdapters(uuid: string): Promise<number>
  /** Indexes, from 0, of adapters in other use. */
  usedAdapters(uuid: string): Promise<readonly number[]>
  /** 409 unless the VM is stopped or saved. */
  start(uuid: string, plan: VmPlan): Promise<void>
  /** Does nothing for a VM that does not run or is gone. */
  stop(uuid: string, how: StopMode, signal?: AbortSignal): Promise<void>
  /** Whether the VM runs as `start` started it, with that serial port, or has stopped and still has settings of that run. */
  holds(uuid: string, serialPort: number): Promise<boolean>
  suspend(uuid: string): Promise<void>
  resume(uuid: string): Promise<void>
  reset(uuid: string): Promise<void>
  /** Connects or disconnects the cable of a running VM. */
  setCarrier(uuid: string, adapter: VmAdapter): Promise<void>
  /** Creates a linked clone, which is stopped. A failure leaves nothing behind. */
  clone(request: CloneRequest): Promise<Vm>
  /** Whether a failed request may still take effect, because the hypervisor did not answer. */
  mayHaveSucceeded(error: unknown): boolean
  /** 409 while the VM runs, or when another VM has the name. */
  renameClone(uuid: string, name: string): Promise<void>
  /** Registers the clone in `directory` again, if it is not registered. */
  openClone(uuid: string, directory: string): Promise<Vm>
  /** Unregisters a clone; its files stay. */
  closeClone(uuid: string): Promise<void>
  /** Unregisters a clone and deletes its disks. */
  removeClone(uuid: string): Promise<void>
  /** The UNIX socket of the serial port, for one client; it replaces `serialPort` of the plan. */
  serialPath?(uuid: string): string
  /** Completes the work of a killed service. Never throws. */
  recover?(): Promise<void>
  /** Unregisters disks below a directory whose files are missing. */
  forgetMissingDisks?(directory: string): Promise<void>
  /** Calls back when the state of a VM may have changed; the result ends the watch. */
  watch(changed: (uuid: string) => void): () => void
  close(): Promise<void>
}

/** The settings of a run of the appliance VM. */
export interface ApplianceRun {
  /** Memory in MB, and processors. Default: as the VM is defined. */
  readonly size?: { readonly ram: number; readonly vcpus: number }
  /** Without a window on the screen of the host. */
  readonly headless: boolean
}

/** A hypervisor that can run the appliance VM. */
export interface ApplianceDriver extends HypervisorDriver {
  /** Starts a VM with its own adapters, console and screen. 409 unless the VM is stopped or saved. */
  startAppliance(uuid: string, run: ApplianceRun): Promise<void>
  /** Addresses of a TCP port of a running VM, the likeliest first. */
  reach(uuid: string, port: number): Promise<readonly { readonly host: string; readonly port: number }[]>
}
