import { chmod, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { KeyedMutex } from '../../../../src/lib/async/keyed-mutex.ts'
import { badRequest, conflict } from '../../../../src/lib/errors/api-error.ts'
import { omit } from '../../../../src/lib/omit.ts'
import {
  type DynamipsConfigs,
  type DynamipsCreate,
  type DynamipsNode,
  type DynamipsUpdate,
  dynamips,
  dynamipsSettings,
} from '../../../../src/model/kinds/dynamips.ts'
import { completed, defaultRam, portsOfRouter } from '../../../../src/model/kinds/dynamips-hardware.ts'
import type { PortShape } from '../../../../src/model/kinds/kind.ts'
import type { Launch, NodeActions, NodeKind, PortWire, PortWiring } from '../../engine/nodes/kind.ts'
import { withChanges } from '../../engine/nodes/record.ts'
import {
  createConfig,
  named,
  privateConfigName,
  renameInConfig,
  stageConfigs,
  startupConfigName,
} from '../../engine/nodes/router-configs.ts'
import { fieldsOf } from '../../engine/nodes/view-fields.ts'
import { warningsOf } from '../../engine/nodes/warnings.ts'
import { withDiskErrors } from '../../engine/storage/disk.ts'
import type { ProcessSpec } from '../../keeper/protocol/protocol.ts'
import { give, letRead } from '../../os/sandbox/box.ts'
import type { Confinement } from '../../os/sandbox/sandbox.ts'
import { checkMemory } from '../../os/system/memory.ts'
import type { DriverHost } from '../node-driver.ts'
import { configsOfFiles } from './configs.ts'
import { errorsName, logName, prepareFiles, removeTemporary } from './files.ts'
import { DynamipsGuests } from './guests.ts'
import { requireIosImage } from './image.ts'
import { Measurements } from './measurements.ts'
import { requireDynamips, takesConsoleAddress, unprivileged } from './program.ts'
import { type DynamipsKindNode, DynamipsProperties, hardwareOf, macOf } from './properties.ts'
import { controlAddress } from './ready.ts'
import { type DynamipsTimeouts, defaultDynamipsTimeouts } from './timeouts.ts'

type DynamipsHost = DriverHost<DynamipsProperties, { readonly path: string }>

const settingFields = Object.keys(dynamipsSettings) as (keyof typeof dynamipsSettings)[]
const plainFields = ['platform', 'ram', 'usage', ...settingFields] as const

/** The dynamips kind. Each router has its own dynamips process, so that its idle PC can be measured. */
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
    this.control = new DynamipsGuests(timeouts, host.listener, (node) => {
      for (const owner of [controlOf(node), consoleOf(node)]) host.ports.releaseAll(owner)
    })
    this.#measurements = new Measurements(this.control, timeouts)
  }

  readonly wiring: PortWiring<DynamipsProperties> = {
    lineOf: (node, { adapter, port }) =>
      this.ports(node).find((known) => known.adapter === adapter && known.port === port)?.line ?? 'ethernet',
  }

  readonly actions: NodeActions<typeof dynamips, DynamipsProperties> = {
    configs: (at) => at.exclusively((node) => this.#configs(node)),
    idlePcProposals: (at, _, signal) => this.#measurements.idlePcProposals(at, signal),
    autoIdlePc: (at, _, signal) => this.#measurements.autoIdlePc(at, signal),
  }

  onClosing(): Promise<void> {
    return this.#measurements.close()
  }

  ports(node: DynamipsKindNode): readonly PortShape[] {
    return portsOfRouter(hardwareOf(node))
  }

  /** Without the configurations: those of a saved lab are kept. */
  adopt(input: DynamipsCreate) {
    return omit(input, 'node_id', 'startup_config_content', 'private_config_content')
  }

  async prepare(node: DynamipsKindNode, input: DynamipsCreate): Promise<void> {
    const { directory, record } = node
    record.properties = await this.#changed(node, { ...input, ram: input.ram ?? defaultRam[input.platform] })
    const write = async (name: Parameters<typeof createConfig>[1], text: string | null | undefined) =>
      text ? createConfig(directory, name, text, record.name) : false
    const written = [
      await write(startupConfigName, input.startup_config_content),
      await write(privateConfigName, input.private_config_content),
    ]
    if (written.includes(true)) record.properties = { ...record.properties, is_config_new: true }
  }

  async update(node: DynamipsKindNode, changes: DynamipsUpdate, before: string): Promise<void> {
    const { record, directory } = node
    const { properties } = record
    const isStopped = node.status === 'stopped'
    if (changes.idlepc != null) this.control.requireUnmeasured(node)
    const next = await this.#changed(node, changes)
    if (!isStopped && !isDeepStrictEqual(hardwareOf(node), hardwareOf({ record: { ...record, properties: next } })))
      throw conflict('The cards of a running router cannot be changed: stop it first', { code: 'node-running' })
    if (!isStopped && record.console_type !== 'none' && properties.console_port === 0)
      throw conflict('console_type: the router was started without a console: stop it first', { code: 'node-running' })
    const { startup_config_content: startup, private_config_content: secret } = changes
    const configs = await stageConfigs(
      directory,
      { [startupConfigName]: startup, [privateConfigName]: secret },
      record.name,
    )
    try {
      const texts = [startup, secret].map((text) => text && named(text, record.name))
      if (!isStopped) await this.control.pushConfigs(node, texts)
      else if (before !== record.name && properties.is_config_new && !startup)
        await renameInConfig(directory, before, record.name)
    } catch (error) {
      await configs.discard()
      throw error
    }
    await configs.commit()
    const is_config_new = isStopped && (properties.is_config_new || !!startup || !!secret)
    record.properties = { ...next, is_config_new }
    if (!isStopped && next.idlepc !== properties.idlepc) await this.control.setIdlePc(node)
  }

  /** Writes what a running router stored into its files. A stopped one was read when it stopped. */
  async onCommit(node: DynamipsKindNode): Promise<void> {
    if (node.status !== 'stopped') await this.control.saveConfigs(node)
  }

  async #configs(node: DynamipsKindNode): Promise<DynamipsConfigs> {
    const stored = node.status === 'stopped' ? undefined : await this.control.configs(node)
    const [startup, secret] = stored ? [stored.startup, stored.private] : await configsOfFiles(node.directory)
    return { ...(startup && { startup_config_content: startup }), ...(secret && { private_config_content: secret }) }
  }

  async launch(node: DynamipsKindNode, wires: ReadonlyMap<string, PortWire>): Promise<Launch> {
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
    const console_port = record.console_type === 'none' ? 0 : await ports.allocate('console', consoleOf(node))
    const is_measured = this.#measurements.started.has(node.key)
    record.properties = { ...properties, control_port, console_port, is_measured }
    this.control.wired(node, wires)
    const host = controlAddress()
    const consoleArgs = (await takesConsoleAddress(command)) ? ['--console-binding-addr', host] : []
    // Without --noctrl a character on the console opens a menu of dynamips, which can end the router.
    const args = ['-N1', '--noctrl', ...consoleArgs, '-l', logName, '-H', `${host}:${control_port}`]
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
        ...(console_port > 0 && { console_at: { host, port: console_port } }),
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
    const { control_port, console_port } = node.record.properties
    const listens = [control_port, console_port].filter((port) => port > 0)
    const cell = { cwd: directory, network: 'host', writable: [directory], readable: [image], listens } as const
    return { ...confinement.wrap(cell, command, args), is_wrapped: true }
  }

  view(node: DynamipsKindNode): DynamipsNode {
    const { record } = node
    const { control_port: _, console_port: __, is_measured: ___, is_config_new: ____, ...settings } = record.properties
    const console_type = record.console_type === 'none' ? 'none' : 'telnet'
    return { ...fieldsOf(node), ...settings, ...hardwareOf(node), console_type, mac_addr: macOf(node) }
  }

  async duplicate(
    ...[source, destination, copy]: Parameters<NodeKind<DynamipsProperties>['duplicate']>
  ): Promise<void> {
    await copy(removeTemporary)
    const { control_port, console_port, is_measured, mac_addr } = destination.record.properties
    const own = { control_port, console_port, is_measured, mac_addr }
    destination.record.properties = { ...source.record.properties, ...own }
  }

  onStarted(node: DynamipsKindNode): void {
    const { control_port, console_port } = node.record.properties
    this.#host.ports.adopt('console', control_port, controlOf(node))
    if (console_port > 0) this.#host.ports.adopt('console', console_port, consoleOf(node))
  }

  async onExited({ directory }: DynamipsKindNode): Promise<void> {
    await removeTemporary(directory).catch(ignore('the next start replaces these files'))
  }

  /** The properties with the changes; 400, 409. */
  async #changed(node: DynamipsKindNode, changes: DynamipsUpdate): Promise<DynamipsProperties> {
    const next = withChanges(node.record.properties, changes, plainFields)
    const fault = completed(next)
    if (typeof fault === 'string') throw badRequest(fault)
    if (changes.image != null) next.image = (await this.#imageNamed(node, changes.image)).name
    if (changes.idlepc != null) next.idlepc = Number(changes.idlepc) === 0 ? null : changes.idlepc.toLowerCase()
    if (changes.mac_addr != null) next.mac_addr = changes.mac_addr.toLowerCase()
    return next
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
/** The owner of the port at which dynamips serves the console to the keeper. */
const consoleOf = ({ projectId, key }: DynamipsKindNode): string => `${projectId}/${key}/console`
