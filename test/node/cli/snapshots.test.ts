import { expect, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { TestService } from '../../support/service.ts'

test('snapshots are taken, listed, restored and deleted by their names', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
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
    err: expect.stringContaining('nothing was restored (--yes answers)'),
  })
  expect((await patchbay.run(['ls'])).out).toMatch(/shot +stopped +2/)
  expect((await patchbay.run(['snapshot', 'restore', 'shot/before', '--yes'])).out).toMatch(/^shot is what it was at /)
  expect((await patchbay.run(['ls'])).out).toMatch(/shot +stopped +1/)

  expect((await patchbay.run(['snapshot', 'rm', 'shot/before'])).out).toBe('Deleted shot/before\n')
  await patchbay.run(['snapshot', 'create', 'shot', 'upgrade'])
  const wrong = [
    [['snapshot', 'create', 'shot', 'upgrade'], 1, 'upgrade'],
    [['snapshot', 'rm', 'shot/upgrad'], 1, 'did you mean upgrade?'],
    [['snapshot', 'rm', 'shot/before'], 1, 'the lab shot has no snapshot "before"'],
    [['snapshot', 'rm', 'shot'], 64, 'expected LAB/SNAPSHOT'],
    [['snapshot', 'restore', 'other/before', '-y'], 1, 'there is no lab "other"'],
    [['snapshot', 'delete', 'shot'], 64, 'expected one of ls, create, restore, rm'],
  ] as const
  for (const [argv, code, message] of wrong)
    expect(await patchbay.run(argv)).toMatchObject({ code, err: expect.stringContaining(message) })
})
