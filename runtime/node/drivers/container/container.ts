import { mkdir, realpath, writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { basename, dirname, join } from 'node:path'
import type { PortRef } from '../../../../src/host-agent.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { badRequest, conflict } from '../../../../src/lib/errors/api-error.ts'
import { quotedImage } from '../../../../src/lib/errors/image-errors.ts'
import { repeated } from '../../../../src/lib/repeated.ts'
import {
  type ContainerCreate,
  type ContainerFile,
  type ContainerNode,
  type ContainerUpdate,
  container,
  interfacesPath,
  interfacesUp,
  leastRam,
} from '../../../../src/model/kinds/container.ts'
import { macAfter, withOwnAddresses } from '../../../../src/model/kinds/mac-addresses.ts'
import { shellWords } from '../../../../src/model/kinds/machine-options/shell-words.ts'
import type { ConsoleSize } from '../../../../src/model/schema/console-size.ts'
import { checkedName } from '../../engine/images/names.ts'
import { keeperErrorCode } from '../../engine/nodes/keeper-link.ts'
import type {
  ActionTarget,
  Cleanup,
  Launch,
  NodeActions,
  NodeKind,
  PortWiring,
  ReadyCommand,
} from '../../engine/nodes/kind.ts'
import { withChanges } from '../../engine/nodes/record.ts'
import { fieldsOf } from '../../engine/nodes/view-fields.ts'
import { withDiskErrors } from '../../engine/storage/disk.ts'
import { readOwn } from '../../engine/storage/own-files.ts'
import { isInside } from '../../engine/storage/paths.ts'
import type { Exit } from '../../keeper/protocol/protocol.ts'
import { checkMemory } from '../../os/system/memory.ts'
import type { DriverHost } from '../node-driver.ts'
import { type Bundle, bundleOf, linesOf, pairsOf, settingFiles } from './bundle.ts'
import { ControlGroups } from './control-groups.ts'
import { requireEngine } from './engine.ts'
import { holderCommand, panelCommand } from './holder.ts'
import { findIds } from './ids.ts'
import { ImageMaker } from './image-maker.ts'
import { ImageStore, readyMs } from './image-store.ts'
import { Layers } from './layers.ts'
import { type ContainerKindNode, ContainerProperties, settingNames } from './properties.ts'
import { seccompOf } from './seccomp.ts'

/** Also ends a shell, which hears no SIGTERM. */
const hangUp = constants.signals.SIGHUP
/** Bytes of a configuration of interfaces. */
const maxInterfaces = 64 << 10

/**
 * The container kind: crun in namespaces that a holder makes (docs/decisions/containers.md). Images and the layers of nodes belong to ids
 * of the namespaces, and are outside the projects: `{run}/containers`.
 */
export class ContainerKind implements NodeKind<ContainerProperties, typeof container> {
  readonly descriptor = container
  readonly schema = ContainerProperties
  readonly stopGraceMs = 5000
  readonly #host: DriverHost<ContainerProperties>
  readonly #layers: Layers
  readonly #images: ImageStore
  readonly #maker: ImageMaker
  readonly #groups: ControlGroups

  constructor(host: DriverHost<ContainerProperties>) {
    this.#host = host
    const directory = join(host.runDirectory, 'containers')
    this.#layers = new Layers(join(directory, 'nodes'), host.minFreeMb)
    this.#images = new ImageStore(join(directory, 'images'), host.minFreeMb)
    this.#maker = new ImageMaker(join(directory, 'images'), host.minFreeMb)
    this.#groups = new ControlGroups(directory)
  }

  readonly wiring: PortWiring<ContainerProperties> = { isTap: () => true }

  ports({ record }: ContainerKindNode): readonly PortRef[] {
    return Array.from({ length: record.properties.adapters }, (_, adapter) => ({ adapter, port: 0 }))
  }

  view(node: ContainerKindNode): ContainerNode {
    const { sum, ...settings } = node.record.properties
    return {
      ...fieldsOf(node),
      console_type: node.record.console_type === 'none' ? 'none' : 'telnet',
      ...settings,
      mac_address: macOf(node),
      image_md5sum: sum.image === settings.image ? sum.md5 : null,
    }
  }

  images(node: ContainerKindNode): readonly string[] {
    return [node.record.properties.image]
  }

  async prepare(node: ContainerKindNode, input: ContainerCreate): Promise<void> {
    node.record.properties = await this.#changed(node, input)
  }

  async update(node: ContainerKindNode, changes: ContainerUpdate): Promise<void> {
    node.record.properties = await this.#changed(node, changes)
  }

  async launch(node: ContainerKindNode, _wires: unknown, signal: AbortSignal): Promise<Launch> {
    const { record, projectPath, key } = node
    const { properties } = record
    const engine = requireEngine()
    checkMemory(properties.ram)
    const { file } = await this.#host.images.library.lookup('container', properties.image, projectPath)
    const md5 = await this.#host.images.md5Of(file)
    if (md5 === undefined) throw conflict(`The image ${properties.image} cannot be read`)
    const image = await this.#images.unpacked(engine, file, md5, signal)
    const interfaces = await interfacesOf(node)
    const own =
      interfaces === undefined
        ? properties
        : { ...properties, files: [...properties.files.filter(({ path }) => path !== interfaces.path), interfaces] }
    const bundle = bundleOf({ name: record.name, properties: own }, image.run, seccompOf)
    const place = this.#layers.placeOf(record.node_id)
    const layer = await this.#layers.prepare(engine.ids, node, signal)
    await withDiskErrors('Starting the container', () => writeBundle(place, bundle))
    const addresses = new Map(properties.custom_adapters.map((it) => [it.adapter_number, it.mac_address]))
    const taps = this.ports(node).map(({ adapter }) => ({
      name: `eth${adapter}`,
      mac: addresses.get(adapter)?.toLowerCase() ?? macAfter(macOf(node), adapter),
      port: `${key}/${adapter}/0`,
    }))
    const limits = await this.#groups.limit(record.node_id, properties)
    const stop = constants.signals[image.stopSignal as NodeJS.Signals] ?? constants.signals.SIGTERM
    const { command, args } = holderCommand({
      ids: engine.ids,
      places: [
        { name: 'bundle', path: place, isWritable: false },
        { name: 'image', path: image.rootfs, isWritable: false },
        { name: 'layer', path: layer, isWritable: true },
      ],
      limits,
      processes: properties.processes,
      isNesting: properties.capabilities.includes('SYS_ADMIN'),
      ...{ crun: engine.crun, tun: engine.tun },
      signals: [stop, hangUp],
      taps,
      address: ownAddress(properties),
      files: bundle.files,
      sysctls: pairsOf(properties.sysctls),
      exec: [...(interfaces === undefined ? [] : [interfacesUp]), ...linesOf(properties.exec)],
    })
    return {
      command_line: `crun run ${properties.image}${properties.command && ` ${properties.command}`}`,
      run: {
        type: 'process',
        ...{ command, args },
        is_wrapped: true,
        cwd: node.directory,
        log: join(node.directory, 'container.log'),
        stdio: 'pty',
        taps: taps.map(({ name, port }) => ({ name, port })),
        ...(taps.length > 0 && { panel: panelCommand(engine.ids) }),
      },
    }
  }

  consoleWords({ record }: ContainerKindNode, name: string): readonly string[] | undefined {
    const found = record.properties.consoles.find((it) => it.name === name)
    return found && shellWords(found.exec, name)
  }

  async readyCommand({ record }: ContainerKindNode, line: string | undefined): Promise<ReadyCommand | undefined> {
    if (line !== undefined) return { words: ['/bin/sh', '-c', line], ms: readyMs }
    const { md5 } = record.properties.sum
    return md5 === null ? undefined : this.#images.healthCheckOf(md5)
  }

  hint({ signal, requested }: Exit): string | undefined {
    return signal === 'SIGKILL' && !requested ? 'the kernel ends a container that needs more than its ram' : undefined
  }

  async onExited({ record: { node_id } }: ContainerKindNode): Promise<void> {
    await this.#groups.remove(node_id)
  }

  async duplicate(
    ...[source, { record }, copy]: Parameters<NodeKind<ContainerProperties>['duplicate']>
  ): Promise<void> {
    await copy((directory) => this.gather(source, directory).then(() => undefined))
    const { mac_address, custom_adapters } = record.properties
    const settings = source.record.properties
    record.properties = {
      ...settings,
      mac_address,
      custom_adapters: withOwnAddresses(settings, custom_adapters),
    }
  }

  /** Of a node that never ran there is nothing, and a copy says so. */
  async gather(node: ContainerKindNode, directory: string, signal?: AbortSignal): Promise<number> {
    const found = findIds()
    if ('reason' in found) return 0
    return this.#layers.gather(found.ids, node, directory, signal)
  }

  readonly actions: NodeActions<typeof container, ContainerProperties> = {
    makeImage: (at, { name }, signal) => this.#makeImage(at, name, signal),
    // Without the lock: a start that waits, or an image that is being made, would have terminals wait for it.
    resizeConsole: async (at, size) => this.#resizeConsole(await at.find(), size),
  }

  async #resizeConsole({ key, status }: ContainerKindNode, size: ConsoleSize): Promise<void> {
    if (status === 'stopped') throw conflict('The container is not running: start it first', { code: 'node-stopped' })
    await this.#host.keeper.call('console.resize', { key, ...size }).catch((cause: Error) => {
      const code = keeperErrorCode(cause)
      if (code === undefined || code === 'no_answer') throw cause
      throw conflict(`The terminal cannot be resized: ${cause.message}`, { cause })
    })
  }

  /** Makes an image of the image of a node and of its layer. 403, 409, 507. */
  async #makeImage(at: ActionTarget<ContainerProperties>, name: string, signal?: AbortSignal) {
    const { images } = this.#host
    const engine = requireEngine()
    images.executables.requireUpload(name, undefined)
    if ((await images.library.find('container', checkedName(name))) !== undefined)
      throw conflict(`name: an image ${quotedImage(name)} already exists; choose another name`, { code: 'name-taken' })
    const never = new AbortController().signal
    const { base, layer, files } = await at.exclusively(async (node) => {
      const { image, files } = node.record.properties
      if (node.status === 'stopped') await this.#layers.unpacked(engine.ids, node, signal ?? never)
      const { file } = await images.library.lookup('container', image, node.projectPath)
      const bundled = settingFiles(files)
      return { base: file, layer: this.#layers.layerOf(node.record.node_id), files: bundled }
    })
    const failure = `The image ${name} cannot be made`
    return this.#maker.make(engine, { base, layer, files, failure }, signal, {
      holding: (read) => at.exclusively(read),
      store: async (content, size) => {
        await images.write('container', name, content, { size, digests: [] })
        return { path: name, filesize: size }
      },
    })
  }

  async onCommit(node: ContainerKindNode): Promise<void> {
    if (node.status === 'stopped') await this.gather(node, node.directory)
  }

  readonly cleanup: Cleanup<ContainerProperties> = {
    onRemoved: async (node, { isDeleted, keepsFiles }) => {
      const found = findIds()
      if (isDeleted && !keepsFiles) await this.#remove(node.record.node_id)
      if (!isDeleted && 'ids' in found) await this.#layers.putAway(found.ids, node)
    },
    onDiscarded: ({ node_id }) => this.#remove(node_id),
    onFilesRemoved: (nodeId) => this.#remove(nodeId).catch(ignore('the next start of the service tries again')),
    reapOrphans: async (isThere) => {
      await this.#groups.tidy()
      for (const id of await this.#layers.orphans())
        if (!isThere(`${container.name}:${id}`))
          await this.#remove(id).catch(ignore('the next start of the service tries again'))
      const found = findIds()
      const used = new Set([...this.#host.nodes()].map(({ record }) => record.properties.sum.md5))
      if ('ids' in found) await this.#images.tidy(found, used)
    },
  }

  /** The properties with the changes; 400, 404, 409. */
  async #changed(node: ContainerKindNode, changes: ContainerCreate | ContainerUpdate): Promise<ContainerProperties> {
    const before = node.record.properties
    const next = withChanges(before, changes, settingNames)
    for (const name of ['command', 'entrypoint'] as const) shellWords(next[name], name)
    if (next.ram > 0 && next.ram < leastRam) throw badRequest(`ram: expected 0, or at least ${leastRam} MB`)
    for (const { name, exec } of next.consoles) requireWords(exec, `consoles: ${name}`)
    const double = repeated(next.consoles.map(({ name }) => name))
    if (double !== undefined) throw badRequest(`consoles: ${double} is there twice`)
    const twice = repeated(next.files.map(({ path }) => path))
    if (twice !== undefined) throw badRequest(`files: ${twice} is there twice`)
    const number = repeated(next.custom_adapters.map(({ adapter_number }) => adapter_number))
    if (number !== undefined) throw badRequest(`custom_adapters: adapter_number ${number} occurs twice`)
    if (node.status !== 'stopped' && next.adapters !== before.adapters)
      throw conflict('adapters: the container is running; stop it to change their number')
    for (let adapter = next.adapters; adapter < before.adapters; adapter++)
      if (node.record.ports[`${adapter}/0`]?.nio != null)
        throw conflict(`adapters: eth${adapter} is linked; delete its link first`)
    if (changes.image != null) {
      const { images } = this.#host
      const { name, file } = await images.library.lookup('container', changes.image, node.projectPath)
      next.image = name
      next.sum = { image: name, md5: (await images.md5Of(file)) ?? null }
    }
    return next
  }

  async #remove(nodeId: string): Promise<void> {
    const found = findIds()
    await this.#layers.remove('ids' in found ? found.ids : undefined, nodeId)
  }
}

