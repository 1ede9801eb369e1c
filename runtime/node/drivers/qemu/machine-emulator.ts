import type { PortRef } from '../../../../src/host-agent.ts'
import { withTimeout } from '../../../../src/lib/async/timeout.ts'
import { badRequest, conflict } from '../../../../src/lib/errors/api-error.ts'
import { repeated } from '../../../../src/lib/repeated.ts'
import { withOwnAddresses } from '../../../../src/model/kinds/mac-addresses.ts'
import type {
  MachineEmulatorCreate,
  MachineEmulatorNode,
  MachineEmulatorUpdate,
  ResizeDisk,
} from '../../../../src/model/kinds/machine-emulator.ts'
import { diskSlots, machineEmulator } from '../../../../src/model/kinds/machine-emulator.ts'
import { ConfinedTool } from '../../engine/images/confined-tool.ts'
import type { Cleanup, ComputeActions, Launch, NodeActions, NodeKind, PortWire } from '../../engine/nodes/kind.ts'
import { withChanges } from '../../engine/nodes/record.ts'
import { fieldsOf } from '../../engine/nodes/view-fields.ts'
import { removeBox } from '../../os/sandbox/box.ts'
import { checkMemory } from '../../os/system/memory.ts'
import type { DriverHost } from '../node-driver.ts'
import { factsOf, kvmPlatforms, missingPlatform, resolveEmulator, usableEmulators } from './binaries.ts'
import { requireModel } from './command-line.ts'
import { resizeDisk } from './disks.ts'
import { MachineGuests } from './guests.ts'
import { requireForm } from './image-form.ts'
import { kvmState } from './kvm-guest.ts'
import { launchOf, macOf, optionsOf } from './launch.ts'
import { MachineImages } from './machine-images.ts'
import { MachineSums } from './machine-sums.ts'
import { memoryIn } from './memory.ts'
import { platformAsked } from './platforms.ts'
import { type BinaryFacts, versionText } from './probe.ts'
import { imageFields, type MachineKindNode, MachineProperties, plainFields } from './properties.ts'
import { savedStateTag } from './saved-state.ts'
import { defaultMachineTimeouts, type MachineTimeouts } from './timeouts.ts'

type MachineHost = DriverHost<MachineProperties, { readonly acceleration: 'auto' | 'kvm' | 'tcg' }>

/** The machine-emulator kind: machines that QEMU runs. */
export class MachineEmulatorKind implements NodeKind<MachineProperties, typeof machineEmulator> {
  readonly descriptor = machineEmulator
  readonly schema = MachineProperties
  readonly stopGraceMs: number
  readonly control: MachineGuests
  readonly #host: MachineHost
  readonly #images: MachineImages
  readonly #sums: MachineSums
  /** The machines of this service, also those under creation, which the host does not list yet. */
  readonly #created = new Map<string, MachineKindNode>()

  constructor(host: MachineHost) {
    this.#host = host
    const { images, keeper, listener } = host
    const timeouts: MachineTimeouts = { ...defaultMachineTimeouts, ...host.timeouts }
    this.stopGraceMs = timeouts.end
    this.#images = new MachineImages({ ...host, library: images.library })
    const md5Of = (file: string) => images.md5Of(file)
    this.#sums = new MachineSums({ images: this.#images, md5Of, listener, waitMs: timeouts.sums })
    this.control = new MachineGuests({
      ...host,
      timeouts,
      limit: async (key, cpu_percent) => void (await keeper.call('unit.limit', { key, cpu_percent })),
      requireOpened: (node, images) => this.#images.requireOpened(node, images),
    })
  }

  readonly cleanup: Cleanup<MachineProperties> = {
    dispose: ({ key }) => {
      this.#sums.forget(key)
      this.#created.delete(key)
    },
  }

  ports({ record }: MachineKindNode): readonly PortRef[] {
    return Array.from({ length: record.properties.adapters }, (_, adapter) => ({ adapter, port: 0 }))
  }

  async prepare(node: MachineKindNode, input: MachineEmulatorCreate): Promise<void> {
    if (!input.qemu_path && platformAsked(input.platform) === undefined) throw missingPlatform()
    this.#created.set(node.key, node)
    await this.#apply(node, input)
  }

