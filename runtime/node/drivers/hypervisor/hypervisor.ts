import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { PortRef } from '../../../../src/host-agent.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { compareText } from '../../../../src/lib/text/compare-text.ts'
import {
  type HypervisorCreate,
  type HypervisorDriverName,
  type HypervisorNode,
  type HypervisorUpdate,
  hypervisor,
  hypervisorDrivers,
} from '../../../../src/model/kinds/hypervisor.ts'
import type { Cleanup, ComputeActions, Launch, NodeKind, PortWire, PortWiring } from '../../engine/nodes/kind.ts'
import { fieldsOf } from '../../engine/nodes/view-fields.ts'
import { warningsOf } from '../../engine/nodes/warnings.ts'
import { nodeRecords } from '../../engine/projects/project-record.ts'
import type { Exit } from '../../keeper/protocol/protocol.ts'
import { checkMemory } from '../../os/system/memory.ts'
import type { DriverHost } from '../node-driver.ts'
import type { HypervisorDriver, Vm } from './driver.ts'
import { defaultDriver, type HypervisorSettings } from './drivers.ts'
import { VmGuests } from './guests.ts'
import { endRun, Leftovers } from './leftovers.ts'
import { HypervisorProperties, type VmKindNode } from './properties.ts'
import { changedSettings, requireTypes } from './settings.ts'
import { VmPorts } from './vm-ports.ts'
import { VmUse } from './vm-use.ts'

/** Timeout from the start of a VM until its serial port exists, with the read of saved memory, ms. */
const serialMs = 180_000

type HypervisorHost = DriverHost<HypervisorProperties, HypervisorSettings>

/** The hypervisor kind: VMs of libvirt or VirtualBox. */
export class HypervisorKind implements NodeKind<HypervisorProperties, typeof hypervisor> {
  readonly descriptor = hypervisor
  readonly schema = HypervisorProperties
  /** Short, because the keeper runs no process for a VM. */
  readonly stopGraceMs = 1000
  readonly control: VmGuests
  readonly #host: HypervisorHost
  readonly #ports: VmPorts
  readonly #use: VmUse
  readonly #leftovers: Leftovers

  constructor(host: HypervisorHost) {
    this.#host = host
    this.#ports = new VmPorts(host.ports)
    this.#use = new VmUse(() => host.nodes())
    const { drivers, log } = host
    // The file of cleanup that a hypervisor could not do yet.
    const file = join(host.runDirectory, 'hypervisor-leftovers.json')
    this.#leftovers = new Leftovers({ drivers, file, log, useOf: (uuid) => this.#use.of(uuid) })
    this.control = new VmGuests({
      ...host,
      nodesOf: (uuid) => this.#use.nodesOf(uuid),
      onNotEnded: (node) => this.#leave(node.record.properties, node.directory, null),
    })
  }

