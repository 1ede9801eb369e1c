import { once } from 'node:events'
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Value } from '@sinclair/typebox/value'
import { DOMParser, type Element } from '@xmldom/xmldom'
import { beforeAll, expect, test } from 'vitest'
import { jsonOutputs } from '../../../runtime/node/cli/json-outputs.ts'
import type { LabProject } from '../../../src/client/patchbay.ts'
import { CaptureReader } from '../../../src/packets/capture-reader.ts'
import { CommandLine } from '../../support/command-line.ts'
import { hangMs } from '../../support/limits.ts'
import { TestService } from '../../support/service.ts'

let service: TestService

beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded' })
  return () => service.close()
})

const labNames = async (): Promise<string[]> =>
  (await service.call<{ name: string }[]>('GET', '/v2/projects')).map(({ name }) => name)

/** A lab of two pcs on a cable, whose checks are given. */
const cable = (name: string, checks: string, address = '10.0.0.2/24'): string => `lab: ${name}
nodes:
  PC1: { kind: pc, config: { text: ip 10.0.0.1/24 } }
  PC2: { kind: pc, config: { text: ip ${address} } }
links: [{ name: cable, ends: [PC1, PC2] }]
checks:
${checks}`

const pings = '  - { from: PC1, ping: PC2 }\n'

test('a lab is made under a unique name, its checks run, and it is deleted', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file('cable.lab.yaml', cable('alone', `${pings}  - { link: cable, verdict: ok }\n`))
  await patchbay.run(['up'])
  const tested = await patchbay.run(['test'])
  expect(tested).toMatchObject({ code: 0, err: expect.stringContaining('Starting alone: 2 of 2') })
  expect(tested.out).toMatch(
    /^alone {2}cable\.lab\.yaml\n {2}ok .* starts\n {2}ok .* PC1 pings PC2\n {2}ok .* cable is ok\n1 lab, 2 checks: all ok in/,
  )
  // The lab that ran before was not touched, and no other is left.
  expect((await labNames()).filter((it) => it.startsWith('alone'))).toEqual(['alone'])

  const { labs } = await patchbay.json<{ labs: { name: string }[] }>(['test', '--keep'])
  const [{ name } = { name: '' }] = labs
  expect(labs).toMatchObject([
    {
      lab: 'alone',
      file: 'cable.lab.yaml',
      ok: true,
      checks: [{ name: 'starts' }, { name: 'PC1 pings PC2', ok: true }, {}],
    },
  ])
  expect((await patchbay.run(['inspect', name])).out).toContain('2 of 2 nodes running')
})

test('a file without checks is not reported as tested: the exit code is 6', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file('bare.lab.yaml', 'lab: bare\nnodes:\n  PC1: { kind: pc }\n')
  const { code, out } = await patchbay.run(['test', 'bare.lab.yaml'])
  expect(code).toBe(6)
  expect(out).toMatch(/ok .* starts\n {2}the file has no checks \(.*\)\n1 lab, 0 checks: no checks in bare in/)
  // Beside a file with checks, too; a failure weighs more.
  await patchbay.file('good.lab.yaml', cable('good', pings))
  expect((await patchbay.run(['test', 'bare.lab.yaml', 'good.lab.yaml'])).code).toBe(6)
  await patchbay.file('bad.lab.yaml', cable('bad', '  - { from: PC1, ping: PC2, within: 1s }\n', '10.7.0.2/24'))
  expect(await patchbay.run(['test', 'bare.lab.yaml', 'bad.lab.yaml'])).toMatchObject({
    ...{ code: 1, out: expect.stringContaining(': bad failed in ') },
  })
})

test('a failed check shows the actual result; the exit code is 1, and the other files are tested', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  const checks =
    '  - { from: PC1, ping: PC2, within: 1s }\n  - { on: PC1, type: show ip, expect: 10\\.7\\.0, within: 1s }\n'
  await patchbay.file('wrong.lab.yaml', cable('wrong', checks, '10.9.0.2/24'))
  await patchbay.file('right.lab.yaml', cable('right', pings))
  const { code, out } = await patchbay.run(['test', 'wrong.lab.yaml', 'right.lab.yaml', '--junit', 'reports/out.xml'])
  expect(code).toBe(1)
  expect(out).toMatch(/FAILED .* PC1 pings PC2\n +10\.9\.0\.2 did not answer within 1 s; the last output was:\n/)
  expect(out).toContain('Nothing after "show ip" matched 10\\.7\\.0 within 1 s')
  expect(out).toContain('2 labs, 3 checks: wrong failed in')

  const root = await xml(join(patchbay.home, 'reports/out.xml'))
  expect(attributes(root)).toMatchObject({ tests: '5', failures: '2', errors: '0', skipped: '0' })
  const suites = [...root.getElementsByTagName('testsuite')]
  expect(suites.map(attributes)).toMatchObject([
    { name: 'wrong', tests: '3', failures: '2', file: 'wrong.lab.yaml' },
    { name: 'right', tests: '2', failures: '0', timestamp: expect.stringMatching(/^[\d-]+T[\d:]+$/) },
  ])
  const [failure] = [...root.getElementsByTagName('failure')]
  expect(failure?.getAttribute('message')).toBe('10.9.0.2 did not answer within 1 s; the last output was:')
  expect(failure?.textContent).toContain('No gateway found')
  expect(await labNames()).not.toContainEqual(expect.stringMatching(/^(wrong|right)/))
})