/** 400 for a command without words. */
function requireWords(text: string, field: string): void {
  if (shellWords(text, field).length === 0) throw badRequest(`${field}: expected a command`)
}

/** The address of the first adapter: a local one (IEEE 802c) of the id, unless the node has its own. */
function macOf({ record }: ContainerKindNode): string {
  const { mac_address } = record.properties
  if (mac_address !== '') return mac_address.toLowerCase()
  const digits = record.node_id.replaceAll('-', '').slice(0, 8)
  return `02:${digits.replace(/(..)/g, '$1:')}00`
}

/** The file by which clients of GNS3 set the addresses of a container: it is in the directory of the node. */
async function interfacesOf({ directory }: ContainerKindNode): Promise<ContainerFile | undefined> {
  // No link leads out of the directory.
  const real = await realpath(join(directory, dirname(interfacesPath))).catch(() => undefined)
  if (real === undefined || !isInside(await realpath(directory), real)) return undefined
  const file = await readOwn(real, basename(interfacesPath), maxInterfaces)
  return file && { path: `/${interfacesPath}`, text: file.bytes.toString('utf8') }
}

/** The address of the first adapter; undefined: it has none. */
function ownAddress({ address: text, gateway }: ContainerProperties) {
  const [address = '', prefix] = text.split('/')
  return prefix === undefined ? undefined : { address, prefix: Number(prefix), gateway }
}

/** Writes the bundle of a start; crun reads it as another user. */
async function writeBundle(place: string, { config, contents }: Bundle): Promise<void> {
  await mkdir(join(place, '..'), { recursive: true, mode: 0o700 })
  await mkdir(place, { recursive: true, mode: 0o755 })
  await writeFile(join(place, 'config.json'), config, { mode: 0o644 })
  for (const [name, text] of contents) await writeFile(join(place, name), text, { mode: 0o644 })
}
