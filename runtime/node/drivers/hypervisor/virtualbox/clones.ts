import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ignore } from '../../../../../src/lib/async/ignore.ts'
import { conflict } from '../../../../../src/lib/errors/api-error.ts'
import { Revert } from '../../../../../src/lib/revert.ts'
import { withDiskErrors } from '../../../engine/storage/disk.ts'
import { makeDirectory } from '../../../engine/storage/durable-file.ts'
import type { CloneRequest } from '../driver.ts'
import { findSettings, isOverlay, isWithin, readDiskTable, removeDiskTable, writeDiskTable } from './clone-files.ts'
import type { AttachedDisk, Snapshot, VirtualBoxVm } from './machine.ts'
import { cloneMark, type Machines } from './machines.ts'

const baseName = 'Patchbay linked base'
/** Snapshots that clones may be based on; the second name is that of GNS3. */
const baseNames = [baseName, 'GNS3 Linked Base for clones']

/** Linked clones, each in the directory of its node. */
export class VirtualBoxClones {
  readonly #machines: Machines
  /** Clones under creation; they are registered before they are marked. */
  readonly #creating = new Set<string>()

  constructor(machines: Machines) {
    this.#machines = machines
  }

  async isClone(uuid: string): Promise<boolean> {
    return this.#creating.has(uuid) || (await this.#machines.isClone(uuid))
  }

  /** Creates a clone; a failure leaves nothing behind. */
  async create(
    source: VirtualBoxVm,
    { name, directory, clone_uuid: uuid = randomUUID() }: CloneRequest,
  ): Promise<VirtualBoxVm> {
    await this.#requireFreeName(name)
    await withDiskErrors('The directory of a clone', () => makeDirectory(directory))
    this.#creating.add(uuid)
    try {
      await using revert = new Revert(ignore('the client gets the first error'))
      const known = source.snapshots.find((each) => baseNames.includes(each.name))
      const base = known ?? (await this.#takeBase(source))
      if (known === undefined) revert.add(() => this.#machines.run('snapshot', source.uuid, 'delete', base.uuid))
      revert.add(() => this.#removeRest(uuid, directory))
      await this.#machines.run(
        ...['clonevm', source.uuid, '--snapshot', base.uuid, '--options', 'link', '--name', name],
        ...['--basefolder', directory, '--uuid', uuid, '--register'],
      )
      await this.#machines.run('setextradata', uuid, cloneMark, 'yes')
      await this.#machines.run('snapshot', uuid, 'take', 'reset')
      const clone = await this.#machines.get(uuid)
      revert.commit()
      return clone
    } finally {
      this.#creating.delete(uuid)
    }
  }

  async rename(clone: VirtualBoxVm, name: string): Promise<void> {
    if (name === clone.name) return
    requireStopped(clone)
    await this.#requireClone(clone)
    await this.#requireFreeName(name)
    await this.#machines.modify(clone.uuid, ['--name', name])
  }

  /** Registers the clone in a directory, and attaches the disks that were detached when it was closed. */
  async open(uuid: string, directory: string): Promise<VirtualBoxVm> {
    let clone = await this.#machines.find(uuid)
    if (clone === undefined) {
      const file = await findSettings(directory, uuid)
      if (file === undefined) throw conflict(`The VM ${uuid} is no longer in the directory of its node`)
      await this.#machines.run('registervm', file)
      clone = await this.#machines.get(uuid)
    }
    if (!isWithin(directory, clone.file)) throw conflict(`VirtualBox has the VM ${uuid} in another directory`)
    const attached = new Set(clone.disks.map(slotOf))
    const missing = (await readDiskTable(clone.file)).filter((disk) => !attached.has(slotOf(disk)))
    for (const disk of missing) await this.#attach(uuid, disk, disk.file)
    await withDiskErrors('The list of the disks of a clone', () => removeDiskTable(clone.file))
    return missing.length > 0 ? await this.#machines.get(uuid) : clone
  }

  /** Unregisters the clone; its files stay. */
  async close(clone: VirtualBoxVm): Promise<void> {
    requireStopped(clone)
    await this.#requireClone(clone)
    // Disks of a saved VM cannot be detached, and need not be.
    if (clone.state === 'stopped') await this.#detach(clone)
    await this.#machines.run('unregistervm', clone.uuid)
  }

  /** Unregisters the clone and deletes its directory. */
  async remove(clone: VirtualBoxVm): Promise<void> {
    requireStopped(clone)
    await this.#requireClone(clone)
    await this.#machines.run('unregistervm', clone.uuid)
    await this.#delete(dirname(clone.file))
  }

  /** Unregisters the disks below a directory whose files are missing. */
  async forgetMissingDisks(directory: string): Promise<void> {
    const missing = (await this.#machines.disks()).filter((disk) => !disk.isAccessible)
    await this.#closeDisks(missing.map(({ file }) => file).filter((file) => isWithin(directory, file)))
  }

  /** Unregisters disks, overlays before their bases. */
  async #closeDisks(files: readonly string[]): Promise<void> {
    for (const file of files.toReversed())
      await this.#machines.run('closemedium', 'disk', file).catch(ignore('a disk of another VM stays'))
  }

  /** Detaches the overlays of a clone, so that VirtualBox can unregister the clone. */
  async #detach(clone: VirtualBoxVm): Promise<void> {
    const known = new Set((await this.#machines.disks()).map(({ file }) => file))
    const overlays = clone.disks.filter(({ file }) => known.has(file) && isOverlay(clone.file, file))
    if (overlays.length === 0) return
    await withDiskErrors('The list of the disks of a clone', () => writeDiskTable(clone.file, overlays))
    for (const disk of overlays) await this.#attach(clone.uuid, disk, 'none')
  }

  async #attach(uuid: string, { controller, port, device }: AttachedDisk, medium: string): Promise<void> {
    await this.#machines.run(
      ...['storageattach', uuid, '--storagectl', controller, '--port', String(port), '--device', String(device)],
      ...['--type', 'hdd', '--medium', medium],
    )
  }

  /** Takes a snapshot of the source, because VirtualBox clones snapshots only. */
  async #takeBase(source: VirtualBoxVm): Promise<Snapshot> {
    requireStopped(source)
    await this.#machines.run('snapshot', source.uuid, 'take', baseName)
    const { snapshots } = await this.#machines.get(source.uuid)
    const base = snapshots.find((each) => each.name === baseName)
    if (base === undefined)
      throw conflict(`VirtualBox did not take a snapshot of the VM ${JSON.stringify(source.name)}`)
    return base
  }

