import { createHash } from 'node:crypto'
import { chmod, mkdir, readdir, readFile, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { mustRun } from '../../../../runtime/node/engine/images/qemu-img.ts'
import { requireLibvirt } from '../../../support/libvirt.ts'
import { freePort } from '../../../support/ports.ts'
import { requireRoot } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'
import { counting, writing } from '../qemu/boot-sectors.ts'
import { ideDisk, pcDefinition, workstation } from './libvirt-definitions.ts'
import { consoleOf, countOf, LibvirtLab, later, planOf, sharedLibvirt } from './libvirt-lab.ts'

const libvirt = sharedLibvirt()

const sumOf = async (path: string) =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex')

/** A VM of the user, and where nodes have their directories, which nobody but us may enter. */
class CloneLab {
  readonly lab: LibvirtLab
  readonly disk: string
  readonly data: string

  private constructor(lab: LibvirtLab, disk: string) {
    this.lab = lab
    this.disk = disk
    this.data = join(lab.directory, 'data')
  }

  static async create(sector: Buffer, devices = ''): Promise<CloneLab> {
    const lab = await LibvirtLab.create(libvirt())
    const self = new CloneLab(lab, await lab.disk(sector))
    await chmod(self.disk, 0o600)
    await mkdir(self.data, { mode: 0o700 })
    await libvirt().define(pcDefinition({ ...lab, devices: ideDisk(self.disk) + devices }))
    return self
  }

  /** The wish for a clone of that name. */
  wish(name: string) {
    const { uuid, name: of } = this.lab
    return { uuid, name: `${of}-${name}`, directory: join(this.data, name) }
  }
}

describeWith(requireLibvirt(), requireRoot())('a clone of a VM', () => {
  test('writes to overlays of its own, and is gone when it is removed', async () => {
    const source = await CloneLab.create(writing)
    const { driver, uuid } = source.lab
    const [before, sum] = [await source.lab.definition(), await sumOf(source.disk)]
    const wish = source.wish('one')
    const clone = await driver.clone(wish)
    expect(clone).toMatchObject({ name: wish.name, ram: 32, state: 'stopped' })
    expect((await driver.list()).map((vm) => vm.uuid)).not.toContain(clone.uuid)
    await expect(driver.find(wish.name)).rejects.toMatchObject({ status: 409 })

    const plan = planOf({ adapters: 1 })
    const console = consoleOf(plan)
    await driver.start(clone.uuid, plan)
    await (await console).shows('w')
    await driver.removeClone(clone.uuid)
    expect(await driver.get(clone.uuid)).toBeUndefined()
    expect(await readdir(wish.directory)).toEqual([])
    expect(await sumOf(source.disk)).toBe(sum)
    expect(await source.lab.definition()).toBe(before)
    await expect(driver.removeClone(uuid)).rejects.toThrow('is not a clone of a node')
    expect(await driver.get(uuid)).toMatchObject({ state: 'stopped' })
  })

  test('can be unregistered and registered again, with its saved state', async () => {
    const source = await CloneLab.create(counting)
    const { driver } = source.lab
    const wish = source.wish('one')
    const { uuid } = await driver.clone(wish)
    const plan = planOf({ adapters: 1 })
    await driver.start(uuid, plan)
    expect(await countOf(plan)).toBe('a')
    await driver.stop(uuid, 'save_vm_state')
    expect(await driver.get(uuid)).toMatchObject({ state: 'saved' })
    await expect(driver.renameClone(uuid, 'other')).rejects.toMatchObject({ status: 409 })

    // With it would go its memory.
    await driver.closeClone(uuid)
    expect(await driver.get(uuid)).toMatchObject({ state: 'saved' })
    const moved = join(source.data, 'moved')
    await rename(wish.directory, moved)
    expect(await driver.openClone(uuid, moved)).toMatchObject({ uuid, name: wish.name, state: 'saved' })
    const next = planOf({ adapters: 1 })
    await driver.start(uuid, next)
    expect(await countOf(next)).toEqual(later)
    await driver.closeClone(uuid)
    await driver.closeClone(uuid)
    expect(await driver.get(uuid)).toBeUndefined()

    await rename(moved, wish.directory)
    expect(await driver.openClone(uuid, wish.directory)).toMatchObject({ uuid, name: wish.name, state: 'stopped' })
    expect(await driver.openClone(uuid, wish.directory)).toMatchObject({ uuid })
    await expect(driver.openClone(uuid, source.data)).rejects.toMatchObject({ status: 409 })
    await expect(driver.clone(wish)).rejects.toMatchObject({ status: 409 })
    await driver.start(uuid, next)
    expect(await countOf(next)).toBe('a')
    await driver.removeClone(uuid)
    expect(await readdir(wish.directory)).toEqual([])
  })

  test('has a unique name', async () => {
    const source = await CloneLab.create(counting)
    const { driver, name } = source.lab
    const one = await driver.clone(source.wish('one'))
    const taken = { ...source.wish('two'), name: one.name }
    const there = { status: 409, message: `A VM with the name "${one.name}" already exists` }
    await expect(driver.clone(taken)).rejects.toMatchObject(there)
    await expect(stat(taken.directory)).rejects.toMatchObject({ code: 'ENOENT' })
    const two = await driver.clone(source.wish('two'))
    await expect(driver.renameClone(two.uuid, one.name)).rejects.toMatchObject(there)
    await driver.start(two.uuid, planOf())
    await expect(driver.renameClone(two.uuid, 'other')).rejects.toMatchObject({ status: 409 })
    await driver.stop(two.uuid, 'power_off')
    await driver.renameClone(two.uuid, `${name}-three`)
    expect(await driver.get(two.uuid)).toMatchObject({ name: `${name}-three`, state: 'stopped' })
    await driver.closeClone(two.uuid)
    expect(await driver.openClone(two.uuid, source.wish('two').directory)).toMatchObject({ name: `${name}-three` })
  })

  test('is not made while the VM runs, or of a disk that cannot have an overlay', async () => {
    const source = await CloneLab.create(counting)
    const { driver, uuid, name } = source.lab
    await driver.start(uuid, planOf())
    const message = expect.stringContaining(`"${name}" is running: shut it down before it is cloned`)
    await expect(driver.clone(source.wish('one'))).rejects.toMatchObject({ status: 409, message })
    await driver.stop(uuid, 'save_vm_state')
    await expect(driver.clone(source.wish('one'))).rejects.toThrow('is saved with its memory')
    await libvirt().virsh('managedsave-remove', name)
    const block = "<disk type='block' device='disk'><source dev='/dev/zero'/><target dev='vdb'/></disk>"
    await libvirt().define(pcDefinition({ ...source.lab, devices: ideDisk(source.disk) + block }))
    await expect(driver.clone(source.wish('one'))).rejects.toThrow('its disk vdb is not a file (block)')
    const lost = join(source.data, 'lost.img')
    await libvirt().define(pcDefinition({ ...source.lab, devices: ideDisk(lost) }))
    await expect(driver.clone(source.wish('one'))).rejects.toMatchObject({ status: 409 })
    expect(await readdir(source.data)).toEqual([])
  })

  test('does not start when its base has been written since', async () => {
    const source = await CloneLab.create(counting)
    const { driver } = source.lab
    const { uuid } = await driver.clone(source.wish('one'))
    await utimes(source.disk, new Date(), new Date())
    await expect(driver.start(uuid, planOf())).rejects.toMatchObject({
      status: 409,
      message: expect.stringContaining(`${source.disk}, which was written since: create the node again`),
    })
  })

  test('has only the disks that it was made with, also when other files are in its directory', async () => {
    const source = await CloneLab.create(counting)
    const { driver, uuid: of } = source.lab
    const { directory, ...wish } = source.wish('one')
    const { uuid } = await driver.clone({ ...wish, directory })
    const start = () => driver.start(uuid, planOf())
    const [overlay, variables, record] = ['hda.qcow2', 'nvram.fd', 'clone.json'].map((name) => join(directory, name))
    if (overlay === undefined || variables === undefined || record === undefined) throw new Error('no names')
    await symlink('/etc/hostname', variables)
    await expect(start()).rejects.toThrow('nvram.fd of the clone is not a regular file, or has hard links')
    await rm(variables)
    await rm(overlay)
    await expect(start()).rejects.toThrow('The disk hda.qcow2 of the clone is missing')
    const create = ['create', '-q', '-f', 'qcow2', '-u']
    await mustRun('a disk', 'qemu-img', [...create, '-F', 'raw', '-b', '/etc/hostname', overlay, '1M'])
    await expect(start()).rejects.toThrow('is not the overlay on')
    const outside = join(source.lab.directory, 'outside')
    const base = ['-F', 'raw', '-b', source.disk]
    await mustRun('a disk', 'qemu-img', ['create', '-q', '-f', 'qcow2', '-o', `data_file=${outside}`, overlay, '1M'])
    await mustRun('a disk', 'qemu-img', ['rebase', '-u', '-f', 'qcow2', ...base, overlay])
    await expect(start()).rejects.toMatchObject({ status: 409 })
    await driver.closeClone(uuid)
    await expect(driver.openClone(uuid, directory)).rejects.toMatchObject({ status: 409 })
    for (const text of [
      '{',
      '[]',
      'null',
      JSON.stringify({ uuid, name: 1 }),
      JSON.stringify({ uuid, name: 'x', source: of, bases: [null] }),
    ]) {
      await writeFile(record, text)
      await expect(driver.openClone(uuid, directory)).rejects.toMatchObject({ status: 409 })
    }
    expect(await driver.get(uuid)).toBeUndefined()
  })

  test('has the UEFI variables of the VM as they are, and keeps its CD-ROM', async () => {
    const lab = await LibvirtLab.create(libvirt())
    const disk = join(lab.directory, 'disk.qcow2')
    await mustRun('a disk', 'qemu-img', ['create', '-q', '-f', 'qcow2', disk, '64M'])
    await libvirt().define(workstation(lab))
    const before = await lab.definition()
    const { driver, uuid } = lab
    const plan = planOf({ adapters: 3, useAnyAdapter: true, ram: 96 })
    await driver.start(uuid, { ...plan, screen: { host: '127.0.0.1', port: freePort() } })
    await driver.stop(uuid, 'power_off')
    expect(await lab.definition()).toBe(before)

    const directory = join(lab.directory, 'clone')
    const { uuid: clone } = await driver.clone({ uuid, name: `${lab.name}-clone`, directory })
    expect(await sumOf(join(directory, 'nvram.fd'))).toBe(await sumOf(join(lab.directory, 'variables.fd')))
    const definition = await libvirt().virsh('dumpxml', '--inactive', `${lab.name}-clone`)
    expect(definition).toContain(`>${join(directory, 'nvram.fd')}</nvram>`)
    expect(definition).toContain(`<source file='${join(directory, 'vda.qcow2')}'/>`)
    expect(definition).not.toContain('52:54:00:12:34:56')
    await driver.start(clone, plan)
    await driver.removeClone(clone)
    expect(await readdir(directory)).toEqual([])
  })
})
