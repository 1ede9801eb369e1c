import { execFileSync } from 'node:child_process'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lastOutput } from '../../../../runtime/node/drivers/dynamips/files.ts'
import { freshDirectory } from '../../../support/directory.ts'

test('the last output of dynamips is shown without its directory, and only when it is in a file', async () => {
  const directory = await freshDirectory()
  const errors = join(directory, 'errors.txt')
  expect(await lastOutput(errors, directory)).toBe('')
  await writeFile(errors, `one\ntwo\n${directory}/image.bin: cannot\u0007 be read\n`)
  expect(await lastOutput(errors, directory)).toBe('two; image.bin: cannot  be read')
})

test('a symbolic link or a FIFO in place of the log of dynamips shows no file of the host, and blocks nothing', async () => {
  const directory = await freshDirectory()
  await writeFile(join(directory, 'secret'), 'a secret of the host')
  await symlink(join(directory, 'secret'), join(directory, 'link'))
  execFileSync('mkfifo', [join(directory, 'fifo')])
  expect(await lastOutput(join(directory, 'link'), directory)).toBe('')
  expect(await lastOutput(join(directory, 'fifo'), directory)).toBe('')
})
