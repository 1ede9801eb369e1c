import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { MachineProperties } from '../../../../runtime/node/drivers/qemu/properties.ts'
import { parseOrDefault } from '../../../../runtime/node/engine/nodes/record.ts'
import { hangMs } from '../../../support/limits.ts'
import { requireProgram } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'
import { counting, writing } from './boot-sectors.ts'
import { sharedAgent } from './machine-agent.ts'
import { pidsOf } from './machine-lab.ts'
import { qemuName } from './qemu-process.ts'

const md5Of = async (path: string) =>
  createHash('md5')
    .update(await readFile(path))
    .digest('hex')

const needsQemu = requireProgram(qemuName)

describeWith(needsQemu)('the record of a machine', () => {
  const newLab = sharedAgent()

  test('has the checksums of its images, and of another image of the same name after the next start', async () => {
    const lab = await newLab()
    const { nodes } = lab.agent
    const image = await lab.image('disk.img', counting)
    const hda_disk_image_md5sum = await md5Of(lab.imagePath(image))
    const machine = await lab.machine({ hda_disk_image: image, cdrom_image: image, hda_disk_image_md5sum: 'x' })
    const known = { hda_disk_image_md5sum, cdrom_image_md5sum: hda_disk_image_md5sum, bios_image_md5sum: null }
    // On a busy host they come a moment later than the machine.
    await expect.poll(() => nodes.get(machine), { timeout: hangMs }).toMatchObject(known)
    await lab.image('disk.img', writing)
    const another = await md5Of(lab.imagePath(image))
    const feed = await lab.payloads()
    await nodes.start(machine)
    const isNews = (node: object) => 'hda_disk_image_md5sum' in node && node.hda_disk_image_md5sum === another
    await feed.until((it) => it.type === 'node.updated' && isNews(it.node))
    expect(await nodes.get(machine)).toMatchObject({ hda_disk_image_md5sum: another, status: 'started' })
    expect((await nodes.update(machine, { cdrom_image: '' })).cdrom_image_md5sum).toBeNull()
  })

  test('that does not fit this version has defaults in place of wrong values', async () => {
    const lab = await newLab()
    const { nodes, projects } = lab.agent
    const machine = await lab.machine({ ram: 24, mac_address: '0c:00:00:00:00:05' })
    const before = await nodes.get(machine)
    await projects.close(machine.project_id)
    const file = join(lab.project.path, `.patchbay/nodes/machine-emulator-${machine.node_id}.json`)
    const record = JSON.parse(await readFile(file, 'utf8'))
    Object.assign(record.properties, { cpus: 'many', adapters: -1, on_close: 'explode', firmware: 'coreboot', sums: 7 })
    Object.assign(record.properties, { later: 'unknown', custom_adapters: [{ adapter_number: 'x' }] })
    await writeFile(file, JSON.stringify(record))
    await projects.create({ project_id: machine.project_id })
    const after = await nodes.get(machine)
    expect(after).toEqual({ ...before, adapters: 1 })
    expect(await nodes.start(machine)).toMatchObject({ status: 'started' })
  })

  test('has all known properties, and no others', () => {
    const defaults = parseOrDefault(MachineProperties)
    expect(parseOrDefault(MachineProperties, { later: 1, ram: 64 })).toEqual({ ...defaults, ram: 64 })
    expect(
      parseOrDefault(MachineProperties, {
        ram: 0,
        mac_address: 'x',
        formats: { a: 1 },
        platform: 'z80',
        options: 'a\0b',
      }),
    ).toEqual(defaults)
    // Nobody changes the defaults of all by changing those of one.
    expect(parseOrDefault(MachineProperties).custom_adapters).not.toBe(defaults.custom_adapters)
  })
})

describeWith(needsQemu)('the record of a machine with large images', () => {
  const newLab = sharedAgent({ sums: 0, end: 400, command: 3000 })

  test('has the checksum of a large image later, and this is reported', async () => {
    const lab = await newLab()
    const { nodes } = lab.agent
    const machine = await lab.machine()
    const image = await lab.image('disk.img', counting)
    const feed = await lab.payloads()
    const { hda_disk_image_md5sum } = await nodes.update(machine, { hda_disk_image: image })
    expect(hda_disk_image_md5sum).toBeNull()
    const md5 = await md5Of(lab.imagePath(image))
    const isNews = (node: object) => 'hda_disk_image_md5sum' in node && node.hda_disk_image_md5sum === md5
    await feed.until((it) => it.type === 'node.updated' && isNews(it.node))
  })

  test('is not written again when the checksum of a large image is ready during the deletion of its node', async () => {
    const lab = await newLab()
    const { nodes } = lab.agent
    const machine = await lab.machine()
    await nodes.start(machine)
    // It takes its time to end.
    process.kill(pidsOf(machine.node_id)[0] ?? 0, 'SIGSTOP')
    await nodes.update(machine, { hda_disk_image: await lab.image('disk.img') })
    const removal = nodes.remove(machine, { files: 'now' })
    // On a busy host the node may have gone before.
    const sum = () =>
      nodes.get(machine).then(
        ({ hda_disk_image_md5sum }) => hda_disk_image_md5sum,
        () => 'gone',
      )
    await expect.poll(sum, { interval: 5 }).not.toBeNull()
    await removal
    const other = await lab.machine()
    await nodes.start(other)
    const names = await readdir(join(lab.project.path, '.patchbay/nodes'))
    expect(names.filter((name) => !name.includes(other.node_id))).toEqual([])
  })
})