  readonly wiring: PortWiring<HypervisorProperties> = { requireFree: (node, port) => this.#requireFree(node, port) }

  readonly cleanup: Cleanup<HypervisorProperties> = {
    onIdle: (node) => this.#giveScreen(node),
    onRemoved: (node, how) => this.#remove(node, how),
    deferredCleanup: (node, { isDeleted }) =>
      this.#leave(node.record.properties, node.directory, isDeleted ? 'remove' : 'close'),
    onDiscarded: (record, directory) => this.#discard(record.properties, directory),
    reapOrphans: async () => {
      await this.#leftovers.open()
      await Promise.all(hypervisorDrivers.map((name) => this.#host.drivers[name].recover?.()))
    },
    dispose: (node) => {
      this.#ports.releaseSerial(node)
      this.#ports.releaseScreen(node)
      this.control.release(node)
      this.#use.forget(node)
    },
  }

  ports({ record }: VmKindNode): readonly PortRef[] {
    return Array.from({ length: record.properties.adapters }, (_, adapter) => ({ adapter, port: 0 }))
  }

  /** Only of a running VM: other nodes may have got the ports of a stopped one. */
  onOpened(node: VmKindNode): void {
    if (node.record.running) this.#ports.adopt(node)
  }

  adopt({ node_id: _, linked_clone: __, vmname, ...changes }: HypervisorCreate, node: VmKindNode): HypervisorUpdate {
    // The name of a clone is that of its node.
    return node.record.properties.linked_clone ? changes : { ...changes, vmname }
  }

  async prepare(node: VmKindNode, input: HypervisorCreate): Promise<void> {
    const driverName = await this.#defaultDriver()
    const driver = this.#host.drivers[driverName]
    const isClone = input.linked_clone === true
    const found = await driver.find(input.vmname)
    this.#use.creating(node)
    if (!isClone) this.#use.requireUnused(node, found)
    const vm = isClone ? await this.#clone(node, driver, found, input.name) : found
    node.record.properties = { ...node.record.properties, ...namesOf(vm), driver: driverName, linked_clone: isClone }
    await this.#apply(node, input)
  }

  /** Creates a clone. It is recorded first, so that a clone without a node is removed after a timeout or a crash. */
  async #clone(
    { directory, projectPath, record }: VmKindNode,
    driver: HypervisorDriver,
    source: Vm,
    name: string,
  ): Promise<Vm> {
    const clone_uuid = randomUUID()
    const recordFile = join(nodeRecords(projectPath), `${hypervisor.name}-${record.node_id}.json`)
    await this.#leftovers.begin({ driver: driver.name, uuid: clone_uuid, directory }, recordFile)
    try {
      return await driver.clone({ uuid: source.uuid, name, directory, clone_uuid })
    } catch (error) {
      await (driver.mayHaveSucceeded(error) ? this.#leftovers.failed(clone_uuid) : this.#leftovers.done(clone_uuid))
      throw error
    }
  }

  async onCreated(node: VmKindNode): Promise<void> {
    await this.#leftovers.done(node.record.properties.vm_uuid)
  }

  async update(node: VmKindNode, changes: HypervisorUpdate, before: string): Promise<void> {
    const { linked_clone, vm_uuid, vmname } = node.record.properties
    const { name } = node.record
    const newVm = changes.vmname ?? undefined
    const isOther = newVm !== undefined && newVm !== vmname
    const newName = linked_clone ? (name !== before ? name : isOther ? newVm : undefined) : undefined
    if (isOther && node.status !== 'stopped') throw conflict('vmname: stop the node first')
    if (newName !== undefined && node.status !== 'stopped')
      throw conflict('name: it is also the name of the VM; stop the node first')
    const driver = this.#driverOf(node)
    if (isOther && !linked_clone) {
      const vm = await driver.find(newVm)
      this.#use.requireUnused(node, vm)
      node.record.properties = { ...node.record.properties, ...namesOf(vm) }
    }
    await this.#apply(node, changes, !isOther || linked_clone)
    if (newName === undefined) return
    await this.#vmOf(node)
    await driver.renameClone(vm_uuid, newName)
    node.record.properties = { ...node.record.properties, vmname: newName }
  }

  async launch(node: VmKindNode, wires: ReadonlyMap<string, PortWire>): Promise<Launch> {
    this.#use.starting(node)
    try {
      return await this.#launch(node, wires)
    } catch (error) {
      this.#use.ended(node)
      this.#ports.releaseSerial(node)
      throw error
    }
  }

  async #launch(node: VmKindNode, wires: ReadonlyMap<string, PortWire>): Promise<Launch> {
    const driver = this.#driverOf(node)
    await this.#leftovers.settle(node.record.properties.vm_uuid)
    let vm = await this.#vmOf(node)
    if (vm.state === 'started' || vm.state === 'suspended') {
      // An earlier run that could not be stopped.
      await endRun(driver, node.record.properties)
      vm = await this.#vmOf(node)
    }
    if (vm.state === 'started' || vm.state === 'suspended')
      throw conflict(`The VM ${vm.name} is already running, started outside Patchbay: power it off first`)
    const warning = checkMemory(node.record.properties.ram || vm.ram)
    const path = driver.serialPath?.(vm.uuid)
    const serial_port = path === undefined ? await this.#ports.serial(node) : null
    const remote_console = await this.#ports.screen(node)
    const run = { ...namesOf(vm), serial_port, remote_console, wires: [...wires.values()] }
    node.record.properties = { ...node.record.properties, ...run }
    return {
      notices: warningsOf(node, [warning]),
      command_line: `${driver.name} ${vm.name} (${vm.uuid})`,
      run: { type: 'attached', ...(path === undefined ? { port: serial_port ?? 0 } : { path }), ready_ms: serialMs },
    }
  }

  view(node: VmKindNode): HypervisorNode {
    const { vm_uuid: _, defined_ram, serial_port: __, wires: ___, ...settings } = node.record.properties
    return {
      ...fieldsOf(node),
      ...settings,
      node_directory: settings.linked_clone ? node.directory : null,
      console_type: node.record.console_type === 'none' ? 'none' : 'telnet',
      ram: settings.ram || defined_ram,
      acpi_shutdown: settings.on_close === 'shutdown_signal',
    }
  }

  duplicate(): Promise<void> {
    throw conflict('A hypervisor VM cannot be copied with its node: create a node with linked_clone instead')
  }

  screenPort(node: VmKindNode): number | null {
    return node.record.properties.remote_console
  }

  /** 409 when the adapter is in other use. */
  async #requireFree(node: VmKindNode, { adapter }: PortRef): Promise<void> {
    const { use_any_adapter, vm_uuid, vmname } = node.record.properties
    if (use_any_adapter) return
    await this.#vmOf(node)
    const used = await this.#driverOf(node).usedAdapters(vm_uuid)
    if (used.includes(adapter)) {
      throw conflict(
        `The VM ${vmname} uses adapter ${adapter} itself: detach it in the hypervisor, or set use_any_adapter`,
      )
    }
  }

  /** The screen keeps its port, for its clients. */
  async onExited(node: VmKindNode): Promise<void> {
    await this.control.onNodeEnded(node)
    this.#use.ended(node)
    this.#ports.releaseSerial(node)
    const { enable_remote_console, remote_console } = node.record.properties
    if (!enable_remote_console || remote_console === null) await this.#giveScreen(node)
  }

  async #giveScreen(node: VmKindNode): Promise<void> {
    // If no port is free, the next start tries again and reports the failure.
    const remote_console = await this.#ports.screen(node).catch(() => null)
    node.record.properties = { ...node.record.properties, remote_console }
  }

