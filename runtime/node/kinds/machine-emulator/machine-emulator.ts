import { badRequest, conflict } from '../../../../src/errors/api-error.ts'
import type { PortRef } from '../../../../src/host-agent.ts'
import type {
  EmulatorFilter,
  MachineEmulatorCreate,
  MachineEmulatorNode,
  MachineEmulatorUpdate,
  ResizeDisk,
} from '../../../../src/kinds/machine-emulator.ts'
import { diskSlots } from '../../../../src/kinds/machine-emulator.ts'
import type { FoundProgram } from '../../../../src/schema/program.ts'
import type { NodeRecord } from '../../nodes/record.ts'
import type { Pool } from '../../ports/allocator.ts'
import { removeBox } from '../../sandbox/box.ts'
import type { ComputeActions, KindNode, Launch, NodeActions, NodeKind, Wire } from '../kind.ts'
import { checkMemory } from '../memory.ts'
import { fieldsOf } from '../node-view.ts'
import { withOwnAddresses } from './adapters.ts'
import { factsOf, kvmPlatforms, resolveEmulator, usableEmulators } from './binaries.ts'
import { requireModel } from './command-line.ts'
import { resizeDisk } from './disks.ts'
import { MachineGuests, type MachineGuestsOptions } from './guests.ts'
import { requireForm } from './image-form.ts'
import { kvmVerdict } from './kvm-guest.ts'
import { type LaunchOptions, launchOf, macOf, optionsOf } from './launch.ts'
import { MachineImages, type MachineImagesOptions } from './machine-images.ts'
import { MachineSums } from './machine-sums.ts'
import { platformAsked } from './platforms.ts'
import { type BinaryFacts, versionText } from './probe.ts'
import { imageFields, type MachineProperties, parseOrDefault, plainFields, propertiesOf } from './properties.ts'
import { savedStateTag } from './saved-state.ts'

export interface MachineEmulatorOptions
  extends Omit<LaunchOptions, 'images'>,
    Omit<MachineGuestsOptions, 'requireOpened'>,
    MachineImagesOptions {
  /** MD5 of a file; undefined when it cannot be read. */
  readonly md5Of: (file: string) => Promise<string | undefined>
  /** All nodes of the host. */
  readonly nodes: () => Iterable<KindNode>
}

/** The machine-emulator kind: machines that QEMU runs. */
export class MachineEmulatorKind implements NodeKind {
  readonly kind = 'machine-emulator'
  readonly stopGraceMs: number
  readonly guests: MachineGuests
  readonly #options: MachineEmulatorOptions
  readonly #images: MachineImages
  readonly #sums: MachineSums
  /** Those made by this service: one that is still being made is not among the nodes of the host. */
  readonly #made = new Map<string, KindNode>()

  constructor(options: MachineEmulatorOptions) {
    this.#options = options
    this.stopGraceMs = options.timeouts.end
    this.#images = new MachineImages(options)
    this.#sums = new MachineSums({ ...options, images: this.#images, waitMs: options.timeouts.sums })
    this.guests = new MachineGuests({
      ...options,
      requireOpened: (node, images) => this.#images.requireOpened(node, images),
    })
  }

  ports(record: NodeRecord): readonly PortRef[] {
    return Array.from({ length: propertiesOf({ record }).adapters }, (_, adapter) => ({ adapter, port: 0 }))
  }

  consolePool(type: NodeRecord['console_type']): Pool | undefined {
    if (type === 'none') return undefined
    return type === 'vnc' ? 'vnc' : 'console'
  }

  properties(): Record<string, unknown> {
    return parseOrDefault({})
  }

  restored(properties: Record<string, unknown>): Record<string, unknown> {
    return parseOrDefault(properties)
  }

  claimed({ node_id: _, ...changes }: MachineEmulatorCreate): MachineEmulatorUpdate {
    return changes
  }

