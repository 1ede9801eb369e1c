import { beforeAll, expect, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { TestService } from '../../support/service.ts'

let service: TestService

beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded' })
  return () => service.close()
})

test('snapshots are taken, listed, restored and deleted by their names', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file('lab.yaml', 'lab: shot\nnodes: { A: { kind: pc } }\n')
  await patchbay.run(['apply'])
  expect((await patchbay.run(['snapshot', 'ls', 'shot'])).out).toContain('shot has no snapshots')
  expect((await patchbay.run(['snapshot', 'create', 'shot', 'before'])).out).toMatch(/^Took shot\/before: .*B\n$/)
  await service.call('POST', '/v2/projects/shot/nodes', { name: 'B', node_type: 'pc' })
  expect(await patchbay.json(['snapshot', 'create', 'shot'])).toMatchObject({ snapshot: { name: expect.any(String) } })
  expect((await patchbay.run(['snapshot', 'ls', 'shot'])).out).toMatch(
    /^SNAPSHOT +TAKEN +RUNNING +SIZE\nbefore +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +0 /,
  )

  expect(await patchbay.run(['snapshot', 'restore', 'shot/before'])).toMatchObject({
    code: 64,
    err: expect.stringContaining('nothing was restored (--yes skips the question)'),
  })
  expect((await patchbay.run(['ls'])).out).toMatch(/shot +stopped +0 of 2/)
  expect((await patchbay.run(['snapshot', 'restore', 'shot/before', '--yes'])).out).toMatch(/^Restored shot to /)
  expect((await patchbay.run(['ls'])).out).toMatch(/shot +stopped +0 of 1/)

  expect((await patchbay.run(['snapshot', 'rm', 'shot/before'])).out).toBe('Deleted shot/before\n')
  await patchbay.run(['snapshot', 'create', 'shot', 'upgrade'])
  const wrong = [
    [['snapshot', 'create', 'shot', 'upgrade'], 1, 'upgrade'],
    [['snapshot', 'rm', 'shot/upgrad'], 1, 'did you mean upgrade?'],
    [['snapshot', 'rm', 'shot/before'], 1, 'the lab shot has no snapshot "before"'],
    [['snapshot', 'rm', 'shot'], 64, 'expected LAB/SNAPSHOT'],
    [['snapshot', 'restore', 'shot', 'before', '-y'], 1, 'the lab shot has no snapshot "before"'],
    [['snapshot', 'restore', 'shot/upgrade', 'shot/upgrade', '-y'], 64, 'expected one snapshot'],
    [['snapshot', 'rm', 'shot/upgrade', 'shot'], 64, 'expected LAB/SNAPSHOT, got "shot"'],
    [['snapshot', 'restore', 'other/before', '-y'], 1, 'there is no lab "other"'],
    [['snapshot', 'delete', 'shot'], 64, 'expected one of ls, create, restore, rm'],
  ] as const
  for (const [argv, code, message] of wrong)
    expect(await patchbay.run(argv)).toMatchObject({ code, err: expect.stringContaining(message) })
})

test('a snapshot is named by LAB/SNAPSHOT or by two words', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file('words.lab.yaml', 'lab: words\nnodes: { PC1: { kind: pc } }\n')
  await patchbay.run(['apply', 'words.lab.yaml'])
  const shots = [['words/one'], ['words', 'two'], ['words', 'three']]
  for (const words of shots) expect(await patchbay.run(['snapshot', 'create', ...words])).toMatchObject({ code: 0 })
  for (const words of [['words/two'], ['words', 'one']])
    expect((await patchbay.run(['snapshot', 'restore', ...words, '-y'])).out).toMatch(/^Restored words to /)
  expect((await patchbay.run(['snapshot', 'rm', 'words', 'one', 'two'])).out).toBe('Deleted words/one, words/two\n')
  expect((await patchbay.run(['snapshot', 'rm', 'words/three'])).out).toBe('Deleted words/three\n')
})
