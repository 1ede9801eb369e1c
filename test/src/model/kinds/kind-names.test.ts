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
  // The keys and words that lab files, other programs and older versions have for some kinds.
  'src/labfile/schema.ts',
  'src/labfile/segment-kinds.ts',
  'src/labfile/segments.ts',
  'src/labfile/short-words.ts',
  'src/importers/',
  'src/exporters/',
  'src/endpoints/gns3/',
  // The names of symbols, of which some are like those of kinds.
  'src/model/lab/built-in-symbols.ts',
  // The keeper has an emulator of pcs in its own process.
  'runtime/node/keeper/',
  // An example in the description of a setting.
  'runtime/node/service/config/settings.ts',
]

const names = nodeKinds.join('|')
/** A kind as a text, as the key of a number, and as an imported module. */
const named = new RegExp(`['"](${names})['"]|(?<=[{,] )(${names}): \\d|/kinds/(${names})\\.ts'`)
const isComment = (line: string) => /^\s*(\/\*\*|\*|\/\/)/.test(line)

/** Lines that name a kind, with their places. */
const found = ['src', 'runtime']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  )
  // The client is made from the schemas, so that it has the names of the descriptors.
  .filter((file) => /\.tsx?$/.test(file) && file !== 'src/client/calls.ts')
  .flatMap((file) =>
    readFileSync(join(root, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => (named.test(line) && !isComment(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [])),
  )

test('no shared file names a kind: what is specific to one is in its descriptor or its driver', () => {
  expect(found.filter((place) => !mayNameKinds.some((path) => place.startsWith(path)))).toEqual([])
})

test('every file that may name kinds does so', () => {
  expect(mayNameKinds.filter((path) => !found.some((place) => place.startsWith(path)))).toEqual([])
})