test('a lab that does not start fails its test, and its checks are not run', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file(
    'stuck.lab.yaml',
    cable('stuck', pings).replace('kind: pc,', 'kind: pc, ready: { console: "a < b", within: 1s },'),
  )
  const { code, out } = await patchbay.run(['test', '--junit', 'out.xml'])
  expect(code).toBe(1)
  expect(out).toMatch(/FAILED .* starts\n +PC1: The node was not ready within 1 s/)
  expect(out).toContain('not run          PC1 pings PC2')
  const root = await xml(join(patchbay.home, 'out.xml'))
  expect(attributes(root)).toMatchObject({ tests: '2', failures: '1', skipped: '1' })
  expect(root.getElementsByTagName('failure')[0]?.textContent).toContain('a < b')
  expect(await labNames()).not.toContainEqual(expect.stringMatching(/^stuck/))
})

test('--running runs the checks on an existing lab', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file('exercise.lab.yaml', cable('exercise', '  - { link: cable, verdict: ok, within: 1s }\n'))
  expect(await patchbay.run(['test', '--running'])).toMatchObject({
    code: 1,
    out: expect.stringContaining('there is no lab "exercise"'),
  })
  await patchbay.run(['up', '--name', 'exercise-of-anna'])
  const anna = ['test', '--running', '--name', 'exercise-of-anna']
  expect(await patchbay.run(anna)).toMatchObject({ code: 0 })
  await patchbay.run(['link', 'exercise-of-anna/cable', '--suspend'])
  expect(await patchbay.run(anna)).toMatchObject({ code: 1, out: expect.stringContaining('Its verdict is suspended') })
  expect(await labNames()).toContain('exercise-of-anna')
})

test('labs are tested at the same time with --jobs', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  for (const name of ['one', 'two', 'three']) await patchbay.file(`${name}.lab.yaml`, cable(name, pings))
  const { code, out } = await patchbay.run(['test', 'one.lab.yaml', 'two.lab.yaml', 'three.lab.yaml', '--jobs', '3'])
  expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining('3 labs, 3 checks: all ok') })
  for (const name of ['one', 'two', 'three'])
    expect(out).toMatch(new RegExp(`${name} {2}${name}.lab.yaml\n {2}ok .* starts\n {2}ok .* PC1 pings PC2\n`))
})

test('--list shows the checks with their lines, and --only runs one of them', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  const checks = `${pings}  - { name: the cable, link: cable, verdict: ok }\n`
  await patchbay.file('one.lab.yaml', cable('one', checks))
  await patchbay.file('two.lab.yaml', cable('two', pings))
  expect(await patchbay.run(['test', '--list', 'one.lab.yaml', 'two.lab.yaml'])).toEqual({
    code: 0,
    out: 'one.lab.yaml:7  PC1 pings PC2\none.lab.yaml:8  the cable\ntwo.lab.yaml:7  PC1 pings PC2\n',
    err: '',
  })
  const { code, out } = await patchbay.run(['test', 'one.lab.yaml', 'two.lab.yaml', '--only', 'the cable'])
  expect(code).toBe(0)
  expect(out).toMatch(/^one {2}one.lab.yaml\n {2}ok .* starts\n {2}ok .* the cable\n\n?1 lab, 1 check: all ok/)
})