  async update(node: MachineKindNode, changes: MachineEmulatorUpdate): Promise<void> {
    const { cpu_throttling, cdrom_image } = node.record.properties
    await this.#apply(node, changes)
    if (node.status === 'stopped') return
    const now = node.record.properties
    if (now.cdrom_image !== cdrom_image) {
      const image = (await this.#images.find(node, 'cdrom_image')) ?? null
      if (image !== null) await this.#images.showLate(image)
      await this.control.changeCdrom(node, image)
    }
    if (now.cpu_throttling !== cpu_throttling) await this.control.limit(node, now.cpu_throttling)
  }

  launch(node: MachineKindNode, wires: ReadonlyMap<string, PortWire>, signal: AbortSignal): Promise<Launch> {
    this.#sums.check(node)
    const { keeper } = this.#host
    // The keeper opens the sockets by the same native library as the fast path.
    const handsOver = async () => (await keeper.packetPath()) === 'fast'
    return launchOf(node, wires, { ...this.#host, ...this.#host.settings(), images: this.#images, handsOver, signal })
  }

  images(node: MachineKindNode): readonly string[] {
    const properties = node.record.properties
    return imageFields.map((field) => properties[field]).filter((name) => name !== '')
  }

  async onExited({ record }: MachineKindNode): Promise<void> {
    await removeBox(this.#host.runDirectory, record.node_id)
  }

  view(node: MachineKindNode): MachineEmulatorNode {
    const { record, projectId } = node
    const { sums: _, formats: __, ...settings } = node.record.properties
    return {
      ...fieldsOf(node),
      console_type: record.console_type,
      ...settings,
      mac_address: macOf(projectId, record.node_id, node.record.properties),
      acpi_shutdown: settings.on_close === 'shutdown_signal',
      ...this.#sums.of(node),
    }
  }

  async duplicate(...[source, destination, copy]: Parameters<NodeKind<MachineProperties>['duplicate']>): Promise<void> {
    const { record } = destination
    const properties = source.record.properties
    this.#requireUnshared(destination, properties)
    await copy((directory) => this.#images.forgetState(directory, properties.qemu_path))
    const { mac_address, custom_adapters } = destination.record.properties
    record.properties = { ...properties, mac_address, custom_adapters: withOwnAddresses(properties, custom_adapters) }
  }

  readonly actions: NodeActions<typeof machineEmulator, MachineProperties> = {
    resizeDisk: (at, input) => at.exclusively((node) => this.#resize(node, input)),
  }

  readonly computeActions: ComputeActions<typeof machineEmulator> = {
    binaries: async ({ archs }) => {
      const found = await usableEmulators(archs, await this.#host.sandbox.confinement())
      return found.map(({ path, version }) => ({ path, version: versionText(version) }))
    },
    capabilities: async () => ({ kvm: await this.#platformsOfKvm() }),
  }

  async labels(): Promise<readonly string[]> {
    const platforms = await withTimeout(this.#platformsOfKvm(), maxLabelMs, () => kvmPlatforms())
    return platforms.length > 0 ? ['kvm'] : []
  }

  /** The platforms that KVM accelerates here; none when a test boot failed, or the configuration forbids KVM. */
  async #platformsOfKvm(): Promise<string[]> {
    const platforms = this.#host.settings().acceleration === 'tcg' ? [] : [...kvmPlatforms()]
    if (platforms.length === 0) return []
    return ['hangs', 'fails'].includes(await kvmState()) ? [] : platforms
  }

  /** Makes a disk of a stopped machine larger; 409. */
  async #resize(node: MachineKindNode, { drive_name, extend }: ResizeDisk): Promise<void> {
    if (node.status !== 'stopped') throw conflict('The disk is in use: stop the node first')
    if (memoryIn(node.directory) !== undefined)
      throw conflict('The machine has saved memory to resume from: start it first')
    const { path } = await resolveEmulator(node.record.properties, this.#host.isLocal(), this.#host.sandbox)
    const tool = await this.#images.tool(node.directory, path)
    using _cell = tool instanceof ConfinedTool ? tool : null
    const disk = await this.#images.disk(node, drive_name, tool)
    if (disk.snapshots.includes(savedStateTag))
      throw conflict('The disk holds the saved state of the machine: start it and let it power off first')
    await resizeDisk(tool, disk, extend)
  }

  /** Applies all changes, or none when it throws. */
  async #apply(node: MachineKindNode, changes: MachineEmulatorUpdate): Promise<void> {
    const isLocal = this.#host.isLocal()
    const before = node.record.properties
    const next = withChanges(before, changes, plainFields)
    if (changes.mac_address != null) next.mac_address = changes.mac_address === '' ? null : changes.mac_address
    if (changes.acpi_shutdown != null && changes.on_close == null)
      next.on_close = changes.acpi_shutdown ? 'shutdown_signal' : 'power_off'
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
      facts = await resolveEmulator(wanted, isLocal, this.#host.sandbox)
      next.qemu_path = facts.path
      next.platform = facts.platform
    }
    await requireModels(changes, next, async () => facts ?? (await this.#knownFacts(next.qemu_path)))
    this.#requireUnshared(node, next)
    // `optionsOf` reads the properties of the node, so they are set before the check, and restored after a failure.
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
      return await factsOf(path, await this.#host.sandbox.confinement())
    } catch {
      return undefined
    }
  }

  /** 409 when another machine writes to the same image, both without overlays. */
  #requireUnshared({ key }: MachineKindNode, properties: MachineProperties): void {
    if (properties.linked_clone) return
    for (const other of new Set([...this.#host.nodes(), ...this.#created.values()])) {
      if (other.key === key) continue
      const theirs = other.record.properties
      if (theirs.linked_clone) continue
      const images = new Set(diskFields.map((field) => theirs[field]))
      const field = diskFields.find((it) => properties[it] !== '' && images.has(properties[it]))
      if (field !== undefined) throw conflict(`${field}: ${other.record.name} writes to this image; use linked_clone`)
    }
  }
}

/** 409 when the emulator has no adapter of a named model. An emulator that cannot be probed is reported at the start. */
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

/** Timeout of the test boot for the label, ms: a gateway waits for it when it connects. */
const maxLabelMs = 3000

const diskFields = diskSlots.map((slot) => `${slot}_disk_image` as const)

function requireOnce(numbers: readonly number[]): void {
  const twice = repeated(numbers)
  if (twice !== undefined) throw badRequest(`custom_adapters: adapter_number ${twice} occurs twice`)
}
