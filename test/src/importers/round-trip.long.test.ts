import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { importLabFile } from '../../../src/importers/formats.ts'
import { readLabFile } from '../../../src/labfile/read.ts'
import { labFileText } from '../../../src/labfile/text.ts'
import { applyPlan } from '../../../src/labs/apply/executor.ts'
import { prepare } from '../../../src/labs/apply/prepare.ts'
import { labFileOf } from '../../../src/labs/export/lab-file.ts'
import { labsInMemory, MemoryCompute } from '../../support/memory-compute.ts'
import { filesOf } from '../../support/named-files.ts'

const fixtures = join(import.meta.dirname, '../../fixtures/labs')
const names = readdirSync(fixtures).flatMap((format) =>
  readdirSync(join(fixtures, format)).map((it) => join(format, it)),
)

test.each(names)('%s is imported, applied and shown as a lab file again without a difference', async (name) => {
  const imported = importLabFile({ text: readFileSync(join(fixtures, name), 'utf8'), hasFile: () => true })
  const text = labFileText(imported.file)
  const files = Object.fromEntries(filesOf(text, { allowOutside: true }).map(({ path }) => [path, `! ${path}`]))
  const desired = await readLabFile(text, { files })

  const compute = new MemoryCompute()
  const labs = await labsInMemory(compute)
  const ask = compute.agent
  const { project_id } = await labs.creation.create({ name: desired.lab }, ask, { lastApplied: { by: 'me' } })
  const lab = await labs.lab(project_id)
  const prepared = await prepare(labs, lab, desired, {}, ask)
  await applyPlan(labs, lab, { prepared, by: 'me' }, ask).over
  const stepsOf = async (wanted: typeof desired) => {
    const { plan } = await prepare(labs, lab, wanted, {}, ask)
    return [...plan.steps, ...plan.withheld, ...plan.extra].map(({ name, because }) => `${name}: ${because}`)
  }
  expect(await stepsOf(desired)).toEqual([])

  // The files of a CD are not shown; it stays.
  const shown = await labFileOf(lab, { schemaUrl: 'http://127.0.0.1/schemas/lab-1.json', withChecks: true }, ask)
  expect(await stepsOf(await readLabFile(shown))).toEqual([])
})