  hint({ code, signal }: Exit): string | undefined {
    return code === null && signal === null ? 'its serial port could not be read' : undefined
  }

  async #discard(properties: HypervisorProperties, directory: string): Promise<void> {
    const { vm_uuid, linked_clone } = properties
    const driver = this.#host.drivers[properties.driver]
    try {
      if (this.#use.of(vm_uuid) !== 'runs') await endRun(driver, properties)
      if (!linked_clone || vm_uuid === '') return
      await driver.removeClone(vm_uuid)
      await driver.forgetMissingDisks?.(directory)
    } catch (error) {
      await this.#leave(properties, directory, 'remove')
      throw error
    }
  }

  /** Deletes the clone of a deleted node, or unregisters that of a closed one. */
  async #remove(node: VmKindNode, { isDeleted }: { isDeleted: boolean }): Promise<void> {
    const { linked_clone, vm_uuid } = node.record.properties
    if (!linked_clone || vm_uuid === '') return
    const driver = this.#driverOf(node)
    await (isDeleted ? driver.removeClone(vm_uuid) : driver.closeClone(vm_uuid))
    await driver.forgetMissingDisks?.(node.directory)
    if (isDeleted) await this.#leftovers.done(vm_uuid)
  }

  readonly computeActions: ComputeActions<typeof hypervisor> = {
    vms: async () => {
      const vms = await this.#host.drivers[await this.#defaultDriver()].list()
      return vms.map(({ name, ram }) => ({ vmname: name, ram })).sort((a, b) => compareText(a.vmname, b.vmname))
    },
  }

  #defaultDriver = (): Promise<HypervisorDriverName> => defaultDriver(this.#host.drivers, this.#host.settings())

  #driverOf = ({ record }: VmKindNode): HypervisorDriver => this.#host.drivers[record.properties.driver]

  async onClosed(): Promise<void> {
    this.#leftovers.close()
    await Promise.all(hypervisorDrivers.map((name) => this.#host.drivers[name].close()))
  }

  /** The VM of a node; a clone is registered if it is not. 409 when the VM is gone. */
  async #vmOf(node: VmKindNode): Promise<Vm> {
    const { vm_uuid, vmname, linked_clone } = node.record.properties
    const driver = this.#driverOf(node)
    if (linked_clone && node.status === 'stopped') return driver.openClone(vm_uuid, node.directory)
    const vm = await driver.get(vm_uuid)
    if (vm === undefined) throw conflict(`${driver.name} no longer has the VM ${vmname}`)
    return vm
  }

  /** Applies all changes, or none when it throws. */
  async #apply(node: VmKindNode, changes: HypervisorUpdate, isSameVm = true): Promise<void> {
    const before = node.record.properties
    const next = changedSettings(before, changes, node.status === 'stopped')
    const driver = this.#driverOf(node)
    requireTypes(driver, next)
    if (!isSameVm || next.adapters !== before.adapters) {
      const limit = await driver.maxAdapters((await this.#vmOf(node)).uuid)
      if (next.adapters > limit) throw conflict(`adapters: the VM can have ${limit}, got ${next.adapters}`)
    }
    // A running VM keeps the screen of its start.
    if (node.status === 'stopped' && next.enable_remote_console && next.remote_console === null)
      next.remote_console = await this.#ports.newScreen(node)
    else if (node.status === 'stopped' && !next.enable_remote_console && next.remote_console !== null) {
      this.#ports.releaseScreen(node)
      next.remote_console = null
    }
    node.record.properties = next
  }

  /** Defers cleanup until the hypervisor answers. */
  async #leave(properties: HypervisorProperties, directory: string, clone: 'close' | 'remove' | null): Promise<void> {
    const { driver, vm_uuid: uuid, serial_port, linked_clone } = properties
    if (uuid === '') return
    await this.#leftovers.add({ driver, uuid, serial_port, clone: linked_clone ? clone : null, directory })
  }
}

const namesOf = ({ name, uuid, ram }: Vm) => ({ vmname: name, vm_uuid: uuid, defined_ram: ram })
