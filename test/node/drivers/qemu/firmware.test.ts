import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { firmwareOf } from '../../../../runtime/node/drivers/qemu/firmware.ts'
import { temporaryDirectory } from './qemu-process.ts'

/** The head of a firmware volume: the id of its kind, and the mark. */
const volume = (id: string) => Buffer.concat([Buffer.alloc(16), Buffer.from(id, 'hex'), Buffer.alloc(8), tail])
const tail = Buffer.from('_FVH'.padEnd(64, '\0'))
const code = volume('78e58c8c3d8a1c4f9935896185c32dd3')
const whole = volume('8d2bf1ff96768b4ca9852747075b4f50')

async function images(files: Readonly<Record<string, Buffer>>) {
  const directory = await temporaryDirectory()
  const node = join(directory, 'node')
  await mkdir(node)
  for (const [name, bytes] of Object.entries(files)) await writeFile(join(directory, name), bytes)
  return { directory, node }
}

test('the code half of a UEFI gets variables from the file beside it, once', async () => {
  const { directory, node } = await images({ 'MY_CODE.fd': code, 'MY_VARS.fd': Buffer.from('vars') })
  const vars = join(node, 'uefi_vars.fd')
  const firmware = { type: 'uefi', code: join(directory, 'MY_CODE.fd'), vars }
  expect(await firmwareOf(firmware.code, node)).toEqual(firmware)
  expect(await readFile(vars, 'utf8')).toBe('vars')
  await writeFile(vars, 'of the guest')
  expect(await firmwareOf(firmware.code, node)).toEqual(firmware)
  expect(await readFile(vars, 'utf8')).toBe('of the guest')
  expect(await readdir(node)).toEqual(['uefi_vars.fd'])
})

test('without a template it has none', async () => {
  const { directory, node } = await images({ 'my.fd': code })
  expect(await firmwareOf(join(directory, 'my.fd'), node)).toEqual({ type: 'uefi', code: join(directory, 'my.fd') })
})

test.for([
  ['a whole UEFI', whole],
  ['a BIOS', Buffer.alloc(65536, 0x90)],
  ['something short', Buffer.from('x')],
] as const)('%s is used as it is', async ([, bytes]) => {
  const { directory, node } = await images({ 'bios.bin': bytes })
  const path = join(directory, 'bios.bin')
  expect(await firmwareOf(path, node)).toEqual({ type: 'bios', path })
  expect(await readdir(node)).toEqual([])
})

test('a missing firmware is reported', async () => {
  await expect(firmwareOf('/nowhere/bios.bin', '/nowhere')).rejects.toMatchObject({
    status: 409,
    message: 'The image bios.bin does not exist',
  })
})
