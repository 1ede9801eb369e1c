import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { TestService } from '../../support/service.ts'

const gallery = resolve('examples')
const readme = readFileSync(join(gallery, 'README.md'), 'utf8')
/** The rows of the table of the gallery. */
const rows = [...readme.matchAll(/^\| \[([\w-]+)\]\(([^)]+)\) \| [^|]+ \| ([^|]+) \|$/gm)].map(
  ([, name = '', path = '', needs = '']) => ({ name, file: join(gallery, path), needs }),
)
const alone = rows.filter(({ needs }) => needs === 'nothing')

test('the table of the gallery has every lab', () => {
  const labs = readdirSync(gallery).filter((name) =>
    readdirSync(gallery, { recursive: true, encoding: 'utf8' }).includes(`${name}/${name}.lab.yaml`),
  )
  expect(rows.map(({ name }) => name).sort()).toEqual(labs.sort())
  expect(alone.length).toBeGreaterThanOrEqual(5)
})

test('the labs without images start, and their checks succeed', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const patchbay = await CommandLine.of({ server: service.url })
  const { labs } = await patchbay.json<{
    labs: { lab: string; checks: { name: string; ok: boolean; saw: string }[] }[]
  }>([...['test', '--jobs', '6'], ...alone.map(({ file }) => file)])
  const failed = labs.flatMap(({ lab, checks }) =>
    checks.flatMap(({ ok, name, saw }) => (ok ? [] : [{ lab, name, saw }])),
  )
  expect(failed).toEqual([])
  // Each tests something besides that it starts.
  expect(labs.map(({ lab, checks }) => [lab, checks.length > 1])).toEqual(alone.map(({ name }) => [name, true]))
})
