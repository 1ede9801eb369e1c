import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ignore } from '../../../../../src/async/ignore.ts'
import { conflict } from '../../../../../src/errors/api-error.ts'
import { withDiskErrors } from '../../../storage/disk.ts'
import { makeDirectory } from '../../../storage/durable-file.ts'
import type { CloneWanted } from '../driver.ts'
import { findSettings, isOverlay, isWithin, readDiskTable, removeDiskTable, writeDiskTable } from './clone-files.ts'
import type { AttachedDisk, Snapshot, VirtualBoxVm } from './machine.ts'
import { cloneMark, type Machines } from './machines.ts'

const baseName = 'Patchbay linked base'
/** What clones may be overlays of; the second was made by the program before us. */
const baseNames = [baseName, 'GNS3 Linked Base for clones']

/** Machines that are overlays of others, each in the directory of its node. */
export class Clones {
  readonly #machines: Machines
  /** Being made: registered before they are marked. */
  readonly #making = new Set<string>()

  constructor(machines: Machines) {
    this.#machines = machines
  }

  async isClone(uuid: string): Promise<boolean> {
    return this.#making.has(uuid) || (await this.#machines.isClone(uuid))
  }

  /** A clone of a machine; what is made is undone when it fails. */
  async make(
    source: VirtualBoxVm,
    { name, directory, clone_uuid: uuid = randomUUID() }: CloneWanted,
  ): Promise<VirtualBoxVm> {
    await this.#requireFreeName(name)
    await withDiskErrors('The directory of a clone', () => makeDirectory(directory))
    const known = source.snapshots.find((each) => baseNames.includes(each.name))
    const base = known ?? (await this.#takeBase(source))
    this.#making.add(uuid)
    try {
      await this.#machines.run(
        ...['clonevm', source.uuid, '--snapshot', base.uuid, '--options', 'link', '--name', name],
        ...['--basefolder', directory, '--uuid', uuid, '--register'],
      )
      await this.#machines.run('setextradata', uuid, cloneMark, 'yes')
      await this.#machines.run('snapshot', uuid, 'take', 'reset')
      return await this.#machines.get(uuid)
    } catch (error) {
      await this.#undo(uuid, directory)
      if (known === undefined)
        await this.#machines
          .run('snapshot', source.uuid, 'delete', base.uuid)
          .catch(ignore('the next clone is made from the same snapshot'))
      throw error
    } finally {
      this.#making.delete(uuid)
    }
  }

  async rename(clone: VirtualBoxVm, name: string): Promise<void> {
    if (name === clone.name) return
    requireStopped(clone)
    await this.#requireClone(clone)
    await this.#requireFreeName(name)
    await this.#machines.modify(clone.uuid, ['--name', name])
  }

  /** Makes the clone in a directory known again, with the disks that were taken out when it was closed. */
  async open(uuid: string, directory: string): Promise<VirtualBoxVm> {
    let clone = await this.#machines.find(uuid)
    if (clone === undefined) {
      const file = await findSettings(directory, uuid)
      if (file === undefined) throw conflict(`The VM ${uuid} is not in the directory of its node any more`)
      await this.#machines.run('registervm', file)
      clone = await this.#machines.get(uuid)
    }
    if (!isWithin(directory, clone.file)) throw conflict(`VirtualBox has the VM ${uuid} in another directory`)
    const wanted = await readDiskTable(clone.file)
    const there = new Set(clone.disks.map(placeOf))
    const missing = wanted.filter((disk) => !there.has(placeOf(disk)))
    for (const disk of missing) await this.#attach(uuid, disk, disk.file)
    await withDiskErrors('The list of the disks of a clone', () => removeDiskTable(clone.file))
    return missing.length > 0 ? await this.#machines.get(uuid) : clone
  }

  /** The manager forgets it; its files stay. */
  async close(clone: VirtualBoxVm): Promise<void> {
    requireStopped(clone)
    await this.#requireClone(clone)
    // Nothing of one whose memory is saved can be changed, and nothing needs to be.
    if (clone.state === 'stopped') await this.#takeOut(clone)
    await this.#machines.run('unregistervm', clone.uuid)
  }

  /** The manager forgets it, and its files are deleted: only those in its own directory. */
  async remove(clone: VirtualBoxVm): Promise<void> {
    requireStopped(clone)
    await this.#requireClone(clone)
    await this.#machines.run('unregistervm', clone.uuid)
    await this.#delete(dirname(clone.file))
  }

  /** Forgets the disks below a directory whose files are not there. */
  async forgetMissingDisks(directory: string): Promise<void> {
    const missing = (await this.#machines.disks()).filter((disk) => !disk.isAccessible)
    await this.#forgetDisks(missing.map(({ file }) => file).filter((file) => isWithin(directory, file)))
  }

  /** Overlays first: a disk that has some cannot be forgotten. */
  async #forgetDisks(files: readonly string[]): Promise<void> {
    for (const file of files.toReversed())
      await this.#machines.run('closemedium', 'disk', file).catch(ignore('a disk that another machine has stays'))
  }

  /** The overlays of the clone out of its drives, so that VirtualBox forgets it without them. */
  async #takeOut(clone: VirtualBoxVm): Promise<void> {
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

  /** VirtualBox makes overlays of snapshots only, so the machine has one more from now on. */
  async #takeBase(source: VirtualBoxVm): Promise<Snapshot> {
    requireStopped(source)
    await this.#machines.run('snapshot', source.uuid, 'take', baseName)
    const { snapshots } = await this.#machines.get(source.uuid)
    const base = snapshots.find((each) => each.name === baseName)
    if (base === undefined)
      throw conflict(`VirtualBox did not take a snapshot of the VM ${JSON.stringify(source.name)}`)
    return base
  }

  /** What there is of a clone that did not come to be. Never rejects, for the first failure is the one to be told. */
  async #undo(uuid: string, directory: string): Promise<void> {
    try {
      const clone = await this.#machines.find(uuid)
      if (clone !== undefined) await this.#machines.run('unregistervm', uuid)
      const file = clone?.file ?? (await findSettings(directory, uuid))
      if (file !== undefined && isWithin(directory, file)) await this.#delete(dirname(file))
    } catch {
      // Nothing more can be done about it.
    }
  }

  async #delete(directory: string): Promise<void> {
    const files = (await this.#machines.disks()).map(({ file }) => file)
    await this.#forgetDisks(files.filter((file) => isWithin(directory, file)))
    await withDiskErrors('The files of a clone', () => rm(directory, { recursive: true, force: true }))
  }

  async #requireClone({ uuid, name }: VirtualBoxVm): Promise<void> {
    if (!(await this.#machines.isClone(uuid))) throw conflict(`The VM ${JSON.stringify(name)} is not a clone of ours`)
  }

  async #requireFreeName(name: string): Promise<void> {
    if (/\p{Cc}/u.test(name)) throw conflict('The name of a VM cannot hold control characters')
    const listed = await this.#machines.list()
    if (listed.some((each) => each.name === name)) throw conflict(`There is a VM ${JSON.stringify(name)} already`)
  }
}

const placeOf = ({ controller, port, device }: AttachedDisk) => `${controller}-${port}-${device}`

function requireStopped({ name, state }: VirtualBoxVm): void {
  if (state === 'stopped' || state === 'saved') return
  throw conflict(`The VM ${JSON.stringify(name)} runs: stop it first`)
}
