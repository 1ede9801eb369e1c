import { rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import type { PortRef } from '../../../../src/host-agent.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { omit } from '../../../../src/lib/omit.ts'
import {
  type IouConfigs,
  type IouCreate,
  type IouNode,
  type IouStart,
  type IouUpdate,
  iou,
} from '../../../../src/model/kinds/iou.ts'
import type { Cleanup, HostIdentity, Launch, NodeActions, NodeKind, PortWiring } from '../../engine/nodes/kind.ts'
import { withChanges } from '../../engine/nodes/record.ts'
import {
  createConfig,
  namedConfig,
  privateConfigName,
  readConfig,
  renameInConfig,
  stageConfigs,
  startupConfigName,
} from '../../engine/nodes/router-configs.ts'
import { fieldsOf } from '../../engine/nodes/view-fields.ts'
import { FileFacts } from '../../engine/storage/file-facts.ts'
import { removeStaged } from '../../engine/storage/own-files.ts'
import type { Exit } from '../../keeper/protocol/protocol.ts'
import { removeBox } from '../../os/sandbox/box.ts'
import type { DriverHost } from '../node-driver.ts'
import { ApplicationIds, hasInstance } from './application-ids.ts'
import { lineIn, netioPortOf, portsOf, requireBays } from './bays.ts'
import { adoptFiles, removeVlans } from './configs.ts'
import { imageFactsOf, knownFactsOf } from './image.ts'
import { unlinkImage } from './image-link.ts'
import { launchOf } from './launch.ts'
import {
  type LicencePaths,
  licenceDirectory,
  licenceName,
  licencePath,
  removeLicences,
  writeLicence,
} from './licence.ts'
import { currentConfigs, type ReadContext } from './nvram-files.ts'
import { NvramFollower } from './nvram-follower.ts'
import { type IouKindNode, IouProperties, plainFields, withDefaultsOf } from './properties.ts'

type IouHost = DriverHost<IouProperties, IouSettings>

export type IouSettings = { readonly iourc_path: string; readonly license_check: boolean }

/** The number of SIGSEGV, which some images have as their exit code. */
const segmentationFault = 11

type ShownFiles = Pick<IouNode, 'startup_config' | 'private_config' | 'iourc_path'>

/** The iou kind: routers that run as programs of this host. */
export class IouKind implements NodeKind<IouProperties, typeof iou> {
  readonly descriptor = iou
  readonly schema = IouProperties
  readonly stopGraceMs = 3000
  readonly #host: IouHost
  readonly #ids: ApplicationIds
  readonly #nvram: NvramFollower
  /** The shown facts of files, which users and the router can change. */
  readonly #files = new FileFacts<ShownFiles>()
  /** Keys with an id because the keeper has ports of that id: nodes that will be opened, and orphans. */
  readonly #adopted = new Set<string>()

  /** `isIdInUse`: whether a program of this host has an application id. Default: asks the host. */
  constructor(host: IouHost, isIdInUse?: (applicationId: number) => boolean) {
    this.#host = host
    this.#ids = new ApplicationIds(isIdInUse)
    this.#nvram = new NvramFollower(host.listener, (key) => this.#files.forget(key))
  }

  readonly identity: HostIdentity<IouProperties> = {
    isTaken: (node) => hasInstance(node.record.properties.application_id),
    change: (node) => {
      const before = node.record.properties
      const application_id = this.#ids.change(node.key)
      node.record.properties = { ...before, application_id }
      const message =
        `${node.record.name}: another program of this host uses the application id ${before.application_id}; ` +
        `it is now ${application_id}, and the MAC addresses of the router change with it`
      return { type: 'log.warning', message }
    },
    adoptPort: (key, { application_id }) => {
      if (this.#idFor(key, application_id) !== undefined) this.#adopted.add(key)
    },
  }

  readonly wiring: PortWiring<IouProperties> = {
    lineOf: ({ record }, port) => lineIn(record.properties, port),
    netioOf: (node, port) => ({
      application_id: this.#withId(node).application_id,
      port: netioPortOf(port),
      ethernet: lineIn(node.record.properties, port) === 'ethernet',
    }),
  }

  readonly cleanup: Cleanup<IouProperties> = {
    onIdle: (node) => this.#tidy(node),
    reapOrphans: (isThere) => this.#reapOrphans(isThere),
    dispose: (node) => this.#dispose(node),
  }

  ports({ record }: IouKindNode): readonly PortRef[] {
    return portsOf(record.properties)
  }

  onNew({ key, record }: IouKindNode): void {
    record.properties = { ...record.properties, application_id: this.#ids.allocate(key) }
  }

  /** Without an id when all are taken; a start tries again. */
  onOpened({ key, record }: IouKindNode): void {
    const { properties } = record
    record.properties = { ...properties, application_id: this.#idFor(key, properties.application_id) ?? 0 }
  }

  /** Without the configurations: those of a saved lab are kept. */
  adopt(input: IouCreate): IouUpdate {
    return omit(input, 'node_id', 'startup_config_content', 'private_config_content')
  }

  async prepare(node: IouKindNode, input: IouCreate): Promise<void> {
    node.record.properties = await this.#changed(node, input, true)
    if (input.iourc_content != null) await this.#writeLicence(node, input.iourc_content)
    const { name } = node.record
    await createConfig(node.directory, startupConfigName, input.startup_config_content ?? null, name)
    await createConfig(node.directory, privateConfigName, input.private_config_content ?? null, name)
  }

  async update(node: IouKindNode, changes: IouUpdate, before: string): Promise<void> {
    const { directory, record } = node
    const { startup_config_content, private_config_content, iourc_content } = changes
    // The router may just have stored a configuration, which must not be overwritten unread.
    if (before !== record.name || startup_config_content || private_config_content) await this.onCommit(node)
    const next = await this.#changed(node, changes)
    const texts = { [startupConfigName]: startup_config_content, [privateConfigName]: private_config_content }
    const configs = await stageConfigs(directory, texts, record.name)
    try {
      if (startup_config_content) await removeVlans(directory)
      else if (before !== record.name) await renameInConfig(directory, before, record.name)
      if (iourc_content != null) await this.#writeLicence(node, iourc_content)
    } catch (error) {
      await configs.discard()
      throw error
    }
    await configs.commit()
    this.#files.forget(node.key)
    record.properties = next
  }

  async launch(node: IouKindNode): Promise<Launch> {
    const { license_check } = this.#host.settings()
    return launchOf(node, {
      sandbox: this.#host.sandbox,
      runDirectory: this.#host.runDirectory,
      image: await this.#admitted(node),
      paths: this.#licencePaths(node),
      isLicenceChecked: license_check && this.#withId(node).license_check,
    })
  }

  hint({ code, signal }: Exit): string | undefined {
    if (signal === 'SIGSEGV' || code === segmentationFault || code === 128 + segmentationFault) {
      return 'the image may be damaged, need more memory, or not run on this host: try another one, or another release of it'
    }
    // 126 and 127: a shell or setpriv(1) could not execute the program (POSIX).
    if (code === 126 || code === 127)
      return 'this host lacks a part that the image needs, such as its loader or a library'
    return undefined
  }

  images(node: IouKindNode): readonly string[] {
    return [node.record.properties.path]
  }

  view(node: IouKindNode): IouNode {
    const { record } = node
    const { sum, link: _, license_check: __, ...settings } = node.record.properties
    return {
      ...fieldsOf(node),
      console_type: record.console_type === 'none' ? 'none' : 'telnet',
      ...settings,
      md5sum: sum.image === settings.path ? sum.md5 : null,
      ...this.#shownFiles(node),
    }
  }

  #shownFiles(node: IouKindNode): ShownFiles {
    const { key, directory } = node
    const configured = this.#configuredLicence()
    // The licence file of a client needs no watch, because only this class writes it.
    const directories = () => [directory, configured === undefined ? homedir() : dirname(configured)]
    return this.#files.get(key, `${directory}\0${configured ?? ''}`, directories, () => ({
      startup_config: namedConfig(directory, startupConfigName),
      private_config: namedConfig(directory, privateConfigName),
      iourc_path: licencePath(this.#licencePaths(node)),
    }))
  }

  async duplicate(...[source, { key, record }, copy]: Parameters<NodeKind<IouProperties>['duplicate']>): Promise<void> {
    const { application_id } = record.properties
    const { link, ...settings } = source.record.properties
    // The router may just have stored a configuration.
    if (source.status !== 'stopped') await this.#nvram.pull(source, { isRunning: true, why: 'in case' }).catch(() => [])
    await copy(async (directory) => {
      await unlinkImage(directory, link)
      await adoptFiles(directory, application_id)
      await renameInConfig(directory, source.record.name, record.name)
    })
    this.#files.forget(key)
    record.properties = { ...settings, link: '', application_id }
  }

  readonly actions: NodeActions<typeof iou, IouProperties> = {
    configs: (at) => at.exclusively((node) => this.#configs(node)),
    saveConfigs: (at) => at.exclusively((node) => this.#nvram.pull(node, readForClient(node))),
  }

  /** `license_check` holds until the next start; a reload keeps it. */
  async onStarting(node: IouKindNode, { iourc_content, license_check }: IouStart): Promise<void> {
    if (iourc_content != null) await this.#writeLicence(node, iourc_content)
    const { record, status } = node
    if (status === 'stopped') record.properties = { ...node.record.properties, license_check: license_check !== false }
  }

  /** The stored configurations, else those of the files. */
  async #configs(node: IouKindNode): Promise<IouConfigs> {
    const { directory } = node
    const { application_id } = node.record.properties
    const stored = await currentConfigs(directory, application_id, readForClient(node)).catch(() => undefined)
    const startup = stored?.startup ?? (await readConfig(directory, startupConfigName))
    const secret = stored?.private ?? (await readConfig(directory, privateConfigName))
    return { ...(startup && { startup_config_content: startup }), ...(secret && { private_config_content: secret }) }
  }

  onStarted(node: IouKindNode, isNew: boolean): void {
    this.#nvram.begin(node, isNew)
  }

  async onExited(node: IouKindNode): Promise<void> {
    this.#nvram.end(node.key)
    await this.#nvram.pullQuietly(node, { isRunning: false, why: 'in case' })
    await removeBox(this.#host.runDirectory, node.record.node_id).catch(ignore('the next start makes the box again'))
    await this.#tidy(node)
  }

  /** Removes links and staged files. Failures are ignored, because the next start replaces the files. */
  async #tidy(node: IouKindNode): Promise<void> {
    const { application_id, link, path } = node.record.properties
    for (const name of [link, basename(path)])
      await unlinkImage(node.directory, name).catch(ignore('the next start replaces the link'))
    await removeStaged(node.directory).catch(ignore('the next stop removes them'))
    if (application_id > 0) await this.#host.keeper.tidyNetio(application_id)
  }

  /** A stopped router was read when it stopped. */
  async onCommit(node: IouKindNode): Promise<void> {
    if (node.status !== 'stopped') await this.#nvram.pullQuietly(node, { isRunning: true, why: 'in case' })
  }

  async #dispose(node: IouKindNode): Promise<void> {
    this.#nvram.end(node.key)
    this.#files.forget(node.key)
    // A killed keeper may have left the sockets of the bridge.
    const { application_id } = node.record.properties
    if (application_id > 0) await this.#host.keeper.tidyNetio(application_id)
    this.#ids.release(node.key)
    // No secret of a closed node stays. A client sends the licence again with the next create or start.
    await rm(this.#licenceDirectory(node), { recursive: true, force: true }).catch(
      ignore('the next service removes licences without a node'),
    )
  }

  /** Also removes licence files of projects that were deleted while no service ran. */
  async #reapOrphans(isThere: (key: string) => boolean): Promise<void> {
    for (const key of this.#adopted) if (!isThere(key)) this.#ids.release(key)
    this.#adopted.clear()
    // A node under creation has an id, but is not listed yet.
    const isUnwanted = (key: string) => !isThere(key) && this.#ids.of(key) === undefined
    await removeLicences(this.#host.runDirectory, (id) => isUnwanted(`${iou.name}:${id}`))
  }

  /** The properties with the changes; 409. */
  async #changed(node: IouKindNode, changes: IouCreate | IouUpdate, isNew = false): Promise<IouProperties> {
    const next = withChanges(node.record.properties, changes, plainFields)
    requireBays(next, isNew || (changes.ethernet_adapters != null && changes.serial_adapters != null))
    if (changes.path != null) {
      const { name, file } = await this.#host.images.library.lookup('iou', changes.path, node.projectPath)
      next.path = name
      next.sum = { image: name, md5: (await this.#host.images.md5Of(file)) ?? null }
    }
    // A create, and a change of other fields, does not wait for a run of the image.
    const isReread = !isNew && (changes.use_default_iou_values === true || changes.path != null)
    if (!next.use_default_iou_values) return next
    const factsOf = async (path: string) =>
      isReread ? imageFactsOf(path, await this.#host.sandbox.confinement()) : knownFactsOf(path)
    const facts = this.#admitted(node, next).then(factsOf)
    return withDefaultsOf(next, await facts.catch(() => undefined))
  }

  /** The path of the image, admitted to run; 409. Only an admitted image may run, even for its help. */
  async #admitted({ record, projectPath }: IouKindNode, { path } = record.properties): Promise<string> {
    const { library, executables } = this.#host.images
    return executables.admit((await library.lookup('iou', path, projectPath)).file)
  }

  /** The wanted id, or another one; undefined when all are taken. */
  #idFor(key: string, wanted: number): number | undefined {
    try {
      return this.#ids.allocate(key, wanted)
    } catch {
      return undefined
    }
  }

  /** The properties, with an id; 409 when all are taken. */
  #withId({ key, record }: IouKindNode): IouProperties {
    if (record.properties.application_id === 0)
      record.properties = { ...record.properties, application_id: this.#ids.allocate(key) }
    return record.properties
  }

  #licencePaths(node: IouKindNode): LicencePaths {
    const configured = this.#configuredLicence()
    return {
      configured,
      home: homedir(),
      directory: node.directory,
      own: join(this.#licenceDirectory(node), licenceName),
    }
  }

  /** IOURC of the environment counts first, as for an image that a user starts in a shell. */
  #configuredLicence(): string | undefined {
    return process.env.IOURC || this.#host.settings().iourc_path || undefined
  }

  async #writeLicence(node: IouKindNode, content: string): Promise<void> {
    await writeLicence(this.#licenceDirectory(node), content)
    this.#files.forget(node.key)
  }

  #licenceDirectory({ record }: IouKindNode): string {
    return licenceDirectory(this.#host.runDirectory, record.node_id)
  }
}

/** A client asks for the stored configurations. */
const readForClient = ({ status }: IouKindNode): ReadContext => ({ isRunning: status !== 'stopped', why: 'requested' })
