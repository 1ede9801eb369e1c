import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { LabTemplate } from '../../../src/model/lab/template.ts'
import { CommandLine } from '../../support/command-line.ts'
import { TestService } from '../../support/service.ts'

test('a node type is made of a file, listed, changed and deleted', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const shell = await CommandLine.of({ server: service.url })
  const disk = Buffer.alloc(1 << 16)
  disk.write('QFI\xfb', 0, 'latin1')
  await writeFile(join(shell.home, 'vios-l2.qcow2'), disk)

  const added = await shell.run(['templates', 'add', 'vios-l2.qcow2', '--name', 'Access', '--set', 'ram=1024'])
  expect(added).toMatchObject({
    code: 0,
    out: 'Added Access (QEMU machine, hda_disk_image=vios-l2.qcow2, ram=1024, adapters=16)\n',
  })
  // The image is there now: its name is enough.
  expect(await shell.run(['templates', 'add', 'vios-l2.qcow2', '--name', 'Second'])).toMatchObject({ code: 0 })
  const own = async () => (await service.call<LabTemplate[]>('GET', '/v2/templates')).filter(({ builtin }) => !builtin)
  expect(await own()).toMatchObject([
    { name: 'Access', category: 'switch', symbol: 'switch', ram: 1024, adapters: 16, platform: 'x86_64' },
    { name: 'Second', ram: 768 },
  ])
  expect((await shell.run(['templates', 'ls'])).out).toMatch(/^Access +QEMU machine +vios-l2\.qcow2$/m)

  const changed = await shell.run(['templates', 'set', 'access', 'cpus=2', 'linked_clone=false', 'symbol=router'])
  expect(changed).toMatchObject({ code: 0, out: expect.stringContaining('Changed Access') })
  expect((await own())[0]).toMatchObject({ cpus: 2, linked_clone: false, symbol: 'router' })
  expect(await shell.run(['templates', 'rm', 'Access', 'Second'])).toMatchObject({
    code: 0,
    out: 'Deleted Access, Second\n',
  })
  expect(await own()).toEqual([])
})

test('wrong names, settings and values change nothing', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const shell = await CommandLine.of({ server: service.url })
  await service.call('POST', '/v2/templates', { name: 'Box', template_type: 'machine-emulator' })
  const refused = async (...args: string[]) => {
    const { code, err } = await shell.run(['templates', ...args])
    return [code, err]
  }
  expect(await refused('set', 'Bix', 'ram=1')).toEqual([1, expect.stringContaining('did you mean')])
  expect(await refused('set', 'Box', 'rom=1')).toEqual([64, expect.stringContaining('rom: QEMU machine has no such')])
  expect(await refused('set', 'Box', 'ram=much')).toEqual([64, expect.stringContaining('ram: expected a number')])
  expect(await refused('set', 'Box', 'linked_clone=no')).toEqual([64, expect.stringContaining('true or false')])
  expect(await refused('set', 'Box', 'ram')).toEqual([64, expect.stringContaining('expected KEY=VALUE')])
  expect(await refused('set', 'PC', 'symbol=router')).toEqual([5, expect.stringContaining('built in')])
  expect(await refused('add', 'nothing.qcow2')).toEqual([1, expect.stringContaining('there is no image')])
  const types = await service.call<LabTemplate[]>('GET', '/v2/templates')
  expect(types.filter(({ builtin }) => !builtin)).toMatchObject([{ name: 'Box', platform: 'x86_64' }])
})
