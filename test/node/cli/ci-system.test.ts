import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ciSystem } from '../../../runtime/node/cli/ci-system.ts'
import type { LabTestResult } from '../../../runtime/node/cli/lab-test.ts'

/** What is written to standard output. */
function output(): string[] {
  const written: string[] = []
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    written.push(String(text))
    return true
  })
  onTestFinished(() => spy.mockRestore())
  return written
}

const failed: LabTestResult = {
  ...{ file: 'labs/wan, edge.lab.yaml', lab: 'wan', name: 'wan-test-1', exit: 1, began: new Date(), seconds: 3 },
  parts: [
    { kind: 'start', name: 'starts', state: 'ok', seconds: 1, saw: null },
    { kind: 'check', name: '<b>x</b> | ::y', state: 'failed', seconds: 2, saw: '100%\n::error::z', line: 12 },
    { kind: 'check', name: 'late', state: 'not run', seconds: 0, saw: null, line: 13 },
  ],
  errors: [],
}

test('GitHub gets annotations and a table, and takes no output of a guest for a command', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-summary-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const summary = join(directory, 'summary.md')
  const written = output()
  const env = { GITHUB_ACTIONS: 'true', GITHUB_WORKSPACE: process.cwd(), GITHUB_STEP_SUMMARY: summary }
  const system = ciSystem({ json: false }, env)
  system.begin()
  await system.end([failed])
  const token = /^::stop-commands::([\w-]{36})\n$/.exec(written[0] ?? '')?.[1]
  expect(written.slice(1)).toEqual([
    `::${token}::\n`,
    '::error file=labs/wan%2C edge.lab.yaml,line=12,title=wan%3A <b>x</b> | %3A%3Ay::100%25%0A::error::z\n',
  ])
  expect(await readFile(summary, 'utf8')).toBe(`| lab | check | result | time | saw |
|---|---|---|---:|---|
| wan | starts | ✅ ok | 1&#46;0 s |  |
| wan | &#60;b&#62;x&#60;/b&#62; &#124; &#58;&#58;y | ❌ failed | 2&#46;0 s | 100% &#58;&#58;error&#58;&#58;z |
| wan | late | ⚪ not run |  |  |

`)
})

test('the table stays within what GitHub takes', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-summary-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const summary = join(directory, 'summary.md')
  output()
  const part = { kind: 'check', name: 'x', state: 'failed', seconds: 1, saw: '-'.repeat(300) } as const
  const system = ciSystem({ json: false }, { GITHUB_ACTIONS: 'true', GITHUB_STEP_SUMMARY: summary })
  await system.end([{ ...failed, parts: Array.from({ length: 1000 }, () => part) }])
  const text = await readFile(summary, 'utf8')
  expect(text.length).toBeLessThan(1 << 20)
  expect(text).toMatch(/\n\n\d+ more rows are left out\.\n/)
})

test('GitLab gets a section for each lab', () => {
  const { before, after } = ciSystem({ json: false }, { GITLAB_CI: 'true' }).section('wan')
  const plain = (mark: string) => JSON.stringify(mark).replace(/\d{10}/, 'TIME')
  expect(plain(before)).toBe('"\\u001b[0Ksection_start:TIME:wan_1\\r\\u001b[0K"')
  expect(plain(after())).toBe('"\\u001b[0Ksection_end:TIME:wan_1\\r\\u001b[0K"')
})

test('elsewhere, and where the output is JSON, there are only the lines of the test', async () => {
  const written = output()
  for (const system of [ciSystem({ json: false }, {}), ciSystem({ json: true }, { GITLAB_CI: 'true' })]) {
    system.begin()
    await system.end([failed])
    expect(system.section('wan').before).toBe('')
  }
  expect(written).toEqual([])
})
