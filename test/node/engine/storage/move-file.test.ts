import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { moveToFree } from '../../../../runtime/node/engine/storage/move-file.ts'
import { freshDirectory } from '../../../support/directory.ts'

const taken = expect.objectContaining({ code: 'EEXIST' })

test('a file gets a free path, and replaces neither a file nor a link', async () => {
  const directory = await freshDirectory()
  const at = (name: string) => join(directory, name)
  for (const name of ['a', 'b']) await writeFile(at(name), name)
  await symlink('nowhere', at('link'))
  for (const name of ['b', 'link']) await expect(moveToFree(at('a'), at(name))).rejects.toEqual(taken)
  await moveToFree(at('a'), at('c'))
  expect((await readdir(directory)).sort()).toEqual(['b', 'c', 'link'])
  expect([await readFile(at('b'), 'utf8'), await readFile(at('c'), 'utf8')]).toEqual(['b', 'a'])
})

test('of several files that get one path at once one gets it, and the others stay', async () => {
  const directory = await freshDirectory()
  const names = Array.from({ length: 20 }, (_, index) => `file${index}`)
  for (const name of names) await writeFile(join(directory, name), name)
  const moves = names.map((name) => moveToFree(join(directory, name), join(directory, 'one')))
  const winners = (await Promise.allSettled(moves)).flatMap(({ status }, index) =>
    status === 'fulfilled' ? [names[index]] : [],
  )
  expect(winners).toEqual([await readFile(join(directory, 'one'), 'utf8')])
  expect(await readdir(directory)).toHaveLength(names.length)
})

// A directory gets no hard link either.
test('a file that cannot have a hard link is moved to a free path, too', async () => {
  const directory = await freshDirectory()
  const at = (name: string) => join(directory, name)
  for (const name of ['a', 'b']) await mkdir(at(name))
  await writeFile(join(at('a'), 'file'), 'content')
  await expect(moveToFree(at('a'), at('b'))).rejects.toEqual(taken)
  await moveToFree(at('a'), at('c'))
  expect((await readdir(directory)).sort()).toEqual(['b', 'c'])
  expect(await readFile(join(at('c'), 'file'), 'utf8')).toBe('content')
})