  /** Removes what is left of a failed clone. */
  async #removeRest(uuid: string, directory: string): Promise<void> {
    const clone = await this.#machines.find(uuid)
    if (clone !== undefined) await this.#machines.run('unregistervm', uuid)
    const file = clone?.file ?? (await findSettings(directory, uuid))
    if (file !== undefined && isWithin(directory, file)) await this.#delete(dirname(file))
  }

  async #delete(directory: string): Promise<void> {
    const files = (await this.#machines.disks()).map(({ file }) => file)
    await this.#closeDisks(files.filter((file) => isWithin(directory, file)))
    await withDiskErrors('The files of a clone', () => rm(directory, { recursive: true, force: true }))
  }

  async #requireClone({ uuid, name }: VirtualBoxVm): Promise<void> {
    if (!(await this.#machines.isClone(uuid)))
      throw conflict(`The VM ${JSON.stringify(name)} is not a clone made by Patchbay`)
  }

  async #requireFreeName(name: string): Promise<void> {
    if (/\p{Cc}/u.test(name)) throw conflict('The name of a VM cannot contain control characters')
    const listed = await this.#machines.list()
    if (listed.some((each) => each.name === name)) throw conflict(`A VM ${JSON.stringify(name)} already exists`)
  }
}

const slotOf = ({ controller, port, device }: AttachedDisk) => `${controller}-${port}-${device}`

function requireStopped({ name, state }: VirtualBoxVm): void {
  if (state === 'stopped' || state === 'saved') return
  throw conflict(`The VM ${JSON.stringify(name)} is running: stop it first`)
}
