import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

test('no failure is ignored without a reason in the code', () => {
  const files = ['src', 'runtime'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  const silent = files
    .filter((file) => file.endsWith('.ts'))
    .filter((file) => /\.catch\(\s*(async )?\(\w*\) => \{\s*\}\s*\)/.test(readFileSync(join(root, file), 'utf8')))
  expect(silent).toEqual([])
})
