import { rm, symlink, writeFile } from 'node:fs/promises'
import { homedir, hostname } from 'node:os'
import { basename, join } from 'node:path'
import { badRequest, conflict } from '../../../../src/errors.ts'
import type { PortRef } from '../../../../src/host-agent.ts'
import type { Line } from '../../../../src/model/capture.ts'
import type { Happening } from '../../../../src/model/event.ts'
import type { IouConfigs, IouCreate, IouNode, IouStart, IouUpdate } from '../../../../src/model/iou.ts'
import type { ImageLibrary } from '../../images/library.ts'
import type { NetioPort } from '../../keeper/protocol.ts'
import type { NodeRecord } from '../../nodes/record.ts'
import type { Pool } from '../../ports/allocator.ts'
import { translated } from '../../projects/disk.ts'
import type { HostIdentity, KindListener, KindNode, Launch, NodeKind } from '../kind.ts'
import { ApplicationIds, hasInstance } from './application-ids.ts'
import { commandLine } from './command-line.ts'
import {
  adoptFiles,
  createConfig,
  namedConfig,
  nvramName,
  privateConfigName,
  readConfig,
  removeVlans,
  renameInConfig,
  startupConfigName,
  updateConfig,
} from './configs.ts'
import { imageFactsOf } from './image.ts'
import {
  findLicence,
  hostnameWarning,
  type LicencePlaces,
  licenceName,
  licencePath,
  requireLicence,
  writeLicence,
} from './licence.ts'
import { netmapName, netmapText } from './netmap.ts'
import { pullConfigs, pullQuietly, pushConfigs, storedConfigs } from './nvram-files.ts'
import { fitting, type IouProperties, plainFields, propertiesOf } from './properties.ts'
import { watchFile } from './watch.ts'

const unitsOfBay = 4
const mostBays = 16
const logName = 'iou.log'

export interface IouOptions {
  readonly library: ImageLibrary
  /** Where what is not worth a backup is: the licence files that clients gave. */
  readonly runDirectory: string
  readonly settings: () => { readonly iourc_path: string; readonly license_check: boolean }
  readonly md5Of: (file: string) => Promise<string | undefined>
  /** Whether a program of this host has an application id; absent: the host is asked. */
  readonly isIdInUse?: (applicationId: number) => boolean
  readonly listener: KindListener
}

/** The iou kind: routers that are programs of this host. */
export class IouKind implements NodeKind {
  readonly kind = 'iou'
  readonly stopGraceMs = 3000
  readonly #options: IouOptions
  readonly #ids: ApplicationIds
  readonly #watches = new Map<string, () => void>()
  /** Nodes whose next start takes any licence file. */
  readonly #unchecked = new Set<string>()

  constructor(options: IouOptions) {
    this.#options = options
    this.#ids = new ApplicationIds(options.isIdInUse)
  }

  readonly identity: HostIdentity = {
    isTaken: (node) => hasInstance(propertiesOf(node).application_id),
    change: (node) => {
      const before = propertiesOf(node)
      const application_id = this.#ids.change(node.key)
      node.record.properties = { ...before, application_id }
      const message =
        `${node.record.name}: another program of this host has the application id ${before.application_id}; ` +
        `it is ${application_id} now, and the MAC addresses of the router follow it`
      return { type: 'log.warning', message }
    },
  }

  /** Ethernet adapters first, then serial ones, four ports each. */
  ports(record: NodeRecord): readonly PortRef[] {
    const { ethernet_adapters, serial_adapters } = propertiesOf({ record })
    return Array.from({ length: (ethernet_adapters + serial_adapters) * unitsOfBay }, (_, index) => ({
      adapter: Math.floor(index / unitsOfBay),
      port: index % unitsOfBay,
    }))
  }

  lineOf(record: NodeRecord, { adapter }: PortRef): Line {
    return adapter < propertiesOf({ record }).ethernet_adapters ? 'ethernet' : 'serial'
  }

  netioOf(record: NodeRecord, port: PortRef): NetioPort {
    const { application_id } = propertiesOf({ record })
    return {
      application_id,
      port: port.adapter + port.port * mostBays,
      ethernet: this.lineOf(record, port) === 'ethernet',
    }
  }

