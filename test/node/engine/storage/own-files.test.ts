import { execFileSync } from 'node:child_process'
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readOwn, removeStaged, replaceOwn, stageOwn } from '../../../../runtime/node/engine/storage/own-files.ts'
import { freshDirectory } from '../../../support/directory.ts'

const refused = (message: string) => ({ status: 409, message })

test('a file is read with its time, and a missing one is absent', async () => {
  const directory = await freshDirectory()
  expect(await readOwn(directory, 'a', 3)).toBe(undefined)
  await writeFile(join(directory, 'a'), 'abc')
  const { mtimeMs } = await stat(join(directory, 'a'))
  expect(await readOwn(directory, 'a', 3)).toEqual({ bytes: Buffer.from('abc'), writtenAt: mtimeMs })
  await expect(readOwn(directory, 'a', 2)).rejects.toMatchObject(refused('a has 3 bytes, expected at most 2'))
})

test('only a regular file is opened: not a FIFO without a writer, a symbolic link, a directory, a socket', async () => {
  const directory = await freshDirectory()
  execFileSync('mkfifo', [join(directory, 'fifo')])
  await writeFile(join(directory, 'there'), 'secret')
  await symlink(join(directory, 'there'), join(directory, 'link'))
  await symlink('/nowhere/at/all', join(directory, 'dangling'))
  await mkdir(join(directory, 'directory'))
  const server = createServer().listen(join(directory, 'socket'))
  onTestFinished(() => void server.close())
  for (const name of ['fifo', 'link', 'dangling', 'directory', 'socket']) {
    await expect(readOwn(directory, name, 99), name).rejects.toMatchObject(refused(`${name} is not a file`))
  }
})

test('a file replaces anything of its name except a directory, and only its user can read it', async () => {
  const directory = await freshDirectory()
  await writeFile(join(directory, 'there'), 'mine')
  await symlink(join(directory, 'there'), join(directory, 'link'))
  execFileSync('mkfifo', [join(directory, 'fifo')])
  for (const name of ['link', 'fifo', 'new']) {
    await replaceOwn(directory, name, name)
    expect(await readFile(join(directory, name), 'utf8')).toBe(name)
    expect((await stat(join(directory, name))).mode & 0o777).toBe(0o600)
  }
  expect(await readFile(join(directory, 'there'), 'utf8')).toBe('mine')
  await mkdir(join(directory, 'directory'))
  const inTheWay = refused('Writing directory: a directory is in the way')
  await expect(replaceOwn(directory, 'directory', 'x')).rejects.toMatchObject(inTheWay)
  await expect(replaceOwn(join(directory, 'gone'), 'x', 'x')).rejects.toMatchObject({ status: 409 })
  expect((await readdir(directory)).sort()).toEqual(['directory', 'fifo', 'link', 'new', 'there'])
})

test('staged files exist after the commit, and not without it', async () => {
  const directory = await freshDirectory()
  const [kept, given] = [await stageOwn(directory, 'a', 'a'), await stageOwn(directory, 'b', 'b')]
  await given.discard()
  expect(await readOwn(directory, 'a', 1)).toBe(undefined)
  await kept.commit()
  expect(await readdir(directory)).toEqual(['a'])
})

test('staged files of a killed service are removed, and no others', async () => {
  const directory = await freshDirectory()
  await stageOwn(directory, 'a', 'a')
  await writeFile(join(directory, 'b.writing'), '')
  await removeStaged(directory)
  expect(await readdir(directory)).toEqual(['b.writing'])
})
