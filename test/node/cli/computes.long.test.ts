import { expect, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { TestService } from '../../support/service.ts'

const embedded = { 'pc.engine': 'embedded' }

test('computes are added, listed and removed by their names', async () => {
  const [service, other] = await Promise.all([
    TestService.start(embedded),
    TestService.start({ user: 'lab', password: 'secret-of-the-test' }),
  ])
  const patchbay = await CommandLine.of({ server: service.url })
  const add = ['computes', 'add', other.url, '--name', 'rack', '--user', 'lab', '--label', 'site=attic']
  expect(await patchbay.run(add, { input: 'wrong' })).toMatchObject({ code: 1, out: '' })
  const added = await patchbay.run(add, { input: 'secret-of-the-test\n' })
  expect(added).toMatchObject({ code: 0, out: expect.stringMatching(/^Added rack; it is connected \(version /) })
  expect((await patchbay.run(['computes', 'ls'])).out).toMatch(
    /^COMPUTE +ID +STATE +CPU +MEMORY +LABELS +VERSION\n(.*\n)*rack +[\w-]+ +ready +.* site=attic /,
  )
  expect((await patchbay.run(['computes', 'label', 'rack', 'site=cellar', 'fast'])).out).toBe(
    'Set the labels of rack: site=cellar fast\n',
  )
  expect((await patchbay.run(['computes', 'ls'])).out).toContain(' site=cellar fast ')
  expect((await patchbay.run(['computes', 'label', 'rack'])).out).toBe('Removed the labels that were set for rack\n')
  const { computes } = await patchbay.json<{ computes: { name: string }[] }>(['computes', 'ls'])
  expect(JSON.stringify(computes)).not.toContain('secret-of-the-test')
  expect(await patchbay.run(['computes', 'rm', 'rcak'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('did you mean rack?'),
  })
  expect((await patchbay.run(['computes', 'rm', 'rack'])).out).toBe('Removed rack; the nodes there keep running\n')
  expect((await patchbay.run(['computes', 'ls'])).out).not.toContain('rack')
})

test('a compute is drained: its stopped labs move, and those that run are listed with exit code 4', async () => {
  const [service, other] = await Promise.all([TestService.start(embedded), TestService.start(embedded)])
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.run(['computes', 'add', other.url, '--name', 'rack', '--id', 'rack'])
  expect((await patchbay.run(['computes', 'drain', 'rack'])).out).toBe('rack has no labs, and gets no new ones\n')
  for (const name of ['still', 'busy']) {
    await service.call('POST', '/v2/projects', { name, compute_id: 'rack' })
    await service.call('POST', `/v2/projects/${name}/nodes`, { name: 'PC1', node_type: 'pc', compute_id: 'rack' })
  }
  await service.call('POST', '/v2/projects/busy/nodes/start')
  const drained = await patchbay.run(['computes', 'drain', 'rack'])
  expect(drained).toMatchObject({ code: 4, out: expect.stringMatching(/^LAB +STATE +NOW AT +REASON\n/) })
  expect(drained.out).toMatch(/\nbusy +stays +PC1 is running: the project can be moved after its nodes are stopped\n/)
  expect(drained.out).toMatch(/\nstill +moved +\S/)
  expect(drained.out).toMatch(/\n1 of 2 labs moved from rack, 1 stays\n$/)
  expect((await patchbay.run(['computes', 'ls'])).out).toMatch(/\nrack +rack +no new labs /)
  await patchbay.run(['stop', 'busy'])
  const { job } = await patchbay.json<{ job: { done: number } }>(['computes', 'drain', 'rack'])
  expect(job).toMatchObject({ status: 'done', done: 1, skipped: 0 })
  expect(await other.call('GET', '/v2/compute/projects?status=all')).toEqual([])
  expect((await patchbay.run(['computes', 'drain', 'rack', '--undo'])).out).toBe('rack accepts new labs again\n')
  expect((await patchbay.run(['computes', 'ls'])).out).toMatch(/\nrack +rack +ready /)
})

test('a lab file names computes by their names, too, but not by one that several have', async () => {
  const [service, other] = await Promise.all([TestService.start(embedded), TestService.start(embedded)])
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.run(['computes', 'add', other.url, '--name', 'rack', '--id', 'first'])
  await patchbay.file('named.lab.yaml', 'lab: named\nnodes:\n  PC1: { kind: pc }\n  PC2: { kind: pc, compute: rack }\n')
  expect(await patchbay.run(['up', 'named.lab.yaml'])).toMatchObject({ code: 0 })
  expect(await service.call('GET', '/v2/projects/named/nodes/PC2')).toMatchObject({ compute_id: 'first' })
  expect((await patchbay.run(['inspect', 'named'])).out).toMatch(/\nPC2 .* rack\n/)
  expect((await patchbay.run(['inspect', 'named/PC2'])).out).toMatch(/\n +compute +rack\n/)
  // The file says what is so; that its word is a name is no difference.
  for (const check of [
    ['diff', '--exit-code'],
    ['save', '--check'],
  ])
    expect(await patchbay.run([...check, 'named.lab.yaml'])).toMatchObject({ code: 0, err: '' })
  // Without names both have that of their address.
  for (const id of ['second', 'third']) await patchbay.run(['computes', 'add', other.url, '--id', id])
  const { computes } = await patchbay.json<{ computes: { name: string; compute_id: string }[] }>(['computes', 'ls'])
  const name = computes.find(({ compute_id }) => compute_id === 'third')?.name
  await patchbay.file('twice.lab.yaml', `lab: twice\ncompute: ${name}\nnodes: { PC1: { kind: pc } }\n`)
  expect(await patchbay.run(['up', 'twice.lab.yaml'])).toEqual({
    ...{ code: 3, out: '' },
    err: `twice.lab.yaml:3:10: nodes.PC1: 2 computes have the name ${name}; give an id: second, third\n`,
  })
  expect(await patchbay.run(['computes', 'rm', name as string])).toMatchObject({
    ...{ code: 1, err: expect.stringContaining('give an id: second, third') },
  })
  await patchbay.file('none.lab.yaml', 'lab: none\ncompute: rcak\nnodes: { PC1: { kind: pc } }\n')
  expect(await patchbay.run(['up', 'none.lab.yaml'])).toMatchObject({
    ...{
      code: 3,
      err: expect.stringMatching(
        /^none\.lab\.yaml:3:10: nodes\.PC1: there is no compute "rcak"; expected an id or a name/,
      ),
    },
  })
  expect((await patchbay.run(['ls'])).out).not.toMatch(/twice|none/)
})

test('a server that is not a compute is reported, and not registered', async () => {
  const service = await TestService.start(embedded)
  const patchbay = await CommandLine.of({ server: service.url })
  const wrong = [
    [['computes', 'add', '10.0.0.7'], 64, 'URL: expected an address such as'],
    [['computes', 'add', 'http://lab:secret@10.0.0.7'], 64, '--user'],
    [['computes', 'add', 'http://169.254.169.254'], 1, 'link-local'],
    [['computes', 'add', 'http://127.0.0.1:1', '--user', 'lab'], 64, 'expected a password on standard input'],
    [['computes', 'rm', 'local'], 1, 'local'],
  ] as const
  for (const [argv, code, message] of wrong)
    expect(await patchbay.run(argv)).toMatchObject({ code, err: expect.stringContaining(message) })
})
