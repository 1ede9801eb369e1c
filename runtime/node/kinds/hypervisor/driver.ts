/** What a VM does, as its manager sees it. `saved`: its memory is on disk; started, it goes on from there. */
export type VmState = 'stopped' | 'started' | 'suspended' | 'saved'

/** A VM of a manager; names change, ids do not. */
export interface Vm {
  readonly uuid: string
  readonly name: string
  /** MB. */
  readonly ram: number
  readonly state: VmState
}

/** An adapter that is a port of the node. */
export interface VmAdapter {
  /** From 0. */
  readonly index: number
  /** UDP ports on 127.0.0.1: where the VM listens, and where the switch does. */
  readonly guestPort: number
  readonly switchPort: number
  /** Whether a cable is in it. */
  readonly carrier: boolean
  /** One of `adapterTypes`; absent: that of the plan. */
  readonly type?: string
}

/** How a VM runs; nothing of it stays in the definition of a VM that is the user's own. */
export interface VmPlan {
  /** MB; as the VM is defined when absent. */
  readonly ram?: number
  /** The adapters that are ports, in order. */
  readonly adapters: readonly VmAdapter[]
  /** One of `adapterTypes`. */
  readonly adapterType: string
  /** Whether adapters that the VM uses for something else are taken, too. */
  readonly useAnyAdapter: boolean
  /** TCP port on 127.0.0.1 at which its first serial port is to be had while it runs, as raw bytes. */
  readonly serialPort: number
  /** Where its screen is served by VNC; absent: nowhere. */
  readonly screen?: { readonly host: string; readonly port: number }
  /** Whose VM it is, for guests that ask. */
  readonly node?: { readonly name: string; readonly directory: string }
  /** Without a window on the screen of the host. */
  readonly headless: boolean
}

/** How a VM ends: at once, by its power button (bounded; 409 when it does not obey), or with its memory on disk. */
export type VmEnding = 'power_off' | 'shutdown_signal' | 'save_vm_state'

export interface CloneWanted {
  /** The VM it is an overlay of. */
  readonly uuid: string
  readonly name: string
  /** The id that it is to have; absent: a new one. */
  readonly clone_uuid?: string
  /** Absolute; everything of the clone is in it. */
  readonly directory: string
}

/**
 * A manager of VMs. Failures are ApiErrors: 409 with the manager's own words, when it cannot be reached, too. Every call is
 * bounded. VMs are addressed by their id.
 */
export interface HypervisorDriver {
  readonly name: 'libvirt' | 'virtualbox'
  /** What `adapter_type` may be, the default first; older words for them are understood by `adapterType`. */
  readonly adapterTypes: readonly string[]
  /** The type that a free text means; undefined when it means none. */
  adapterType(text: string): string | undefined
  /** What the VMs of the manager are, without clones that nodes have. */
  list(): Promise<Vm[]>
  /** The VM of that name; 409 when there is none. */
  find(name: string): Promise<Vm>
  /** The VM as it is now; undefined when it is gone. */
  get(uuid: string): Promise<Vm | undefined>
  /** How many adapters it can have. */
  maxAdapters(uuid: string): Promise<number>
  /** Adapters that the VM itself uses for something else (index from 0); none may be taken unless `useAnyAdapter`. */
  usedAdapters(uuid: string): Promise<readonly number[]>
  /** 409 unless it is stopped or saved. */
  start(uuid: string, plan: VmPlan): Promise<void>
  /** One that does not run, or is gone, is left alone. */
  stop(uuid: string, how: VmEnding, signal?: AbortSignal): Promise<void>
  /** Whether it runs as `start` had it run, with that serial port, and not as somebody else started it. */
  holds(uuid: string, serialPort: number): Promise<boolean>
  suspend(uuid: string): Promise<void>
  resume(uuid: string): Promise<void>
  reset(uuid: string): Promise<void>
  /** Shows the running VM a cable, or none. */
  setCarrier(uuid: string, adapter: VmAdapter): Promise<void>
  /** A linked clone, stopped; nothing is left when it fails. */
  clone(wanted: CloneWanted): Promise<Vm>
  /** Whether what failed so may have been done, or still be done: the manager did not answer. */
  isUnclear(error: unknown): boolean
  /** 409 while it runs, or when another VM has the name. */
  renameClone(uuid: string, name: string): Promise<void>
  /** What is known of the clone in `directory`: it is made known to the manager again. */
  openClone(uuid: string, directory: string): Promise<Vm>
  /** The manager forgets the clone; its files stay. */
  closeClone(uuid: string): Promise<void>
  /** The manager forgets the clone and its disks are deleted. The VM it was made of is as before. */
  removeClone(uuid: string): Promise<void>
  /** Where the serial port of a VM is when it is not at `serialPort`: a UNIX socket for one client. */
  serialPath?(uuid: string): string
  /** At the start of the service: what one that was killed left undone. Never throws. */
  recover?(): Promise<void>
  /** A project has closed whose files were in that directory. Never throws. */
  forgetMissingDisks?(directory: string): Promise<void>
  /** Calls back when the state of a VM may have changed, whoever changed it; the function that comes back ends that. */
  watch(changed: (uuid: string) => void): () => void
  close(): Promise<void>
}

/** How the appliance VM runs: as its user has it, but for its size. */
export interface ApplianceRun {
  /** Memory in MB; absent: as the VM is defined. */
  readonly size?: { readonly ram: number; readonly vcpus: number }
  /** Without a window on the screen of the host. */
  readonly headless: boolean
}

/** A manager of VMs of which one can be the appliance VM. */
export interface ApplianceDriver extends HypervisorDriver {
  /** Starts a VM with its own adapters, console and screen. 409 unless it is stopped or saved. */
  startAppliance(uuid: string, run: ApplianceRun): Promise<void>
  /** Where a TCP port of a VM that runs may be reached from here, the likeliest first. */
  reach(uuid: string, port: number): Promise<readonly { readonly host: string; readonly port: number }[]>
}