  async prepare(node: KindNode, input: MachineEmulatorCreate): Promise<void> {
    if (!input.qemu_path && platformAsked(input.platform) === undefined) {
      throw conflict('qemu_path: missing, expected the emulator to use, or instead platform, such as "x86_64"')
    }
    this.#made.set(node.key, node)
    await this.#apply(node, input)
  }

  async update(node: KindNode, changes: MachineEmulatorUpdate): Promise<void> {
    const { cpu_throttling, cdrom_image } = propertiesOf(node)
    await this.#apply(node, changes)
    if (node.status === 'stopped') return
    const now = propertiesOf(node)
    if (now.cdrom_image !== cdrom_image) {
      const image = (await this.#images.find(node, 'cdrom_image')) ?? null
      if (image !== null) await this.#images.showLate(image)
      await this.guests.changeCdrom(node, image)
    }
    if (now.cpu_throttling !== cpu_throttling) await this.guests.limit(node, now.cpu_throttling)
  }

  launch(node: KindNode, wires: ReadonlyMap<string, Wire>): Promise<Launch> {
    this.#sums.look(node)
    return launchOf(node, wires, { ...this.#options, images: this.#images })
  }

  images(node: KindNode): readonly string[] {
    const properties = propertiesOf(node)
    return imageFields.map((field) => properties[field]).filter((name) => name !== '')
  }

  async over({ record }: KindNode): Promise<void> {
    await removeBox(this.#options.runDirectory, record.node_id)
  }

  view(node: KindNode): MachineEmulatorNode {
    const { record, projectId } = node
    const { sums: _, formats: __, ...settings } = propertiesOf(node)
    return {
      ...fieldsOf(node),
      console_type: record.console_type,
      ...settings,
      mac_address: macOf(projectId, record.node_id, propertiesOf(node)),
      acpi_shutdown: settings.on_close === 'shutdown_signal',
      ...this.#sums.of(node),
    }
  }

  async duplicate(...[source, destination, copy]: Parameters<NodeKind['duplicate']>): Promise<void> {
    const { record } = destination
    const properties = propertiesOf(source)
    this.#requireUnshared(destination, properties)
    await copy((directory) => this.#images.forgetState(directory, properties.qemu_path))
    const { mac_address, custom_adapters } = propertiesOf(destination)
    record.properties = {
      ...properties,
      mac_address,
      custom_adapters: withOwnAddresses(properties, custom_adapters),
    }
  }

  forget({ key }: KindNode): void {
    this.#sums.forget(key)
    this.#made.delete(key)
  }

  readonly actions: NodeActions = {
    resizeDisk: (at, input: ResizeDisk) => at.exclusively((node) => this.#resize(node, input)),
  }

  readonly computeActions: ComputeActions = {
    binaries: async ({ archs }: EmulatorFilter): Promise<FoundProgram[]> => {
      const found = await usableEmulators(archs, await this.#options.sandbox.confinement())
      return found.map(({ path, version }) => ({ path, version: versionText(version) }))
    },
    capabilities: async () => ({ kvm: await platformsOfKvm() }),
  }

  /** Makes a disk of a stopped machine larger; 409. */
  async #resize(node: KindNode, { drive_name, extend }: ResizeDisk): Promise<void> {
    if (node.status !== 'stopped') throw conflict('The disk is in use: stop the node first')
    const { path } = await resolveEmulator(propertiesOf(node), this.#options.isLocal(), this.#options.sandbox)
    const tool = await this.#images.tool(node.directory, path)
    const disk = await this.#images.disk(node, drive_name, tool)
    if (disk.snapshots.includes(savedStateTag)) {
      throw conflict('The disk holds the saved state of the machine: start it and let it power off first')
    }
    await resizeDisk(tool, disk, extend)
  }

  /** All of the changes, or (when it throws) none. */
  async #apply(node: KindNode, changes: MachineEmulatorUpdate): Promise<void> {
    const isLocal = this.#options.isLocal()
    const before = propertiesOf(node)
    const next: MachineProperties = { ...before }
    for (const field of plainFields) {
      const value = changes[field]
      if (value != null) Object.assign(next, { [field]: value })
    }
    if (changes.mac_address != null) next.mac_address = changes.mac_address === '' ? null : changes.mac_address
    if (changes.acpi_shutdown != null && changes.on_close == null) {
      next.on_close = changes.acpi_shutdown ? 'shutdown_signal' : 'power_off'
    }
    requireOnce(next.custom_adapters.map(({ adapter_number }) => adapter_number))
    for (const field of imageFields) {
      if (!changes[field]) continue
      const { name, file } = await this.#images.named(node, field, next[field])
      await requireForm(field, name, file)
      next[field] = name
    }
    if (changes.ram != null) checkMemory(changes.ram)
    const { qemu_path, platform } = changes
    let facts: BinaryFacts | undefined
    if (qemu_path || platformAsked(platform) !== undefined) {
      const wanted = { qemu_path: qemu_path ?? null, platform: platform ?? null }
      facts = await resolveEmulator(wanted, isLocal, this.#options.sandbox)
      next.qemu_path = facts.path
      next.platform = facts.platform
    }
    await requireModels(changes, next, async () => facts ?? (await this.#knownFacts(next.qemu_path)))
    this.#requireUnshared(node, next)
    // Its properties are read through the node, so they are put back when they turn out to be wrong.
    node.record.properties = next
    try {
      optionsOf(node, isLocal)
    } catch (error) {
      node.record.properties = before
      throw error
    }
    await this.#sums.update(node)
  }

  async #knownFacts(path: string): Promise<BinaryFacts | undefined> {
    try {
      return await factsOf(path, await this.#options.sandbox.confinement())
    } catch {
      return undefined
    }
  }

  /** 409 when an image that the machine would write to itself is written to by another one. */
  #requireUnshared({ key }: KindNode, properties: MachineProperties): void {
    if (properties.linked_clone) return
    for (const other of new Set([...this.#options.nodes(), ...this.#made.values()])) {
      if (other.key === key || other.record.kind !== this.kind) continue
      const theirs = propertiesOf(other)
      if (theirs.linked_clone) continue
      const images = new Set(diskFields.map((field) => theirs[field]))
      const field = diskFields.find((it) => properties[it] !== '' && images.has(properties[it]))
      if (field !== undefined) {
        throw conflict(`${field}: ${other.record.name} writes to this image itself; use linked_clone`)
      }
    }
  }
}

/** 409 when the emulator has no adapter of a model that is named. What it has was asked once; without it the start says why. */
async function requireModels(
  changes: MachineEmulatorUpdate,
  next: MachineProperties,
  find: () => Promise<BinaryFacts | undefined>,
): Promise<void> {
  const custom = (changes.custom_adapters ?? []).filter(({ adapter_number }) => adapter_number < next.adapters)
  const models = [changes.adapter_type, ...custom.map(({ adapter_type }) => adapter_type)].filter((it) => it != null)
  if (models.length === 0 || next.adapters === 0) return
  const facts = await find()
  if (facts !== undefined) for (const model of models) requireModel(facts, model)
}

/** The platforms whose guests KVM runs here; none where it was seen that it does not. */
async function platformsOfKvm(): Promise<string[]> {
  const platforms = [...kvmPlatforms()]
  if (platforms.length === 0) return []
  return ['hangs', 'fails'].includes(await kvmVerdict()) ? [] : platforms
}

const diskFields = diskSlots.map((slot) => `${slot}_disk_image` as const)

function requireOnce(numbers: readonly number[]): void {
  const twice = numbers.find((number, index) => numbers.indexOf(number) !== index)
  if (twice !== undefined) throw badRequest(`custom_adapters: adapter_number ${twice} is there twice`)
}
