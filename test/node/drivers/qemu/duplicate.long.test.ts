import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { generatedMac } from '../../../../runtime/node/drivers/qemu/adapters.ts'
import { requireProgram } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'
import { counting, writing } from './boot-sectors.ts'
import { booting, type Machine, MachineLab, qemuImg, sharedService } from './machine-lab.ts'
import { qemuName } from './qemu-process.ts'

const service = sharedService()

/** What the disk holds in its second sector. */
async function written(machine: Machine): Promise<Buffer> {
  const overlay = join((await machine.view()).node_directory, 'hda_disk.qcow2')
  qemuImg('convert', '-U', '-O', 'raw', overlay, `${overlay}.raw`)
  return (await readFile(`${overlay}.raw`)).subarray(512, 1024)
}

describeWith(requireProgram(qemuName))('a copy of a machine', () => {
  test.for(['stopped', 'started', 'suspended'] as const)(
    'that is %s has its settings and its disk, and its own unique values',
    async (state) => {
      const lab = await MachineLab.create(service())
      const source = await lab.machine({ ...booting(await lab.image('writing.img', writing)), adapters: 2, ram: 24 })
      await (await source.boot()).expect('w')
      if (state === 'stopped') await source.must('stop')
      if (state === 'suspended') await source.must('suspend')
      const copy = await lab.machine({ name: 'R2', console_type: 'vnc' })
      const before = await copy.view()
      const { pid } = source
      const feed = await lab.feed()

      expect((await source.duplicate(copy)).status).toBe(201)
      const { hda_disk_image } = await source.view()
      expect(await copy.view()).toMatchObject({
        ...{ name: 'R2', status: 'stopped', console: before.console, console_type: 'vnc' },
        ...{ hda_disk_image, adapters: 2, ram: 24, mac_address: generatedMac(lab.id, copy.id) },
      })
      expect(await written(copy)).toEqual(writing)
      // The source is as it was, also when it stood still for a moment.
      expect([await source.status(), source.pid]).toEqual([state, pid])
      await lab.machine({ name: 'last' })
      await feed.until(({ action }) => action === 'node.created')
      const told = feed.seen.filter(({ event }) => event.node_id === source.id)
      expect(told).toEqual([])
      await copy.must('start')
      await copy.remove()
      await source.remove()
    },
  )

  test('is independent of its source from the beginning', async () => {
    const lab = await MachineLab.create(service())
    const source = await lab.machine(booting(await lab.image('writing.img', writing)))
    const copy = await lab.machine({ name: 'R2' })
    expect((await source.duplicate(copy)).status).toBe(201)
    await (await source.boot()).expect('w')
    // It must not run its disk, however long it takes to stop it.
    await copy.update({ boot_priority: 'n', options: '-boot strict=on' })
    await copy.must('start', 'stop')
    expect((await written(copy)).every((byte) => byte === 0)).toBe(true)
    await source.remove()
    await copy.must('start')
    await copy.remove()
  })

  test('keeps its own MAC address, and has the adapters of its source without theirs', async () => {
    const lab = await MachineLab.create(service())
    const custom_adapters = [{ adapter_number: 0, mac_address: '0c:00:00:00:00:07' }]
    const source = await lab.machine({ mac_address: '0c:00:00:00:00:05', custom_adapters })
    const copy = await lab.machine({ name: 'R2', mac_address: '0c:00:00:00:00:06', adapters: 3 })
    const link = { type: 'nio_udp', lport: await lab.reserve(), rhost: '127.0.0.1', rport: 9 }
    expect((await copy.nio('POST', 2, link)).status).toBe(201)
    expect((await source.duplicate(copy)).status).toBe(201)
    expect(await copy.view()).toMatchObject({
      mac_address: '0c:00:00:00:00:06',
      custom_adapters: [{ adapter_number: 0 }],
      adapters: 0,
    })
    // What was attached to adapters that it has no more is free.
    const other = await lab.machine({ adapters: 1 })
    expect((await other.nio('POST', 0, link)).status).toBe(201)
  })

  test('does not continue from the saved state of its source', async () => {
    const lab = await MachineLab.create(service())
    const image = await lab.image('counting.img', counting)
    const source = await lab.machine({ ...booting(image), on_close: 'save_vm_state' })
    const copy = await lab.machine({ name: 'R2', console_type: 'telnet' })
    await source.boot()
    await source.must('stop')
    expect((await source.duplicate(copy)).status).toBe(201)
    // It boots, while the source goes on.
    await copy.boot()
    const terminal = await source.do('start').then(() => source.terminal(''))
    terminal.type('x')
    expect(await terminal.expect('a')).not.toContain('>')
    for (const machine of [source, copy]) await machine.remove()
  })

  test('is only made of a stopped machine, and not of itself', async () => {
    const lab = await MachineLab.create(service())
    const [source, copy] = [await lab.machine(), await lab.machine({ name: 'R2' })]
    await copy.must('start')
    const running = await source.duplicate(copy)
    expect(running).toMatchObject({ status: 409, body: { message: expect.stringContaining('stop it first') } })
    expect((await source.duplicate(source)).status).toBe(400)
    await copy.remove()
    expect((await source.duplicate(copy)).status).toBe(404)
  })

  test('that a kill of the service interrupted is undone when the project is opened again', async () => {
    const lab = await MachineLab.create(service())
    const [one, other] = [await lab.machine(), await lab.machine({ name: 'R2' })]
    const [there, away] = [(await one.view()).node_directory, (await other.view()).node_directory]
    await service().call('POST', `${lab.path}/close`)
    await rename(away, `${away}.old-0123456789ab`)
    await writeFile(`${away}.old-0123456789ab/mine`, '')
    for (const directory of [`${away}.copy-0123456789ab`, `${there}.old-ba9876543210`, `${there}.old-notes`]) {
      await mkdir(directory)
      await writeFile(join(directory, 'large'), '')
    }
    await MachineLab.create(service(), lab.id)
    const left = await readdir(dirname(there))
    expect(left.sort()).toEqual([one.id, `${one.id}.old-notes`, other.id].sort())
    expect(await readdir(away)).toContain('mine')
    await Promise.all([one.remove(), other.remove()])
  })
})
