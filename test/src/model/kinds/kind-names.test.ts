import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { nodeKinds } from '../../../../src/model/kinds/node.ts'

const root = join(import.meta.dirname, '../../../..')

/** Files that may name kinds: whatever begins with one of these paths. */
const mayNameKinds = [
  // What a kind is, and how a host runs it.
  'src/model/kinds/',
  'runtime/node/drivers/',
  // The language of lab files has keys and words for some kinds, and so have other programs and older versions.
  'src/labfile/',
  'src/importers/',
  'src/endpoints/gns3/',
  // The names of symbols, of which some are like those of kinds.
  'src/model/lab/built-in-symbols.ts',
  'src/model/lab/symbol-shapes.ts',
  // The keeper has an emulator of pcs in its own process.
  'runtime/node/keeper/',
  // Forms and tools of the page for single kinds.
  'runtime/browser/',
  // An example in the description of a setting.
  'runtime/node/service/config/settings.ts',
]

const isComment = (line: string) => /^\s*(\/\*\*|\*|\/\/)/.test(line)

test('no shared file names a kind: what is specific to one is in its descriptor or its driver', () => {
  const names = nodeKinds.join('|')
  const named = new RegExp(`['"](${names})['"]|(?<=[{,] )(${names}): \\d|/kinds/(${names})\\.ts'`)
  const files = ['src', 'runtime'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  )
  const found = files
    .filter((file) => /\.tsx?$/.test(file) && !mayNameKinds.some((path) => file.startsWith(path)))
    .flatMap((file) =>
      readFileSync(join(root, file), 'utf8')
        .split('\n')
        .flatMap((line, index) =>
          named.test(line) && !isComment(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [],
        ),
    )
  expect(found).toEqual([])
})
