import { randomUUID } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ignore } from '../../../../../src/lib/async/ignore.ts'
import { ApiError, conflict } from '../../../../../src/lib/errors/api-error.ts'
import type { CloneRequest, Vm } from '../driver.ts'
import {
  basesOf,
  type CloneRecord,
  cloneFiles,
  copyVariables,
  createOverlay,
  hasRecord,
  readRecord,
  requireSound,
  writeRecord,
} from './clone-files.ts'
import {
  type CloneDisk,
  type CloneMark,
  disksToOverlay,
  domainNvramName,
  inDirectory,
  makeUnique,
  markOf,
  nvramOf,
  setMark,
  setNvram,
  useOverlays,
} from './clone-xml.ts'
import { ramOf } from './definition.ts'
import type { Domain } from './domain.ts'
import { type Domains, domainStates } from './domains.ts'
import { allowPassage, guestUserIn } from './guest-user.ts'
import { type Element, parseXml, xmlText } from './xml.ts'

/** Linked clones: VMs whose disks are overlays on the disks of a VM of the user. */
export class LibvirtClones {
  readonly #domains: Domains

  constructor(domains: Domains) {
    this.#domains = domains
  }

  async create({ uuid: source, name, directory, clone_uuid: uuid = randomUUID() }: CloneRequest): Promise<Vm> {
    const { disks, original, domain } = await this.#source(source)
    await this.#requireFree(name)
    if (hasRecord(directory)) throw conflict(`${directory} already contains a clone`)
    const created: string[] = []
    try {
      const parent = await mkdir(directory, { recursive: true, mode: 0o700 })
      created.push(...(parent === undefined ? ownFiles(directory, disks) : [parent]))
      await this.#letGuestsIn(directory)
      for (const disk of disks) await createOverlay(disk, directory, await this.#domains.capacity(domain, disk.device))
      const nvram = nvramOf(original)
      if (nvram !== undefined) await copyVariables(nvram.file, directory)
      const record = { uuid, name, source, bases: await basesOf(disks) }
      await writeRecord(directory, record)
      await this.#define(original, disks, directory, record)
      return { uuid, name, ram: ramOf(original), state: 'stopped' }
    } catch (error) {
      // libvirt may have executed a request that timed out.
      const defined = await this.#domains.byUuid(uuid).catch(() => undefined)
      const isLeft = ignore('the leftovers of the kind remove it when libvirt answers')
      if (defined !== undefined) await this.#domains.undefineAll(defined).catch(isLeft)
      for (const path of created) await rm(path, { recursive: true, force: true })
      throw asApiError(error)
    }
  }

  /** Defines the clone in a directory, if libvirt does not know it. */
  async open(uuid: string, directory: string): Promise<Domain> {
    const record = await readRecord(directory, uuid)
    try {
      await this.#letGuestsIn(directory)
      const present = await this.#domains.byUuid(uuid)
      return await (present === undefined ? this.#redefine(record, directory) : this.#move(present, directory))
    } catch (error) {
      throw asApiError(error)
    }
  }

  /** Undefines a clone, unless it is saved, because libvirt would delete the saved memory. */
  async close(clone: Domain): Promise<void> {
    await this.#marked(clone)
    await this.#end(clone)
    if (!(await this.#domains.hasManagedSave(clone))) await this.#domains.undefine(clone)
  }

  async remove(clone: Domain): Promise<void> {
    const { directory, bases } = await this.#marked(clone)
    await this.#end(clone)
    await this.#domains.undefineAll(clone)
    for (const file of ownFiles(directory, bases)) await rm(file, { force: true })
  }

  async rename(clone: Domain, name: string): Promise<void> {
    const { directory, source, bases } = await this.#marked(clone)
    if ((await this.#domains.state(clone)) !== domainStates.shutoff)
      throw conflict(`"${clone.name}" is running: stop the node before it is renamed`)
    if (await this.#domains.hasManagedSave(clone))
      throw conflict(`"${clone.name}" has a saved state under its name: start and stop the node before it is renamed`)
    if (name === clone.name) return
    await this.#requireFree(name)
    await this.#domains.rename(clone, name)
    await writeRecord(directory, { uuid: clone.uuid, name, source, bases: [...bases] })
  }

  /** The metadata of a clone; 409 for a VM of the user. */
  async #marked(domain: Domain): Promise<CloneMark> {
    const mark = markOf(parseXml(await this.#domains.definition(domain)))
    if (mark === undefined) throw conflict(`"${domain.name}" is not a clone of a node`)
    return mark
  }

  async #define(
    original: Element,
    disks: readonly CloneDisk[],
    directory: string,
    record: CloneRecord,
  ): Promise<Domain> {
    useOverlays(disks, directory)
    const nvram = nvramOf(original)
    if (nvram !== undefined) setNvram(nvram.element, join(directory, domainNvramName))
    makeUnique(original, record)
    setMark(original, { directory, source: record.source, bases: record.bases })
    return this.#domains.define(xmlText(original))
  }

  /** Defines a clone again, from the present definition of its source. */
  async #redefine(record: CloneRecord, directory: string): Promise<Domain> {
    await this.#requireFree(record.name)
    const source = await this.#domains.byUuid(record.source)
    if (source === undefined) throw conflict(`"${record.name}" is a clone of a VM that no longer exists`)
    const original = parseXml(await this.#domains.definition(source))
    const disks = disksToOverlay(original)
    const written = new Map(record.bases.map((it) => [it.device, it.written]))
    const bases = disks.map(({ device, file }) => ({ device, file, written: written.get(device) ?? '' }))
    await requireSound({ directory, source: record.source, bases }, record.name)
    return this.#define(original, disks, directory, { ...record, bases })
  }

  /** Changes the paths of a defined clone whose directory was moved. */
  async #move(clone: Domain, directory: string): Promise<Domain> {
    const mark = await this.#marked(clone)
    if (mark.directory === directory) return clone
    if ((await this.#domains.state(clone)) !== domainStates.shutoff)
      throw conflict(`"${clone.name}" runs in ${mark.directory}: it cannot be moved`)
    if (await this.#domains.hasManagedSave(clone)) {
      const saved = await this.#domains.managedSaveXml(clone)
      await this.#domains.defineManagedSaveXml(clone, inDirectory(saved, directory))
    }
    return this.#domains.define(inDirectory(await this.#domains.definition(clone), directory))
  }

  /** The source of a clone; 409 unless it is shut off. */
  async #source(uuid: string): Promise<{ domain: Domain; original: Element; disks: CloneDisk[] }> {
    const domain = await this.#domains.byUuid(uuid)
    if (domain === undefined) throw conflict('The VM to clone no longer exists')
    const { name } = domain
    if ((await this.#domains.state(domain)) !== domainStates.shutoff)
      throw conflict(
        `"${name}" is running: shut it down before it is cloned, or its disks would change below the clone`,
      )
    if (await this.#domains.hasManagedSave(domain))
      throw conflict(`"${name}" is saved with its memory: start it and shut it down before it is cloned`)
    const original = parseXml(await this.#domains.definition(domain))
    return { domain, original, disks: disksToOverlay(original) }
  }

  async #requireFree(name: string): Promise<void> {
    if ((await this.#domains.byName(name)) === undefined) return
    throw conflict(`A VM with the name "${name}" already exists`)
  }

  async #letGuestsIn(directory: string): Promise<void> {
    const user = guestUserIn(await this.#domains.capabilities())
    if (user !== undefined && user.uid !== process.getuid?.()) await allowPassage(directory, user)
  }

  async #end(clone: Domain): Promise<void> {
    if ((await this.#domains.state(clone)) !== domainStates.shutoff) await this.#domains.destroy(clone)
  }
}

const ownFiles = (directory: string, disks: readonly { readonly device: string }[]): string[] =>
  cloneFiles(disks.map(({ device }) => device)).map((name) => join(directory, name))

function asApiError(error: unknown): unknown {
  if (error instanceof ApiError) return error
  return conflict(`The clone cannot be created or opened: ${(error as Error).message}`, { cause: error })
}
