import { conflict } from '../../../../src/errors/api-error.ts'
import type { PortRef } from '../../../../src/host-agent.ts'
import type { HypervisorDriverName } from '../../../../src/kinds/hypervisor.ts'
import { hasCarrier } from '../../nodes/record.ts'
import type { GuestControl, GuestProcess, GuestState, KindListener, PortWire, StopReason } from '../kind.ts'
import type { HypervisorDriver, VmAdapter, VmState } from './driver.ts'
import { endLeft } from './leftovers.ts'
import type { HypervisorProperties, VmKindNode } from './properties.ts'

export interface VmGuestsOptions {
  readonly drivers: Readonly<Record<HypervisorDriverName, HypervisorDriver>>
  /** Where screens can be seen. */
  readonly consoleHost: string
  readonly nodesOf: (uuid: string) => readonly VmKindNode[]
  readonly listener: KindListener
  /** The VM of the node could not be ended, though it does not run any more. */
  readonly left: (node: VmKindNode) => Promise<void>
}

/** Running VMs, held by their hypervisors. */
export class VmGuests implements GuestControl<HypervisorProperties> {
  readonly isForeign = true
  readonly #options: VmGuestsOptions
  /** Nodes whose VM could not be told of a cable; it is when its hypervisor answers again. */
  readonly #unshown = new Set<string>()
  /** Hypervisors that are listened to, and the nodes for which they are. */
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

  async end(node: VmKindNode, { expedited }: GuestProcess, how: StopReason): Promise<void> {
    const { vm_uuid, on_close } = node.record.properties
    const isAtOnce = how === 'remove' || (how === 'close' && on_close === 'shutdown_signal')
    await this.#driverOf(node).stop(vm_uuid, isAtOnce ? 'power_off' : on_close, expedited)
  }

  ended(node: VmKindNode): void {
    this.#unshown.delete(node.key)
    for (const [driver, { nodes, end }] of this.#watches) {
      if (!nodes.delete(node.key) || nodes.size > 0) continue
      end()
      this.#watches.delete(driver)
    }
  }

  /** A VM whose node does not run any more does not, either: nothing would carry its frames. */
  async over(node: VmKindNode): Promise<void> {
    try {
      await endLeft(this.#driverOf(node), node.record.properties)
    } catch (error) {
      await this.#options.left(node)
      const why = (error as Error).message
      const message = `${node.record.name}: its VM may still run, and is ended when it can be: ${why}`
      this.#options.listener.happened(node.key, { type: 'log.error', message })
    }
  }

  async state(node: VmKindNode): Promise<GuestState> {
    const { vm_uuid, wires } = node.record.properties
    const vm = await this.#driverOf(node).get(vm_uuid)
    if (this.#unshown.delete(node.key)) {
      for (const adapter of wires.keys()) {
        await this.setCarrier(node, { adapter, port: 0 }, hasCarrier(node.record, { adapter, port: 0 }))
      }
    }
    return { status: vm === undefined ? 'stopped' : statusOf[vm.state], reason: null }
  }

  suspend(node: VmKindNode): Promise<void> {
    return this.#driverOf(node).suspend(node.record.properties.vm_uuid)
  }

  async resume(node: VmKindNode): Promise<void> {
    const { status } = await this.state(node)
    if (status !== 'suspended') throw conflict('The VM is not suspended')
    await this.#driverOf(node).resume(node.record.properties.vm_uuid)
  }

  reset(node: VmKindNode): Promise<void> {
    return this.#driverOf(node).reset(node.record.properties.vm_uuid)
  }

  async setCarrier(node: VmKindNode, { adapter }: PortRef, isUp: boolean): Promise<void> {
    try {
      const { vm_uuid, wires } = node.record.properties
      const wire = wires[adapter]
      // One that the node got while it runs is there after the next start.
      if (wire !== undefined) await this.#driverOf(node).setCarrier(vm_uuid, adapterOf(wire, adapter, isUp))
    } catch (error) {
      this.#unshown.add(node.key)
      const what = `adapter ${adapter} could not be shown ${isUp ? 'a' : 'no'} cable`
      const message = `${node.record.name}: ${what}: ${(error as Error).message}`
      this.#options.listener.happened(node.key, { type: 'log.warning', message })
    }
  }

  whileStill<T>(_node: VmKindNode, run: () => Promise<T>): Promise<T> {
    return run()
  }

  #driverOf(node: VmKindNode): HypervisorDriver {
    return this.#options.drivers[node.record.properties.driver]
  }

  /** Has the hypervisor tell of what becomes of its VMs, as long as one of ours runs there. */
  #watch(node: VmKindNode): void {
    const driver = this.#driverOf(node)
    const known = this.#watches.get(driver)
    if (known !== undefined) {
      known.nodes.add(node.key)
      return
    }
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
