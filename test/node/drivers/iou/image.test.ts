import { execFileSync } from 'node:child_process'
import { chmod, mkdir, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { elfHeader } from '../../../../runtime/node/drivers/iou/elf.ts'
import { factsIn, imageFactsOf, missingIn, requireIouImage } from '../../../../runtime/node/drivers/iou/image.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { requireProgram } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'

const needsGcc = requireProgram('gcc')
const compiled = testWith(needsGcc)

const help = `Usage: iou [options] <application id>
  -h              Display this help message
  -e <n>          Number of Ethernet interfaces (default 2)
  -n <n>          Size of nvram in Kb (default 16KB)
  -m <n>          Megabytes of router memory (default 128MB)
  -l              Enable Layer 1 keepalive messages
`

const refused = (message: string) => ({ status: 409, message: expect.stringContaining(message) })

/** The least that is a program: its header, and one program header for a loader when one is named. */
function elf(bits: 32 | 64, loader?: string): Buffer {
  const is64 = bits === 64
  const [headerBytes, entryBytes] = is64 ? [64, 56] : [52, 32]
  const file = Buffer.alloc(headerBytes + entryBytes + (loader?.length ?? 0) + 1)
  file.write(`7f454c460${is64 ? 2 : 1}0101`, 'hex')
  file.writeUInt32LE(headerBytes, is64 ? 32 : 28)
  file.writeUInt16LE(entryBytes, is64 ? 54 : 42)
  file.writeUInt16LE(1, is64 ? 56 : 44)
  if (loader === undefined) return file
  file.writeUInt32LE(3, headerBytes)
  file.writeUInt32LE(headerBytes + entryBytes, headerBytes + (is64 ? 8 : 4))
  file.writeUInt32LE(loader.length + 1, headerBytes + (is64 ? 32 : 16))
  file.write(loader, headerBytes + entryBytes)
  return file
}

async function image(bytes: Buffer | string, mode = 0o755): Promise<string> {
  const path = join(await freshDirectory(), 'i86bi-test.bin')
  await writeFile(path, bytes)
  await chmod(path, mode)
  return path
}

/** A real program, made of a few lines of C. */
async function program(code: string, ...flags: string[]): Promise<string> {
  const path = join(await freshDirectory(), 'i86bi-test.bin')
  const input = `#include <stdio.h>\n#include <unistd.h>\n${code}`
  execFileSync('gcc', ['-x', 'c', '-', '-o', path, ...flags], { input })
  return path
}

test('a program of 32 or 64 bits is recognised, with its loader', () => {
  for (const bits of [32, 64] as const) {
    expect(elfHeader(elf(bits))).toEqual({ bits, loader: undefined })
    expect(elfHeader(elf(bits, '/lib/ld-linux.so.2'))).toEqual({ bits, loader: '/lib/ld-linux.so.2' })
  }
})

test('a loader whose name is beyond the bytes that were read is unknown', () => {
  for (const bits of [32, 64] as const) {
    expect(elfHeader(elf(bits, '/lib/ld-linux.so.2').subarray(0, -1))).toEqual({ bits, loader: undefined })
  }
})

test('a file that is big-endian, cut, or of another format is not an image', () => {
  const bigEndian = elf(32)
  bigEndian[5] = 2
  for (const bytes of [
    bigEndian,
    elf(32).subarray(0, 51),
    elf(64).subarray(0, 63),
    Buffer.alloc(0),
    Buffer.alloc(99),
  ]) {
    expect(elfHeader(bytes)).toBe(undefined)
  }
})

test('any header is read without an error', () => {
  fc.assert(
    fc.property(fc.constantFrom(32, 64), fc.uint8Array({ minLength: 57, maxLength: 300 }), (bits, rest) => {
      const file = Buffer.concat([elf(bits).subarray(0, 7), rest])
      expect(elfHeader(file)?.bits).toBe(bits)
    }),
  )
})

test('the defaults and options are read from the help', () => {
  expect(factsIn(help)).toEqual({ defaultRam: 128, defaultNvram: 16, hasKeepalives: true })
  expect(
    factsIn('-n <n> Size of nvram\n        (default 64 KB)\n-m <n>\tmemory (default 256 MB)\n-list all\n'),
  ).toEqual({
    ...{ defaultRam: 256, defaultNvram: 64, hasKeepalives: false },
  })
  expect(factsIn('')).toEqual({ defaultRam: undefined, defaultNvram: undefined, hasKeepalives: false })
})

test('libraries that ldd does not find are listed once', () => {
  const listing =
    '\tlinux-gate.so.1 (0xf7)\n\tlibcrypto.so.4 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0xf7)\n\tlibcrypto.so.4 => not found\n'
  expect(missingIn(listing)).toEqual(['libcrypto.so.4'])
  const older = "./iou: /lib/libc.so.6: version `GLIBC_2.38' not found (required by ./iou)\n"
  expect(missingIn(older)).toEqual(['GLIBC_2.38'])
})

test('a file that is not an image is refused', async () => {
  const directory = await freshDirectory()
  const gone = join(directory, 'gone.bin')
  await expect(requireIouImage(gone)).rejects.toMatchObject(refused('The image gone.bin does not exist'))
  await expect(imageFactsOf(gone)).rejects.toMatchObject(refused('The image gone.bin does not exist'))
  await mkdir(gone)
  await expect(imageFactsOf(gone)).rejects.toMatchObject(refused('The image gone.bin is not a file'))
  for (const bytes of ['', '#!/bin/sh\necho hello\n', elf(32).subarray(0, 20)]) {
    await expect(imageFactsOf(await image(bytes))).rejects.toMatchObject(
      refused('is not an IOU image (expected a little-endian Linux ELF executable)'),
    )
  }
  await expect(requireIouImage(await image(elf(32, '/nowhere/ld.so')))).rejects.toMatchObject(
    refused(
      'is a 32-bit program, and its loader, /nowhere/ld.so, is missing on this host; install it (apt-get install libc6-i386',
    ),
  )
  await expect(requireIouImage(await image(elf(64)))).resolves.toMatchObject({ bits: 64 })
  // Nothing in it that could be run.
  await expect(imageFactsOf(await image(elf(64)))).rejects.toMatchObject(refused('printed no help'))
  await expect(imageFactsOf(await image(elf(32)))).rejects.toMatchObject(
    refused('printed no help (some kernels, for example in PVM guests, cannot run 32-bit programs)'),
  )
})

test('an image that is not executable is refused, by root too', async () => {
  await expect(requireIouImage(await image(elf(64), 0o644))).rejects.toMatchObject(refused('is not executable'))
})

compiled.for([[[]], [['-static']]] as const)('an image says what it can do, linked with %j', async ([flags]) => {
  const lines = JSON.stringify(help)
  const path = await program(
    `int main(int c, char **v) { fputs(${lines}, stderr); creat("core", 0); return 1; }`,
    ...flags,
    '-include',
    'fcntl.h',
  )
  const facts = {
    path,
    bits: process.arch.includes('64') ? 64 : 32,
    defaultRam: 128,
    defaultNvram: 16,
    hasKeepalives: true,
  }
  expect(await imageFactsOf(path)).toEqual(facts)
  expect(await readdir(join(path, '..'))).toEqual(['i86bi-test.bin'])
  const first = imageFactsOf(path)
  expect(imageFactsOf(path)).toBe(first)
  await utimes(path, 1, 1)
  expect(imageFactsOf(path)).not.toBe(first)
  await imageFactsOf(path)
})

compiled('an image that was refused is asked again', async () => {
  const path = await program(`int main(void) { fputs(${JSON.stringify(help)}, stdout); }`)
  await chmod(path, 0o644)
  await expect(imageFactsOf(path)).rejects.toMatchObject(refused('is not executable'))
  await chmod(path, 0o755)
  expect(await imageFactsOf(path)).toMatchObject({ defaultRam: 128 })
})

compiled('an image that needs a library that is not there says which', async () => {
  const directory = await freshDirectory()
  const library = join(directory, 'libpatchbay-test.so.4')
  execFileSync('gcc', ['-shared', '-x', 'c', '-', '-o', library, '-Wl,-soname,libpatchbay-test.so.4'], {
    input: 'int f(void) { return 0; }',
  })
  const path = await program('int f(void); int main(void) { return f(); }', '-x', 'none', library)
  await expect(imageFactsOf(path)).rejects.toMatchObject(
    refused('needs libraries that are missing on this host: libpatchbay-test.so.4'),
  )
})

compiled.for([
  ['int main(void) { return 3; }', 'it ended with code 3 and printed no help'],
  ['int main(void) { __builtin_trap(); }', 'it was ended by SIG'],
  [
    'int main(void) { for (;;) puts("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"); }',
    'it printed more than 1048576 bytes',
  ],
] as const)('an image that does not answer is refused: %s', async ([code, why]) => {
  const path = await program(code)
  await expect(imageFactsOf(path)).rejects.toMatchObject(refused(`i86bi-test.bin cannot be run: ${why}`))
})