  consolePool(type: NodeRecord['console_type']): Pool | undefined {
    return type === 'telnet' ? 'console' : undefined
  }

  properties({ key }: KindNode): Record<string, unknown> {
    return { ...fitting({}), application_id: this.#ids.take(key) }
  }

  restored(properties: Record<string, unknown>, { key }: KindNode): Record<string, unknown> {
    const stored = fitting(properties)
    return { ...stored, application_id: this.#ids.take(key, stored.application_id) }
  }

  /** Not the configurations: what a saved lab holds counts. */
  claimed({ node_id: _, startup_config_content: __, private_config_content: ___, ...changes }: IouCreate): IouUpdate {
    return changes
  }

  async prepare(node: KindNode, input: IouCreate): Promise<void> {
    await this.#apply(node, input, { isNew: true })
    const { name } = node.record
    await createConfig(node.directory, startupConfigName, input.startup_config_content ?? null, name)
    await createConfig(node.directory, privateConfigName, input.private_config_content ?? null, name)
  }

  async update(node: KindNode, changes: IouUpdate, before: string): Promise<void> {
    // What it has stored just now is not lost to what is older than that.
    await this.commit(node)
    await this.#apply(node, changes, { isNew: false })
    const { name } = node.record
    const { startup_config_content, private_config_content } = changes
    if (startup_config_content != null) {
      const isNew = await updateConfig(node.directory, startupConfigName, startup_config_content, name)
      if (isNew) await removeVlans(node.directory)
    } else if (before !== name) await renameInConfig(node.directory, before, name)
    if (private_config_content != null)
      await updateConfig(node.directory, privateConfigName, private_config_content, name)
  }

  async launch(node: KindNode): Promise<Launch> {
    const { record, directory } = node
    const properties = propertiesOf(node)
    const { application_id, nvram } = properties
    const image = await this.#imageOf(node)
    const facts = await imageFactsOf(image)
    const licence = await this.#licenceOf(node)
    await adoptFiles(directory, application_id)
    await translated(netmapName, () => writeFile(join(directory, netmapName), netmapText(application_id)))
    const size = properties.use_default_iou_values ? (facts.defaultNvram ?? nvram) : nvram
    const warnings = [...(await pushConfigs(directory, application_id, size)), hostnameWarning(hostname())]
    const args = commandLine({ settings: properties, facts, applicationId: application_id })
    // Images look at the path they are started by; one in the directory of the node is always short and plain.
    const link = join(directory, basename(image))
    await translated('The link to the image', async () => {
      await rm(link, { force: true })
      await symlink(image, link)
    })
    const notices = warnings
      .filter((warning) => warning !== undefined)
      .map((warning): Happening => ({ type: 'log.warning', message: `${record.name}: ${warning}` }))
    return {
      command_line: [link, ...args].join(' '),
      notices,
      run: {
        type: 'process',
        command: link,
        args,
        cwd: directory,
        log: join(directory, logName),
        stdio: 'pipe',
        env: { IOURC: licence },
      },
    }
  }

  view(node: KindNode): IouNode {
    const { record, directory, projectId, status } = node
    const { sum, ...settings } = propertiesOf(node)
    return {
      node_id: record.node_id,
      project_id: projectId,
      name: record.name,
      node_directory: directory,
      status,
      console: record.console,
      console_type: record.console_type === 'none' ? 'none' : 'telnet',
      command_line: record.command_line,
      status_reason: record.status_reason,
      ...settings,
      md5sum: sum.image === settings.path ? sum.md5 : null,
      startup_config: namedConfig(directory, startupConfigName),
      private_config: namedConfig(directory, privateConfigName),
      iourc_path: licencePath(this.#licencePlaces(node)),
    }
  }

  async duplicate(source: KindNode, { record, directory }: KindNode, copy: () => Promise<void>): Promise<void> {
    const { application_id } = record.properties as unknown as IouProperties
    // What it has stored just now is in the copy too.
    await this.commit(source)
    await copy()
    record.properties = { ...source.record.properties, application_id }
    await adoptFiles(directory, application_id)
    await renameInConfig(directory, source.record.name, record.name)
  }

  /** What a start brings along; `license_check` holds for that start only. */
  async starting(node: KindNode, { iourc_content, license_check }: IouStart): Promise<void> {
    if (iourc_content != null) await writeLicence(this.#ownPlace(node), iourc_content)
    if (license_check === false) this.#unchecked.add(node.key)
    else this.#unchecked.delete(node.key)
  }

  /** What the router has stored, else what its files say. */
  async configs(node: KindNode): Promise<IouConfigs> {
    const { directory } = node
    const stored = await storedConfigs(directory, propertiesOf(node).application_id).catch(() => undefined)
    const startup = stored?.startup ?? (await readConfig(directory, startupConfigName))
    const secret = stored?.private ?? (await readConfig(directory, privateConfigName))
    return {
      ...(startup ? { startup_config_content: startup } : {}),
      ...(secret ? { private_config_content: secret } : {}),
    }
  }

  async saveConfigs(node: KindNode): Promise<void> {
    await pullConfigs(node.directory, propertiesOf(node).application_id)
  }

  begun(node: KindNode): void {
    const { application_id } = propertiesOf(node)
    this.#watches.get(node.key)?.()
    const look = () => void pullQuietly(node.directory, application_id, true).catch(() => {})
    this.#watches.set(node.key, watchFile(node.directory, nvramName(application_id), look))
  }

  async over(node: KindNode): Promise<void> {
    this.#watches.get(node.key)?.()
    this.#watches.delete(node.key)
    await this.#pull(node)
  }

  /** What one that has ended had stored was read at its end. */
  async commit(node: KindNode): Promise<void> {
    if (node.status !== 'stopped') await this.#pull(node)
  }

  async #pull(node: KindNode): Promise<void> {
    const complaint = await pullQuietly(node.directory, propertiesOf(node).application_id)
    if (complaint === undefined) return
    const message = `${node.record.name}: its configuration could not be read from the NVRAM: ${complaint}`
    this.#options.listener.happened(node.key, { type: 'log.warning', message })
  }

  forget({ key }: KindNode): void {
    this.#watches.get(key)?.()
    this.#watches.delete(key)
    this.#ids.release(key)
    this.#unchecked.delete(key)
  }

  async #apply(node: KindNode, changes: Omit<IouUpdate, 'node_id'>, { isNew }: { isNew: boolean }): Promise<void> {
    const next: IouProperties = { ...propertiesOf(node) }
    for (const field of plainFields) {
      const value = changes[field]
      if (value != null) Object.assign(next, { [field]: value })
    }
    requireBays(next, isNew || (changes.ethernet_adapters != null && changes.serial_adapters != null))
    if (changes.path != null) {
      const { name, file } = await this.#options.library.lookup('iou', changes.path, node.projectPath)
      next.path = name
      next.sum = { image: name, md5: (await this.#options.md5Of(file)) ?? null }
    }
    if (changes.iourc_content != null) await writeLicence(this.#ownPlace(node), changes.iourc_content)
    node.record.properties = next
  }

  async #imageOf(node: KindNode): Promise<string> {
    const { path } = propertiesOf(node)
    return (await this.#options.library.lookup('iou', path, node.projectPath)).file
  }

  async #licenceOf(node: KindNode): Promise<string> {
    const path = await findLicence(this.#licencePlaces(node))
    const { license_check } = this.#options.settings()
    if (license_check && !this.#unchecked.delete(node.key)) await requireLicence(path, hostname())
    return path
  }

  #licencePlaces(node: KindNode): LicencePlaces {
    const { iourc_path } = this.#options.settings()
    const own = join(this.#ownPlace(node), licenceName)
    return { configured: iourc_path || undefined, home: homedir(), directory: node.directory, own }
  }

  #ownPlace({ record }: KindNode): string {
    return join(this.#options.runDirectory, `iou-${record.node_id}`)
  }
}

/** 400 when the request by itself asks for more than a program can have, 409 when it does together with what is there. */
function requireBays({ ethernet_adapters, serial_adapters }: IouProperties, isByItself: boolean): void {
  const bays = ethernet_adapters + serial_adapters
  if (bays <= mostBays) return
  const message =
    `ethernet_adapters and serial_adapters: expected at most ${mostBays} in all, ` +
    `got ${ethernet_adapters} and ${serial_adapters}`
  throw isByItself ? badRequest(message) : conflict(message)
}
