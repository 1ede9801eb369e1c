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
import type { EventPayload } from '../../../../src/model/event.ts'
import type { ProcessSpec } from '../../keeper-protocol/protocol.ts'
import { withChanges } from '../../nodes/record.ts'
import { fieldsOf } from '../../nodes/shown-fields.ts'
import { give, letRead } from '../../sandbox/box.ts'
import type { Confinement } from '../../sandbox/sandbox.ts'
import { withDiskErrors } from '../../storage/disk.ts'
import { checkMemory } from '../../system/memory.ts'
import type { KindHost } from '../host-kind.ts'
import type { Launch, NodeActions, NodeKind } from '../kind.ts'
import { type DynamipsTimeouts, defaultDynamipsTimeouts } from './bounds.ts'
import { errorsName, logName, prepareFiles, removePassing } from './files.ts'
import { DynamipsGuests } from './guests.ts'
import { requireIosImage } from './image.ts'
import { Measurements } from './measurements.ts'
import { requireDynamips, unprivileged } from './program.ts'
import { type DynamipsKindNode, DynamipsProperties } from './properties.ts'
import { controlAddress } from './ready.ts'

type DynamipsHost = KindHost<DynamipsProperties, { readonly path: string }>

const plainFields = ['platform', 'ram', 'usage'] as const

/** The dynamips kind: routers without ports, each with a dynamips of its own, so that the idle PC of their images can be found. */
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
    this.control = new DynamipsGuests(timeouts, (node) => host.ports.releaseAll(controlOf(node)))
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
    const properties = node.record.properties
    const warnings = [checkMemory(properties.ram)]
    const confinement = await this.#host.sandbox.confinement((reason) => warnings.push(reason))
    const notices = warnings.flatMap((warning): EventPayload[] =>
      warning === undefined ? [] : [{ type: 'log.warning', message: `${record.name}: ${warning}` }],
    )
    const program = requireDynamips(this.#host.settings().path)
    const { file } = await this.#imageNamed(node, properties.image)
    const command = await withDiskErrors('dynamips', async () => {
      await prepareFiles(directory, file)
      return this.#serial.run('program', () => unprivileged(program, runDirectory))
    })
    // It cannot be told to choose one.
    const control_port = await ports.allocate('console', controlOf(node))
    record.properties = { ...properties, control_port, is_measured: this.#measurements.started.has(node.key) }
    const args = ['-N1', '-l', logName, '-H', `${controlAddress()}:${control_port}`]
    const run =
      confinement === undefined ? { command, args } : await this.#confined(node, confinement, { command, args, file })
    return {
      command_line: [program, ...args].join(' '),
      notices,
      run: {
        type: 'process',
        ...run,
        cwd: directory,
        log: join(directory, errorsName),
        // What it complains of is then apart from what it tells, of which most comes when it ends.
        stdio: 'pipe',
      },
    }
  }

  images(node: DynamipsKindNode): readonly string[] {
    return [node.record.properties.image]
  }

  /** In a cell that sees the image and the directory of the router. Commands come by a TCP port, so the network is the host's. */
  async #confined(
    node: DynamipsKindNode,
    confinement: Confinement,
    { command, args, file }: { command: string; args: readonly string[]; file: string },
  ): Promise<Pick<ProcessSpec, 'command' | 'args' | 'is_wrapped'>> {
    const { directory } = node
    const image = await realpath(file)
    await letRead(confinement.user, image, [])
    // The copy of the program is for us alone.
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
    await copy(removePassing)
    const { control_port, is_measured } = destination.record.properties
    destination.record.properties = { ...source.record.properties, control_port, is_measured }
  }

  onStarted(node: DynamipsKindNode): void {
    this.#host.ports.adopt('console', node.record.properties.control_port, controlOf(node))
  }

  async onExited({ directory }: DynamipsKindNode): Promise<void> {
    await removePassing(directory).catch(ignore('the next start replaces these files'))
  }

  /** All of the changes, or (when it throws) none. */
  async #apply(node: DynamipsKindNode, changes: DynamipsUpdate): Promise<void> {
    const next = withChanges(node.record.properties, changes, plainFields)
    if (changes.image != null) next.image = (await this.#imageNamed(node, changes.image)).name
    if (changes.idlepc != null) next.idlepc = Number(changes.idlepc) === 0 ? null : changes.idlepc.toLowerCase()
    node.record.properties = next
  }

  /** 409, with `image` when there is none. */
  async #imageNamed({ projectPath }: DynamipsKindNode, wanted: string): Promise<{ name: string; file: string }> {
    const image = await this.#host.images.library.lookup('dynamips', wanted, projectPath)
    await requireIosImage(image.file, wanted)
    return image
  }
}

/** Who owns the port on which the dynamips of a router takes commands. */
const controlOf = ({ projectId, key }: DynamipsKindNode): string => `${projectId}/${key}/control`
