import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { conflict } from '../../../../src/errors/api-error.ts'
import type { PortRef } from '../../../../src/host-agent.ts'
import {
  type HypervisorCreate,
  type HypervisorDriverName,
  type HypervisorNode,
  type HypervisorUpdate,
  hypervisor,
  hypervisorDrivers,
  type VmSummary,
} from '../../../../src/kinds/hypervisor.ts'
import type { Exit } from '../../keeper-protocol/protocol.ts'
import { fieldsOf } from '../../nodes/shown-fields.ts'
import { nodeRecords } from '../../projects/project-record.ts'
import { checkMemory } from '../../system/memory.ts'
import type { KindHost } from '../host-kind.ts'
import type { Cleanup, ComputeActions, Launch, NodeKind, PortWire, PortWiring } from '../kind.ts'
import type { HypervisorDriver, Vm } from './driver.ts'
import { defaultDriver, type HypervisorSettings } from './drivers.ts'
import { VmGuests } from './guests.ts'
import { endLeft, Leftovers } from './leftovers.ts'
import { HypervisorProperties, type VmKindNode } from './properties.ts'
import { changedSettings, requireTypes } from './settings.ts'
import { VmPorts } from './vm-ports.ts'
import { VmUse } from './vm-use.ts'

/** From the start of a VM until its serial port is there, memory that is read again included, ms. */
const serialMs = 180_000

type HypervisorHost = KindHost<HypervisorProperties, HypervisorSettings>

