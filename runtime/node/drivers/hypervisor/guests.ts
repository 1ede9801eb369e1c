import type { PortRef } from '../../../../src/host-agent.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { HypervisorDriverName } from '../../../../src/model/kinds/hypervisor.ts'
import type {
  GuestControl,
  GuestProcess,
  GuestState,
  KindListener,
  PortWire,
  StopReason,
} from '../../engine/nodes/kind.ts'
import { hasCarrier } from '../../engine/nodes/record.ts'
import type { HypervisorDriver, VmAdapter, VmState } from './driver.ts'
import { endRun } from './leftovers.ts'
import type { HypervisorProperties, VmKindNode } from './properties.ts'

interface VmGuestsOptions {
  readonly drivers: Readonly<Record<HypervisorDriverName, HypervisorDriver>>
  /** The address of VNC servers. */
  readonly consoleHost: string
  readonly nodesOf: (uuid: string) => readonly VmKindNode[]
  readonly listener: KindListener
  /** Called when the VM of a node that has ended cannot be stopped. */
  readonly onNotEnded: (node: VmKindNode) => Promise<void>
}

/** Controls running VMs by their hypervisors. */
export class VmGuests implements GuestControl<HypervisorProperties> {
  readonly isOutsideKeeper = true
  readonly #options: VmGuestsOptions
  /** Nodes whose carrier could not be set; it is set when the hypervisor answers again. */
  readonly #carrierPending = new Set<string>()
  /** The watches of hypervisors, each with its nodes. */
  readonly #watches = new Map<HypervisorDriver, { readonly nodes: Set<string>; readonly end: () => void }>()

  constructor(options: VmGuestsOptions) {
    this.#options = options
  }

  async begin(node: VmKindNode): Promise<void> {
    const properties = node.record.properties
    const { adapter_type, custom_adapters, serial_port, remote_console, ram } = properties
    const driver = this.#driverOf(node)
    const custom = new Map(custom_adapters.map((it) => [it.adapter_number, driver.adapterType(it.adapter_type ?? '')]))
    const adapters = properties.wires.map((wire, index) => {
      const adapter = adapterOf(wire, index, hasCarrier(node.record, { adapter: index, port: 0 }))
      const type = custom.get(index)
      return type === undefined ? adapter : { ...adapter, type }
    })
    this.#watch(node)
    await driver.start(properties.vm_uuid, {
      ...(ram > 0 && { ram }),
      adapters,
      adapterType: driver.adapterType(adapter_type) ?? driver.adapterTypes[0] ?? '',
      useAnyAdapter: properties.use_any_adapter,
      serialPort: serial_port ?? 0,
      ...(remote_console !== null && { screen: { host: this.#options.consoleHost, port: remote_console } }),
      headless: properties.headless,
      node: { name: node.record.name, directory: node.directory },
    })
  }

  async adopt(node: VmKindNode): Promise<GuestState> {
    this.#watch(node)
    return this.state(node)
  }

  async endGuest(node: VmKindNode, { skipGracePeriod }: GuestProcess, how: StopReason): Promise<void> {
    const { vm_uuid, on_close } = node.record.properties
    const isAtOnce = how === 'remove' || (how === 'close' && on_close === 'shutdown_signal')
    await this.#driverOf(node).stop(vm_uuid, isAtOnce ? 'power_off' : on_close, skipGracePeriod)
  }

  release(node: VmKindNode): void {
    this.#carrierPending.delete(node.key)
    for (const [driver, { nodes, end }] of this.#watches) {
      if (!nodes.delete(node.key) || nodes.size > 0) continue
      end()
      this.#watches.delete(driver)
    }
  }

  /** Stops the VM of a node that has ended, because nothing carries its frames. */
  async onNodeEnded(node: VmKindNode): Promise<void> {
    try {
      await endRun(this.#driverOf(node), node.record.properties)
    } catch (error) {
      await this.#options.onNotEnded(node)
      this.#log(
        node,
        'error',
        `its VM may still be running, and will be stopped as soon as possible: ${(error as Error).message}`,
      )
    }
  }

  async state(node: VmKindNode): Promise<GuestState> {
    const { vm_uuid, wires } = node.record.properties
    const vm = await this.#driverOf(node).get(vm_uuid)
    if (this.#carrierPending.delete(node.key)) {
      for (const adapter of wires.keys())
        await this.setCarrier(node, { adapter, port: 0 }, hasCarrier(node.record, { adapter, port: 0 }))
    }
    return { status: vm === undefined ? 'stopped' : statusOf[vm.state], reason: null }
  }

  suspend = (node: VmKindNode): Promise<void> => this.#driverOf(node).suspend(node.record.properties.vm_uuid)

  async resume(node: VmKindNode): Promise<void> {
    const { status } = await this.state(node)
    if (status !== 'suspended') throw conflict('The VM is not suspended')
    await this.#driverOf(node).resume(node.record.properties.vm_uuid)
  }

  reset = (node: VmKindNode): Promise<void> => this.#driverOf(node).reset(node.record.properties.vm_uuid)

  async setCarrier(node: VmKindNode, { adapter }: PortRef, isUp: boolean): Promise<void> {
    try {
      const { vm_uuid, wires } = node.record.properties
      const wire = wires[adapter]
      // An adapter that was added after the start has no wire.
      if (wire !== undefined) await this.#driverOf(node).setCarrier(vm_uuid, adapterOf(wire, adapter, isUp))
    } catch (error) {
      this.#carrierPending.add(node.key)
      const cable = isUp ? 'connected' : 'disconnected'
      this.#log(node, 'warning', `the cable of adapter ${adapter} could not be ${cable}: ${(error as Error).message}`)
    }
  }

  withQuiescedGuest = <T>(_node: VmKindNode, run: () => Promise<T>): Promise<T> => run()

  async requireKeepable(): Promise<void> {
    throw conflict('its hypervisor has its disks and its memory')
  }

  #log({ key, record }: VmKindNode, level: 'error' | 'warning', message: string): void {
    this.#options.listener.happened(key, { type: `log.${level}`, message: `${record.name}: ${message}` })
  }

  #driverOf = ({ record }: VmKindNode): HypervisorDriver => this.#options.drivers[record.properties.driver]

  /** Watches the hypervisor while nodes run on it. */
  #watch(node: VmKindNode): void {
    const driver = this.#driverOf(node)
    const known = this.#watches.get(driver)
    if (known !== undefined) return void known.nodes.add(node.key)
    const { nodesOf, listener } = this.#options
    const end = driver.watch((uuid) => {
      for (const { key } of nodesOf(uuid)) listener.changed(key)
    })
    this.#watches.set(driver, { nodes: new Set([node.key]), end })
  }
}

const adapterOf = ({ guest_port, switch_port }: PortWire, index: number, carrier: boolean): VmAdapter => ({
  index,
  guestPort: guest_port,
  switchPort: switch_port,
  carrier,
})

const statusOf: Readonly<Record<VmState, GuestState['status']>> = {
  stopped: 'stopped',
  saved: 'stopped',
  started: 'started',
  suspended: 'suspended',
}
