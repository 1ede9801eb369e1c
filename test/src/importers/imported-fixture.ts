import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { importLabFile } from '../../../src/importers/formats.ts'
import { readLabFile } from '../../../src/labfile/read.ts'
import { labFileText } from '../../../src/labfile/text.ts'
import { filesOf } from '../../support/named-files.ts'
import { outline } from './outline.ts'

const fixtures = join(import.meta.dirname, '../../fixtures/labs')

/** The outline of an imported fixture, whose lab file is valid. Files beside it are there. */
export async function importedFixture(name: string) {
  const imported = importLabFile({ text: readFileSync(join(fixtures, name), 'utf8'), hasFile: () => true })
  const text = labFileText(imported.file)
  const files = filesOf(text, { allowOutside: true }).map(({ path }) => [path, 'text'])
  await readLabFile(text, { files: Object.fromEntries(files) })
  return outline(imported)
}