/** The hypervisor kind: VMs that a hypervisor of the host has, and runs. */
export class HypervisorKind implements NodeKind<HypervisorProperties, typeof hypervisor> {
  readonly descriptor = hypervisor
  readonly schema = HypervisorProperties
  /** Its process is not ours: there is nothing to wait for. */
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
    // Where it is remembered what a hypervisor could not be told.
    const file = join(host.runDirectory, 'hypervisor-leftovers.json')
    this.#leftovers = new Leftovers({ drivers, file, log, useOf: (uuid) => this.#use.of(uuid) })
    this.control = new VmGuests({
      ...host,
      nodesOf: (uuid) => this.#use.nodesOf(uuid),
      left: (node) => this.#leave(node.record.properties, node.directory, null),
    })
  }

  readonly wiring: PortWiring<HypervisorProperties> = { requireFree: (node, port) => this.#requireFree(node, port) }

  readonly cleanup: Cleanup<HypervisorProperties> = {
    onIdle: (node) => this.#giveScreen(node),
    onRemoved: (node, how) => this.#remove(node, how),
    deferredCleanup: (node, { isDeleted }) =>
      this.#leave(node.record.properties, node.directory, isDeleted ? 'remove' : 'close'),
    onDiscarded: (record, directory) => this.#discard(record.properties, directory),
    reapOrphans: () => this.#recover(),
    dispose: (node) => this.#dispose(node),
  }

  ports({ record }: VmKindNode): readonly PortRef[] {
    return Array.from({ length: record.properties.adapters }, (_, adapter) => ({ adapter, port: 0 }))
  }

  /** The ports of one that does not run may be another's by now. */
  onOpened(node: VmKindNode): void {
    if (node.record.running) this.#ports.adopt(node)
  }

  adopt({ node_id: _, linked_clone: __, vmname, ...changes }: HypervisorCreate, node: VmKindNode): HypervisorUpdate {
    // A clone has a name of its own.
    return node.record.properties.linked_clone ? changes : { ...changes, vmname }
  }

  async prepare(node: VmKindNode, input: HypervisorCreate): Promise<void> {
    const driverName = await this.#defaultDriver()
    const driver = this.#host.drivers[driverName]
    const isClone = input.linked_clone === true
    const found = await driver.find(input.vmname)
    this.#use.made(node)
    if (!isClone) this.#use.requireUnused(node, found)
    const vm = isClone ? await this.#clone(node, driver, found, input.name) : found
    node.record.properties = { ...node.record.properties, ...namesOf(vm), driver: driverName, linked_clone: isClone }
    await this.#apply(node, input)
  }

  /** Written down before it is asked for: a clone that is made too late, or for a service that is killed, is removed. */
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
      await (driver.isUnclear(error) ? this.#leftovers.failed(clone_uuid) : this.#leftovers.done(clone_uuid))
      throw error
    }
  }

  async onCreated(node: VmKindNode): Promise<void> {
    await this.#leftovers.done(node.record.properties.vm_uuid)
  }

  async update(node: VmKindNode, changes: HypervisorUpdate, before: string): Promise<void> {
    const { linked_clone, vm_uuid, vmname } = node.record.properties
    const { name } = node.record
    const wanted = changes.vmname ?? undefined
    const isOther = wanted !== undefined && wanted !== vmname
    const newName = linked_clone ? (name !== before ? name : isOther ? wanted : undefined) : undefined
    if (isOther && node.status !== 'stopped') throw conflict('vmname: stop the node first')
    if (newName !== undefined && node.status !== 'stopped') throw conflict('name: the VM has it, stop the node first')
    const driver = this.driverOf(node)
    if (isOther && !linked_clone) {
      const vm = await driver.find(wanted)
      this.#use.requireUnused(node, vm)
      node.record.properties = { ...node.record.properties, ...namesOf(vm) }
    }
    await this.#apply(node, changes, !isOther || linked_clone)
    if (newName === undefined) return
    await this.#must(node)
    await driver.renameClone(vm_uuid, newName)
    node.record.properties = { ...node.record.properties, vmname: newName }
  }

  async launch(node: VmKindNode, wires: ReadonlyMap<string, PortWire>): Promise<Launch> {
    this.#use.launched(node)
    try {
      return await this.#launch(node, wires)
    } catch (error) {
      this.#use.over(node)
      this.#ports.releaseSerial(node)
      throw error
    }
  }

  async #launch(node: VmKindNode, wires: ReadonlyMap<string, PortWire>): Promise<Launch> {
    const driver = this.driverOf(node)
    await this.#leftovers.settle(node.record.properties.vm_uuid)
    let vm = await this.#must(node)
    if (vm.state === 'started' || vm.state === 'suspended') {
      // What could not be ended when its node was.
      await endLeft(driver, node.record.properties)
      vm = await this.#must(node)
    }
    if (vm.state === 'started' || vm.state === 'suspended') {
      throw conflict(`The VM ${vm.name} runs already, started by somebody else: power it off first`)
    }
    const warning = checkMemory(node.record.properties.ram || vm.ram)
    const path = driver.serialPath?.(vm.uuid)
    const serial_port = path === undefined ? await this.#ports.serial(node) : null
    const remote_console = await this.#ports.screen(node)
    node.record.properties = {
      ...node.record.properties,
      ...namesOf(vm),
      serial_port,
      remote_console,
      wires: [...wires.values()],
    }
    return {
      ...(warning !== undefined && { notices: [{ type: 'log.warning', message: `${node.record.name}: ${warning}` }] }),
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
    throw conflict('A VM of a hypervisor is not copied with its node: create one with linked_clone instead')
  }

  screenPort(node: VmKindNode): number | null {
    return node.record.properties.remote_console
  }

  /** 409 when the VM uses the adapter for something that is not ours to take. */
  async #requireFree(node: VmKindNode, { adapter }: PortRef): Promise<void> {
    const { use_any_adapter, vm_uuid, vmname } = node.record.properties
    if (use_any_adapter) return
    await this.#must(node)
    const used = await this.driverOf(node).usedAdapters(vm_uuid)
    if (used.includes(adapter)) {
      throw conflict(
        `The VM ${vmname} uses adapter ${adapter} for something else: detach it there, or set use_any_adapter`,
      )
    }
  }

  /** Its screen keeps its port, for its clients; its console has another one, which is the keeper's. */
  async onExited(node: VmKindNode): Promise<void> {
    await this.control.over(node)
    this.#use.over(node)
    this.#ports.releaseSerial(node)
    const { enable_remote_console, remote_console } = node.record.properties
    if (!enable_remote_console || remote_console === null) await this.#giveScreen(node)
  }

  async #giveScreen(node: VmKindNode): Promise<void> {
    // A start gives it one, or says why not.
    const remote_console = await this.#ports.screen(node).catch(() => null)
    node.record.properties = { ...node.record.properties, remote_console }
  }

  hint({ code, signal }: Exit): string | undefined {
    return code === null && signal === null ? 'nothing was to be had of its serial port' : undefined
  }

  async #discard(properties: HypervisorProperties, directory: string): Promise<void> {
    const { vm_uuid, linked_clone } = properties
    const driver = this.#host.drivers[properties.driver]
    try {
      if (this.#use.of(vm_uuid) !== 'runs') await endLeft(driver, properties)
      if (!linked_clone || vm_uuid === '') return
      await driver.removeClone(vm_uuid)
      await driver.forgetMissingDisks?.(directory)
    } catch (error) {
      await this.#leave(properties, directory, 'remove')
      throw error
    }
  }

  /** `isDeleted`: the node goes for good, and a clone with it; else its project is only closed. */
  async #remove(node: VmKindNode, { isDeleted }: { isDeleted: boolean }): Promise<void> {
    const { linked_clone, vm_uuid } = node.record.properties
    if (!linked_clone || vm_uuid === '') return
    const driver = this.driverOf(node)
    await (isDeleted ? driver.removeClone(vm_uuid) : driver.closeClone(vm_uuid))
    await driver.forgetMissingDisks?.(node.directory)
    if (isDeleted) await this.#leftovers.done(vm_uuid)
  }

  #dispose(node: VmKindNode): void {
    this.#ports.releaseSerial(node)
    this.#ports.releaseScreen(node)
    this.control.ended(node)
    this.#use.forget(node)
  }

  readonly computeActions: ComputeActions<typeof hypervisor> = { vms: () => this.#vms() }

  /** Those that new nodes are made for. */
  async #vms(): Promise<VmSummary[]> {
    const vms = await this.#host.drivers[await this.#defaultDriver()].list()
    return vms.map(({ name, ram }) => ({ vmname: name, ram })).sort((a, b) => (a.vmname < b.vmname ? -1 : 1))
  }

  /** The driver that new nodes use; 409 saying what to install when there is none. */
  #defaultDriver(): Promise<HypervisorDriverName> {
    return defaultDriver(this.#host.drivers, this.#host.settings())
  }

  driverOf(node: VmKindNode): HypervisorDriver {
    return this.#host.drivers[node.record.properties.driver]
  }

  /** After a service that was killed: what it had changed of VMs is put back, and what it had left is tidied up. */
  async #recover(): Promise<void> {
    await this.#leftovers.open()
    await Promise.all(hypervisorDrivers.map((name) => this.#host.drivers[name].recover?.()))
  }

  async onClosed(): Promise<void> {
    this.#leftovers.close()
    await Promise.all(hypervisorDrivers.map((name) => this.#host.drivers[name].close()))
  }

  /** The VM; a clone that the hypervisor was told to forget, or has elsewhere, is made known to it as it is. 409. */
  async #must(node: VmKindNode): Promise<Vm> {
    const { vm_uuid, vmname, linked_clone } = node.record.properties
    const driver = this.driverOf(node)
    if (linked_clone && node.status === 'stopped') return driver.openClone(vm_uuid, node.directory)
    const vm = await driver.get(vm_uuid)
    if (vm === undefined) throw conflict(`${driver.name} has no VM ${vmname} any more`)
    return vm
  }

  /** All of the changes, or (when it throws) none. */
  async #apply(node: VmKindNode, changes: HypervisorUpdate, isSameVm = true): Promise<void> {
    const before = node.record.properties
    const next = changedSettings(before, changes, node.status === 'stopped')
    const driver = this.driverOf(node)
    requireTypes(driver, next)
    if (!isSameVm || next.adapters !== before.adapters) {
      const most = await driver.maxAdapters((await this.#must(node)).uuid)
      if (next.adapters > most) throw conflict(`adapters: the VM can have ${most}, got ${next.adapters}`)
    }
    // While it runs it has the screen that it was started with, or none.
    if (node.status === 'stopped' && next.enable_remote_console && next.remote_console === null) {
      next.remote_console = await this.#ports.newScreen(node)
    } else if (node.status === 'stopped' && !next.enable_remote_console && next.remote_console !== null) {
      this.#ports.releaseScreen(node)
      next.remote_console = null
    }
    node.record.properties = next
  }

  /** Has what the hypervisor cannot be told now be done when it can be. */
  async #leave(properties: HypervisorProperties, directory: string, clone: 'close' | 'remove' | null): Promise<void> {
    const { driver, vm_uuid: uuid, serial_port, linked_clone } = properties
    if (uuid === '') return
    await this.#leftovers.add({ driver, uuid, serial_port, clone: linked_clone ? clone : null, directory })
  }
}

const namesOf = ({ name, uuid, ram }: Vm) => ({ vmname: name, vm_uuid: uuid, defined_ram: ram })
