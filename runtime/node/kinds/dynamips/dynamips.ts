import { chmod, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { ignore } from '../../../../src/async/ignore.ts'
import { KeyedMutex } from '../../../../src/async/keyed-mutex.ts'
import type { PortRef } from '../../../../src/host-agent.ts'
import {
  type DynamipsCreate,
  type DynamipsNode,
  type DynamipsUpdate,
  defaultRam,
  dynamips,
} from '../../../../src/kinds/dynamips.ts'
import type { ProcessSpec } from '../../keeper-protocol/protocol.ts'
import { withChanges } from '../../nodes/record.ts'
import { fieldsOf } from '../../nodes/shown-fields.ts'
import { warningsOf } from '../../nodes/warnings.ts'
import { give, letRead } from '../../sandbox/box.ts'
import type { Confinement } from '../../sandbox/sandbox.ts'
import { withDiskErrors } from '../../storage/disk.ts'
import { checkMemory } from '../../system/memory.ts'
import type { KindHost } from '../host-kind.ts'
import type { Launch, NodeActions, NodeKind } from '../kind.ts'
import { errorsName, logName, prepareFiles, removeTemporary } from './files.ts'
import { DynamipsGuests } from './guests.ts'
import { requireIosImage } from './image.ts'
import { Measurements } from './measurements.ts'
import { requireDynamips, unprivileged } from './program.ts'
import { type DynamipsKindNode, DynamipsProperties } from './properties.ts'
import { controlAddress } from './ready.ts'
import { type DynamipsTimeouts, defaultDynamipsTimeouts } from './timeouts.ts'

type DynamipsHost = KindHost<DynamipsProperties, { readonly path: string }>

const plainFields = ['platform', 'ram', 'usage'] as const

/** The dynamips kind: routers without ports. Each has its own dynamips process, so that its idle PC can be measured. */
export class DynamipsKind implements NodeKind<DynamipsProperties, typeof dynamips> {
  readonly descriptor = dynamips
  readonly schema = DynamipsProperties
  readonly stopGraceMs: number
  readonly control: DynamipsGuests
  readonly #measurements: Measurements
  readonly #host: DynamipsHost
  readonly #serial = new KeyedMutex()

  constructor(host: DynamipsHost) {
    this.#host = host
    const timeouts: DynamipsTimeouts = { ...defaultDynamipsTimeouts, ...host.timeouts }
    this.stopGraceMs = timeouts.end
    this.control = new DynamipsGuests(timeouts, host.listener, (node) => host.ports.releaseAll(controlOf(node)))
    this.#measurements = new Measurements(this.control, timeouts)
  }

  readonly actions: NodeActions<typeof dynamips, DynamipsProperties> = {
    idlePcProposals: (at, _, signal) => this.#measurements.idlePcProposals(at, signal),
    autoIdlePc: (at, _, signal) => this.#measurements.autoIdlePc(at, signal),
  }

  onClosing(): Promise<void> {
    return this.#measurements.close()
  }

  ports(): readonly PortRef[] {
    return []
  }

  async prepare(node: DynamipsKindNode, input: DynamipsCreate): Promise<void> {
    await this.#apply(node, { ...input, ram: input.ram ?? defaultRam[input.platform] })
  }

  async update(node: DynamipsKindNode, changes: DynamipsUpdate): Promise<void> {
    const { idlepc } = node.record.properties
    if (changes.idlepc != null) this.control.requireUnmeasured(node)
    await this.#apply(node, changes)
    if (node.status !== 'stopped' && node.record.properties.idlepc !== idlepc) await this.control.setIdlePc(node)
  }

  async launch(node: DynamipsKindNode): Promise<Launch> {
    const { directory, record } = node
    const { ports, runDirectory } = this.#host
    const { properties } = record
    const warnings = [checkMemory(properties.ram)]
    const confinement = await this.#host.sandbox.confinement((reason) => warnings.push(reason))
    const program = requireDynamips(this.#host.settings().path)
    const { file } = await this.#imageNamed(node, properties.image)
    const command = await withDiskErrors('dynamips', async () => {
      await prepareFiles(directory, file)
      return this.#serial.run('program', () => unprivileged(program, runDirectory))
    })
    // Dynamips cannot choose a free port itself.
    const control_port = await ports.allocate('console', controlOf(node))
    record.properties = { ...properties, control_port, is_measured: this.#measurements.started.has(node.key) }
    const args = ['-N1', '-l', logName, '-H', `${controlAddress()}:${control_port}`]
    const run =
      confinement === undefined ? { command, args } : await this.#confined(node, confinement, { command, args, file })
    return {
      command_line: [program, ...args].join(' '),
      notices: warningsOf(node, warnings),
      run: {
        type: 'process',
        ...run,
        cwd: directory,
        log: join(directory, errorsName),
        // A pipe keeps errors apart from normal output, most of which dynamips prints at its end.
        stdio: 'pipe',
      },
    }
  }

  images(node: DynamipsKindNode): readonly string[] {
    return [node.record.properties.image]
  }

  /** Wraps the command in a cell with the image and the directory of the router, and with the host's network for the control port. */
  async #confined(
    node: DynamipsKindNode,
    confinement: Confinement,
    { command, args, file }: { command: string; args: readonly string[]; file: string },
  ): Promise<Pick<ProcessSpec, 'command' | 'args' | 'is_wrapped'>> {
    const { directory } = node
    const image = await realpath(file)
    await letRead(confinement.user, image, [])
    // The copy has mode 0700.
    if (confinement.user !== undefined && command.startsWith(this.#host.runDirectory)) await chmod(command, 0o755)
    await give(confinement.user, directory)
    const listens = [node.record.properties.control_port]
    const cell = { cwd: directory, network: 'host', writable: [directory], readable: [image], listens } as const
    return { ...confinement.wrap(cell, command, args), is_wrapped: true }
  }

  view(node: DynamipsKindNode): DynamipsNode {
    const { control_port: _, is_measured: __, ...settings } = node.record.properties
    return { ...fieldsOf(node), console_type: 'none', ...settings }
  }

  async duplicate(
    ...[source, destination, copy]: Parameters<NodeKind<DynamipsProperties>['duplicate']>
  ): Promise<void> {
    await copy(removeTemporary)
    const { control_port, is_measured } = destination.record.properties
    destination.record.properties = { ...source.record.properties, control_port, is_measured }
  }

  onStarted(node: DynamipsKindNode): void {
    this.#host.ports.adopt('console', node.record.properties.control_port, controlOf(node))
  }

  async onExited({ directory }: DynamipsKindNode): Promise<void> {
    await removeTemporary(directory).catch(ignore('the next start replaces these files'))
  }

  /** Applies all changes, or none when it throws. */
  async #apply(node: DynamipsKindNode, changes: DynamipsUpdate): Promise<void> {
    const next = withChanges(node.record.properties, changes, plainFields)
    if (changes.image != null) next.image = (await this.#imageNamed(node, changes.image)).name
    if (changes.idlepc != null) next.idlepc = Number(changes.idlepc) === 0 ? null : changes.idlepc.toLowerCase()
    node.record.properties = next
  }

  /** Finds an image and checks it; 409, with the member `image` when it is missing. */
  async #imageNamed({ projectPath }: DynamipsKindNode, image: string): Promise<{ name: string; file: string }> {
    const found = await this.#host.images.library.lookup('dynamips', image, projectPath)
    await requireIosImage(found.file, image)
    return found
  }
}

/** The owner of the control port of a router, for the port allocator. */
const controlOf = ({ projectId, key }: DynamipsKindNode): string => `${projectId}/${key}/control`
