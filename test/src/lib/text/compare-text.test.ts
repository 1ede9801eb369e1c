import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { compareText } from '../../../../src/lib/text/compare-text.ts'

test('texts are compared by code units, and equal texts are equal', () => {
  expect(['b', 'a', 'B', 'a'].sort(compareText)).toEqual(['B', 'a', 'a', 'b'])
  expect(compareText('a', 'a')).toBe(0)
})

test('no comparator of a sort says of equal keys that one comes first', async () => {
  const found: string[] = []
  for (const room of ['src', 'runtime'])
    for (const file of await readdir(room, { recursive: true }))
      if (/\.tsx?$/.test(file) && / [<>] .* \? -?1 : -?1\)/.test(await readFile(`${room}/${file}`, 'utf8')))
        found.push(file)
  expect(found).toEqual([])
})