test('--artifacts keeps a capture, consoles and events of a lab that fails, and nothing of one that passes', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  const never = '  - { on: PC1, type: show ip, expect: never, within: 1s }\n'
  await patchbay.file('bad.lab.yaml', cable('bad', pings + never))
  await patchbay.file('good.lab.yaml', cable('good', pings))
  const argv = ['test', 'bad.lab.yaml', 'good.lab.yaml', '--artifacts', 'left', '--junit', 'out.xml']
  const { out } = await patchbay.run(argv)
  expect(out).toContain('  left in left/bad\n')
  expect(await readdir(join(patchbay.home, 'left'))).toEqual(['bad'])
  const text = (name: string) => readFile(join(patchbay.home, 'left/bad', name), 'utf8')
  expect(JSON.parse(await text('plan.json')).steps[0]).toMatchObject({ do: 'create' })
  expect(JSON.parse(await text('lab.json'))).toMatchObject({
    nodes: [{ name: 'PC1', status: 'started' }, { name: 'PC2' }],
    links: [{ name: 'cable', verdict: 'ok' }],
  })
  expect(await text('consoles/PC1.log')).toContain('show ip')
  expect(await text('events.jsonl')).toContain('"action":"node.updated"')
  const reader = new CaptureReader()
  const frames = reader.push(new Uint8Array(await readFile(join(patchbay.home, 'left/bad/links.pcapng'))))
  // The pcs ask for their own addresses when they start, and one for the other at the check.
  expect(frames.length).toBeGreaterThan(4)
  const cases = [...(await xml(join(patchbay.home, 'out.xml'))).getElementsByTagName('testcase')]
  expect(cases[2]?.getElementsByTagName('system-out')[0]?.textContent).toBe('bad.lab.yaml:8\nleft in left/bad')
})

test('--artifacts leaves what others have in its directory', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file('mine.lab.yaml', cable('mine', '  - { on: PC1, type: show ip, expect: never, within: 1s }\n'))
  await mkdir(join(patchbay.home, 'left/mine'), { recursive: true })
  await patchbay.file('left/mine/notes.txt', 'keep')
  for (const _ of ['first', 'second']) await patchbay.run(['test', '--artifacts', 'left'])
  expect((await readdir(join(patchbay.home, 'left'))).sort()).toEqual(['mine', 'mine-2'])
  expect(await readdir(join(patchbay.home, 'left/mine'))).toEqual(['notes.txt'])
})

test('the output with --json is as its schema says', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  const never = '  - { on: PC1, type: show ip, expect: never, within: 1s }\n'
  await patchbay.file('shape.lab.yaml', cable('shape', pings + never))
  const commands = [['test'], ['test', '--list'], ['up'], ['up', 'nowhere.lab.yaml']] as const
  for (const [command, ...more] of commands) {
    const output = await patchbay.json<object>([command, ...more])
    expect([...Value.Errors(jsonOutputs[command], output)]).toEqual([])
    const { schema } = await patchbay.json<{ schema: { properties: object } }>(['schema', '--of', command])
    expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(Object.keys(output)))
  }
})

/** A test of a lab that goes on until it is ended; its first check is over. */
async function endless(patchbay: CommandLine, name: string) {
  const never = '  - { name: never, on: PC1, type: show ip, expect: never, within: 5m }\n'
  await patchbay.file('ended.lab.yaml', cable(name, pings + never))
  const begun = patchbay.start(['test', '--junit', 'out.xml'])
  let out = ''
  await new Promise<void>((resolve) => {
    begun.stdout.on('data', (it) => {
      out += it
      if (out.includes('PC1 pings PC2')) resolve()
    })
  })
  return begun
}

test.each(['SIGINT', 'SIGTERM'] as const)('%s deletes the lab', async (signal) => {
  const patchbay = await CommandLine.of({ server: service.url })
  const name = `ended-by-${signal.toLowerCase()}`
  const begun = await endless(patchbay, name)
  begun.kill(signal)
  expect(await new Promise((resolve) => begun.once('exit', resolve))).toBe(130)
  expect(await labNames()).not.toContainEqual(expect.stringContaining(name))
  const root = await xml(join(patchbay.home, 'out.xml'))
  expect(attributes(root)).toMatchObject({ errors: '1', skipped: '1' })
})

test('the lab of a test that is killed is deleted by the service', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  const begun = await endless(patchbay, 'killed')
  begun.kill('SIGKILL')
  await once(begun, 'exit')
  const lab = (await labNames()).find((it) => it.startsWith('killed-test-')) ?? ''
  const { stop_at, ttl_deletes } = await service.call<LabProject>('GET', `/v2/projects/${lab}`)
  expect(ttl_deletes).toBe(true)
  expect(Date.parse(stop_at ?? '')).toBeLessThan(Date.now() + 600_000)
  await service.call('PUT', `/v2/projects/${lab}`, { ttl_s: 1 })
  await expect.poll(labNames, { timeout: hangMs }).not.toContain(lab)
})

test('no JSON has what the runner of GitHub takes for a command', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  const hostile = '##[add-mask]x'
  await patchbay.file('named.lab.yaml', cable('named', pings.replace('{', `{ name: "${hostile}",`)))
  for (const argv of [['named.lab.yaml', '--list'], [`${hostile}.lab.yaml`]]) {
    const { out } = await patchbay.run(['test', ...argv, '--json'])
    expect(out).not.toContain('##[')
    expect(JSON.stringify(JSON.parse(out))).toContain(hostile)
  }
})

