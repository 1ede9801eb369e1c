import { execFileSync } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { requireIosImage } from '../../../../runtime/node/drivers/dynamips/image.ts'
import { defaultRam } from '../../../../src/model/kinds/dynamips-hardware.ts'
import { idling } from '../../../stand-in/mips/programs.ts'
import { freshDirectory } from '../../../support/directory.ts'

let directory = ''
beforeEach(async () => {
  directory = await freshDirectory()
})

async function check(content: Uint8Array): Promise<void> {
  const file = join(directory, 'image.bin')
  await writeFile(file, content)
  await requireIosImage(file, 'image.bin')
}

test('an ELF file of 32 bits, big-endian, is an image, through a link too', async () => {
  await check(idling)
  await symlink(join(directory, 'image.bin'), join(directory, 'link.bin'))
  await requireIosImage(join(directory, 'link.bin'), 'link.bin')
})

const changed = (at: number, value: number) => {
  const copy = Buffer.from(idling)
  copy[at] = value
  return copy
}

test.each([
  ['of 64 bits', changed(4, 2), 'expected a 32-bit big-endian ELF file'],
  ['little-endian', changed(5, 1), 'expected a 32-bit big-endian ELF file'],
  ['of another version', changed(6, 2), 'expected a 32-bit big-endian ELF file'],
  ['a text', Buffer.from('hostname R1\n'), 'expected a 32-bit big-endian ELF file'],
  ['an archive', Buffer.from('PK\x03\x04'), 'expected a 32-bit big-endian ELF file'],
  ['empty', Buffer.alloc(0), 'is empty'],
  ['cut', idling.subarray(0, 51), 'ends within its header'],
  ['nearly nothing', idling.subarray(0, 3), 'expected a 32-bit big-endian ELF file'],
])('a file that is %s is not an image', async (_, content, message) => {
  await expect(check(content)).rejects.toMatchObject({ status: 409, message: expect.stringContaining(message) })
})

test('a missing image is reported with its name, so that a client can upload it', async () => {
  await expect(requireIosImage(join(directory, 'none'), 'c7200.bin')).rejects.toMatchObject({
    status: 409,
    extra: { image: 'c7200.bin' },
    message: 'image: "c7200.bin" does not exist; upload it, then try again',
  })
})

test('a directory and a FIFO are not images', async () => {
  await mkdir(join(directory, 'd'))
  execFileSync('mkfifo', [join(directory, 'fifo')])
  for (const file of [join(directory, 'd'), join(directory, 'fifo'), '/dev/null']) {
    await expect(requireIosImage(file, 'it')).rejects.toMatchObject({
      status: 409,
      message: 'image: "it" is not a file',
    })
  }
})

test('every platform has a memory by default', () => {
  expect(defaultRam).toEqual({ c1700: 160, c2600: 160, c2691: 192, c3600: 192, c3725: 128, c3745: 256, c7200: 512 })
})
