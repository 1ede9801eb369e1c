import { createHash, randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { TestService } from '../../support/service.ts'

let service: TestService

beforeAll(async () => {
  service = await TestService.startForAll()
  return () => service.close()
})

const qcow2 = (size: number): Buffer => Buffer.concat([Buffer.from('QFI\xfb', 'latin1'), randomBytes(size - 4)])
const elf = (data: 1 | 2): Buffer =>
  Buffer.concat([Buffer.from('\x7fELF', 'latin1'), Buffer.from([1, data, 1]), randomBytes(100)])

test('images are pushed with their kind, listed and deleted', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  // More than one part.
  const disk = qcow2((16 << 20) + 1000)
  await writeFile(join(patchbay.home, 'disk.qcow2'), disk)
  await writeFile(join(patchbay.home, 'l3.bin'), elf(1))
  await writeFile(join(patchbay.home, 'c7200.image'), elf(2))
  const pushed = await patchbay.run(['images', 'push', 'disk.qcow2', 'l3.bin', 'c7200.image'])
  expect(pushed).toMatchObject({
    code: 0,
    out: [
      'disk.qcow2: pushed 17 MB (kind machine-emulator)',
      'l3.bin: pushed 107 B (kind iou)',
      'c7200.image: pushed 107 B (kind dynamips)',
      '',
    ].join('\n'),
  })
  expect(pushed.err).toContain('Pushing disk.qcow2: 17 MB of 17 MB\n')
  const sha256 = createHash('sha256').update(disk).digest('hex')
  const { out } = await patchbay.run(['images', 'ls'])
  expect(out).toMatch(/^IMAGE +KIND +SIZE +SHA256\nc7200\.image +dynamips +107 B/)
  expect(out).toContain(sha256.slice(0, 12))
  expect((await readFile(join(service.data, 'images/machine-emulator/disk.qcow2'))).equals(disk)).toBe(true)

  // The same again, and another one of the name.
  expect(await patchbay.json(['images', 'push', 'disk.qcow2'])).toMatchObject({ images: [{ sha256, sent: 0 }] })
  await writeFile(join(patchbay.home, 'disk.qcow2'), qcow2(5000))
  const other = await patchbay.run(['images', 'push', 'disk.qcow2'])
  expect(other).toMatchObject({ code: 1, err: expect.stringContaining('--force replaces it') })
  expect(await patchbay.run(['images', 'push', 'disk.qcow2', '--force'])).toMatchObject({ code: 0 })
  expect((await patchbay.run(['images', 'rm', 'disk.qcow2', 'l3.bin'])).out).toBe('Deleted disk.qcow2, l3.bin\n')
  expect((await patchbay.run(['images', 'ls'])).out).not.toContain('disk.qcow2')
})

test('a push continues an earlier one', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  const size = (16 << 20) + 1000
  await writeFile(join(patchbay.home, 'big.qcow2'), qcow2(size))
  const begin = (await readFile(join(patchbay.home, 'big.qcow2'))).subarray(0, 1 << 20)
  const earlier = await fetch(`${service.url}/v2/compute/machine-emulator/images/big.qcow2`, {
    method: 'POST',
    body: begin,
    headers: { 'content-range': `bytes 0-${begin.length - 1}/${size}` },
    redirect: 'manual',
  })
  expect(earlier.status).toBe(308)
  expect(await patchbay.json(['images', 'push', 'big.qcow2'])).toMatchObject({
    images: [{ image: 'big.qcow2', bytes: size, sent: size - begin.length }],
  })
})

test('an image gets another name', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  for (const name of ['first.img', 'second.img']) await patchbay.file(name, name)
  await patchbay.run(['images', 'push', 'first.img', 'second.img'])
  expect(await patchbay.run(['images', 'rename', 'first.img', 'third.img'])).toMatchObject({
    code: 0,
    out: 'Renamed first.img to third.img\n',
  })
  const refused = [
    [['first.img', 'x.img'], 1, 'there is no image "first.img"'],
    [['third.img', 'second.img'], 1, 'an image "second.img" already exists'],
    [['third.img', 'vendor/third.img'], 1, 'an image stays in its directory: expected "third.img"'],
    [['third.img', 'x.img', '--kind', 'iou'], 1, 'there is no image "third.img"'],
    [['third.img'], 64, 'NEW'],
  ] as const
  for (const [argv, code, message] of refused)
    expect(await patchbay.run(['images', 'rename', ...argv])).toMatchObject({
      code,
      err: expect.stringContaining(message),
    })
  expect(await patchbay.json(['images', 'rename', 'third.img', 'fourth.img'])).toMatchObject({
    ok: true,
    renamed: { kind: 'machine-emulator', from: 'third.img', to: 'fourth.img' },
  })
  expect(await readFile(join(service.data, 'images/machine-emulator/fourth.img'), 'utf8')).toBe('first.img')
  await patchbay.run(['images', 'rm', 'second.img', 'fourth.img'])
})

test('a file that is not an image is reported before anything is sent', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file('empty.img', '')
  await patchbay.file('notes', 'text')
  await patchbay.file('right.img', 'a disk')
  const wrong = [
    [['push', 'right.img', 'missing.img'], 3, 'missing.img: there is no such file'],
    [['push', 'right.img', 'empty.img'], 3, 'empty.img: it is empty'],
    [['push', 'right.img', '.'], 3, '.: it is a directory'],
    [['push', 'notes'], 64, 'set --kind: iou, machine-emulator'],
    [['push', 'right.img', '--kind', 'pc'], 64, 'expected one of iou, machine-emulator'],
    [['push', 'right.img', 'right.img', '--name', 'x'], 64, '--name can be used with one FILE only'],
    [['push', 'right.img', '--name', '../x'], 5, 'is not a valid image name'],
    [['rm', 'right.img'], 1, 'there is no image "right.img"'],
  ] as const
  for (const [argv, code, message] of wrong)
    expect(await patchbay.run(['images', ...argv])).toMatchObject({ code, err: expect.stringContaining(message) })
  expect(await patchbay.json(['images', 'push', 'notes', '--kind', 'machine-emulator'])).toMatchObject({ ok: true })
  expect((await patchbay.run(['images', 'ls'])).out).not.toContain('right.img')
})