test('faults are reported before a lab is made', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file('good.lab.yaml', cable('good', pings))
  await patchbay.file('bad.lab.yaml', cable('bad', '  - { from: PC9, ping: PC2 }\n'))
  await patchbay.file('file', '')
  const wrong = [
    [['good.lab.yaml', 'bad.lab.yaml'], 3, 'bad.lab.yaml:7:13: checks[0].from: there is no node "PC9"'],
    [['good.lab.yaml', 'nowhere.lab.yaml'], 3, 'nowhere.lab.yaml: there is no such file'],
    [['good.lab.yaml', '--junit', 'file/out.xml'], 64, '--junit: file/out.xml'],
    [['good.lab.yaml', '--junit', '.'], 64, '--junit: .: it is a directory, not a file'],
    [['good.lab.yaml', '--jobs', '0'], 64, '--jobs: expected a number from 1 to 16'],
    [['good.lab.yaml', 'bad.lab.yaml', '--name', 'x'], 64, '--name can be used with one file only'],
    [['good.lab.yaml', '--running', '--keep'], 64, '--keep'],
    [['good.lab.yaml', '--running', '--artifacts', 'left'], 64, '--artifacts and --running'],
    [['good.lab.yaml', '--artifacts', 'file/left'], 64, '--artifacts: file/left'],
    [['good.lab.yaml', '--only', 'PC1 pings PC3'], 64, 'did you mean PC1 pings PC2?'],
  ] as const
  for (const [argv, code, message] of wrong)
    expect(await patchbay.run(['test', ...argv])).toMatchObject({
      code,
      out: '',
      err: expect.stringContaining(message),
    })
  expect(await labNames()).not.toContainEqual(expect.stringMatching(/^good/))
})

const xml = async (path: string): Promise<Element> =>
  new DOMParser().parseFromString(await readFile(path, 'utf8'), 'text/xml').documentElement as Element

const attributes = (element: Element): Record<string, string> =>
  Object.fromEntries([...element.attributes].map(({ name, value }) => [name, value]))

test('--tasks prints which tasks are done, and the score', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  const checks = `  - { name: it answers, from: PC1, ping: PC2 }
  - { name: it is far, from: PC1, ping: 10.0.0.9, within: 1s }
tasks:
  - { name: Read this first, text: "*Hello*" }
  - { name: "A cable\tthat carries", checks: [it answers], points: 3 }
  - { name: Both, checks: [it answers, it is far], points: 2 }
`.replace('\t', ' ')
  await patchbay.file('course.lab.yaml', cable('course', checks))
  const tested = await patchbay.run(['test', '--tasks', '--junit', 'out.xml'])
  // The exit code is that of the checks.
  expect(tested.code).toBe(1)
  expect(tested.out).toMatch(
    /\n {2}done +3 of 3 {2}A cable that carries\n {2}open +0 of 2 {2}Both\n {2}score: 3 of 5 points\n/,
  )
  const root = await xml(join(patchbay.home, 'out.xml'))
  expect(attributes(root)).toMatchObject({ tests: '5', failures: '2' })
  const properties = [...root.getElementsByTagName('property')].map(attributes)
  expect(properties).toEqual([
    { name: 'score', value: '3' },
    { name: 'points', value: '5' },
  ])
  const cases = [...root.getElementsByTagName('testcase')].filter(
    (it) => it.getAttribute('classname') === 'course tasks',
  )
  expect(cases.map((it) => [it.getAttribute('name'), it.getElementsByTagName('failure')[0]?.textContent])).toEqual([
    ['A cable that carries', undefined],
    ['Both', '0 of 2 points: 1 of 2 checks passed'],
  ])

  const { labs } = await patchbay.json<{ labs: unknown[] }>(['test', '--tasks'])
  expect(labs).toMatchObject([
    {
      ok: false,
      tasks: [
        { name: 'A cable that carries', points: 3, done: true, holding: 1, checks: 1 },
        { name: 'Both', points: 2, done: false, holding: 1, checks: 2 },
      ],
      score: { points: 3, of: 5 },
    },
  ])
  // Without the flag the output is that of a file without tasks.
  expect((await patchbay.run(['test'])).out).not.toContain('score')
})

test('--tasks for a file without tasks says so, and makes no lab', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file('plain.lab.yaml', cable('plain', pings))
  expect(await patchbay.run(['test', '--tasks'])).toMatchObject({
    code: 3,
    err: expect.stringContaining('there are no tasks with checks to score'),
  })
})
