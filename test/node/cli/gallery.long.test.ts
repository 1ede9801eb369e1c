import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { TestService } from '../../support/service.ts'

const gallery = resolve('examples')
const readme = readFileSync(join(gallery, 'README.md'), 'utf8')
/** The rows of the table of the gallery. */
const rows = [...readme.matchAll(/^\| \[([\w-]+)\]\(([^)]+)\) \| [^|]+ \| ([^|]+) \|$/gm)].map(
  ([, name = '', path = '', needs = '']) => ({ name, file: join(gallery, path), needs }),
)
/** An exercise has its solution beside it; its checks hold when that is applied. */
const solutionOf = ({ file }: { file: string }): string => join(dirname(file), 'solution.yaml')
const alone = rows.filter((row) => row.needs === 'nothing' && !existsSync(solutionOf(row)))
const exercises = rows.filter((row) => row.needs === 'nothing' && existsSync(solutionOf(row)))

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

test('the tasks of an exercise are open as it is, and done when its solution is applied', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const patchbay = await CommandLine.of({ server: service.url })
  expect(exercises.map(({ name }) => name)).toEqual(['repair'])
  for (const exercise of exercises) {
    const score = async () => {
      const words = ['test', '--tasks', '--running', exercise.file]
      const [lab] = (await patchbay.json<{ labs: TestedLab[] }>(words)).labs
      return lab
    }
    expect(await patchbay.run(['up', exercise.file])).toMatchObject({ code: 0 })
    const broken = await score()
    expect(broken?.checks.filter(({ ok }) => ok)).toEqual([])
    expect(broken?.score.points).toBe(0)
    expect(await patchbay.run(['up', solutionOf(exercise), '--restart'])).toMatchObject({ code: 0 })
    const repaired = await score()
    expect(repaired?.checks.filter(({ ok }) => !ok)).toEqual([])
    expect(repaired?.score.points).toBe(repaired?.score.of)
  }
})

interface TestedLab {
  readonly checks: readonly { readonly name: string; readonly ok: boolean }[]
  readonly score: { readonly points: number; readonly of: number }
}
