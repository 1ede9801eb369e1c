import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { emptyDisk } from '../../support/empty-disk.ts'
import { hangMs } from '../../support/limits.ts'
import { requireProgram } from '../../support/require.ts'
import { TestService } from '../../support/service.ts'
import { testWith } from '../../support/test-with.ts'

/** A LAN of pcs, with the address of the second one. */
const lan = (address = '10.0.1.2/24', more = ''): string => `lab: small-lan
nodes:
  PC1: { kind: pc, config: { text: "ip 10.0.1.1/24" } }
  PC2: { kind: pc, config: { text: "ip ${address}" } }
  PC3: { kind: pc, config: ./pc3.cfg }
segments:
  lan1: { kind: switch, members: [PC1, PC2, PC3] }
${more}`

test('up starts a service and a lab, does nothing without a difference, and down deletes the lab', async () => {
  const patchbay = await CommandLine.of()
  await patchbay.file('lan.lab.yaml', lan())
  await patchbay.file('pc3.cfg', 'ip 10.0.1.3/24')
  const first = await patchbay.run(['up'])
  expect(first).toMatchObject({ code: 0, out: expect.stringContaining('created 3 nodes, 1 segment and 3 links') })
  expect(first.out).toContain('PC1   pc    running  patchbay console small-lan/PC1\nPC2 ')
  expect(first.out).toMatch(/\nThe service on \S+ keeps running; "patchbay service stop" stops it\n$/)
  const ping = ['exec', 'small-lan/PC1', 'ping 10.0.1.3 -c 1', '--expect', 'bytes from 10.0.1.3']
  expect(await patchbay.run(ping)).toMatchObject({ code: 0 })

  const second = await patchbay.json<{ steps: object[]; nodes: object[] }>(['up', 'lan.lab.yaml'])
  expect(second).toMatchObject({ ok: true, steps: [] })
  expect(second.nodes[0]).toMatchObject({ name: 'PC1', status: 'started', ready: true, console: expect.any(Number) })
  expect((await patchbay.run(['diff', '--exit-code'])).code).toBe(0)

  expect((await patchbay.run(['down'])).out).toContain('small-lan: stopped')
  expect((await patchbay.run(['down', 'small-lan'])).out).toContain('nothing to do')
  expect(await patchbay.run(['down', '--delete'])).toMatchObject({ code: 64, err: expect.stringContaining('--yes') })
  expect((await patchbay.run(['down', '--delete', '--yes'])).out).toBe('small-lan: deleted\n')
  expect((await patchbay.run(['down', '--delete', '--yes'])).out).toContain('There is no lab small-lan')
  expect((await patchbay.run(['service', 'status'])).code).toBe(0)
})

test('after an edit only the differences are applied; steps that disturb a running node need a flag', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file('pc3.cfg', 'ip 10.0.1.3/24')
  await patchbay.file('lan.lab.yaml', lan())
  expect(await patchbay.run(['apply', '--dry-run', '--exit-code'])).toMatchObject({
    code: 2,
    out: expect.stringContaining('+ node PC1'),
  })
  expect((await patchbay.run(['ls'])).out).toContain('No labs')
  await patchbay.run(['up'])

  // A file for a service that lacks its image.
  const router =
    'lab: small-lan\nnodes:\n  R1:\n    kind: machine-emulator\n    image: none.qcow2\n    platform: x86_64\n'
  await patchbay.file('router.yaml', router)
  expect(await patchbay.run(['validate', 'router.yaml'])).toMatchObject({
    ...{ code: 3, out: '', err: expect.stringContaining('router.yaml:5:12: ') },
  })

  // With 21 such nodes.
  const routers = Array.from({ length: 21 }, (_, index) => router.replace(/^.*\nnodes:\n {2}R1/, `  R${index}`))
  await patchbay.file('router.yaml', `lab: small-lan\nnodes:\n${routers.join('')}`)
  expect((await patchbay.run(['validate', 'router.yaml'])).err).toMatch(/\nrouter\.yaml: and 1 more\n$/)

  await patchbay.file('lan.lab.yaml', lan('10.0.1.2/24', '  lan2: { kind: switch }\n'))
  const live = await patchbay.run(['up'])
  expect(live).toMatchObject({ code: 0, out: expect.stringContaining('created 1 segment') })

  await patchbay.file('lan.lab.yaml', lan('10.0.1.22/24'))
  const withheldStep = { out: expect.stringContaining('~ node PC2 (restart)') }
  expect(await patchbay.run(['diff', '--exit-code'])).toMatchObject({ code: 2, ...withheldStep })
  for (const command of ['up', 'apply'])
    expect(await patchbay.run([command, '--dry-run'])).toMatchObject({ code: 4, ...withheldStep })
  for (const command of ['up', 'apply'])
    expect(await patchbay.run([command, '--dry-run', '--exit-code'])).toMatchObject({ code: 2, ...withheldStep })
  const withheld = await patchbay.run(['up'])
  expect(withheld).toMatchObject({
    code: 4,
    out: expect.stringMatching(/Steps that need a flag:\n.*PC2.*\(--restart\)/),
  })
  expect(withheld.out).not.toContain('The service on')
  expect(await patchbay.run(['up', '--restart'])).toMatchObject({ code: 0 })

  await patchbay.file(
    'lan.lab.yaml',
    lan('10.0.1.22/24')
      .replace(/.*PC3: .*\n/, '')
      .replace(', PC3', ''),
  )
  const gone = await patchbay.run(['up'])
  expect(gone).toMatchObject({ code: 4, out: expect.stringMatching(/- node PC3.*\(--delete-extra\)/) })
  const deleted = await patchbay.run(['up', '--delete-extra'])
  expect(deleted).toMatchObject({ code: 0, out: expect.stringContaining('deleted 1 node') })
})

test('faults of a file are reported with line and column, before anything is changed', async () => {
  const patchbay = await CommandLine.of()
  await mkdir(join(patchbay.home, 'labs'))
  await writeFile(join(patchbay.home, 'secret.cfg'), 'secret')
  await symlink('../secret.cfg', join(patchbay.home, 'labs/linked.cfg'))
  await mkdir(join(patchbay.home, 'labs/directory.cfg'))
  await patchbay.file('labs/large.cfg', 'x'.repeat((1 << 20) + 1))
  await writeFile(join(patchbay.home, 'labs/binary.cfg'), Uint8Array.of(0xff, 0xfe))
  const wrong = [
    ['{ kind: pc, strat: true }', 'lab.yaml:3:20: nodes.PC1: unknown key "strat"; did you mean "start"?'],
    ['{ kind: pc, config: ./missing.cfg }', 'lab.yaml:3:28: nodes.PC1.config: "./missing.cfg": there is no such file'],
    ['{ kind: pc, config: ../secret.cfg }', '--allow-outside allows it'],
    ['{ kind: pc, config: ./linked.cfg }', 'outside the directory'],
    ['{ kind: pc, config: ./directory.cfg }', 'it is a directory'],
    ['{ kind: pc, config: ./large.cfg }', 'larger than 1 MiB'],
    ['{ kind: pc, config: ./binary.cfg }', 'not UTF-8 text'],
    ['{ kind: pc, after: [PC1] }', 'PC1'],
  ] as const
  for (const [node, message] of wrong) {
    await patchbay.file('labs/lab.yaml', `lab: wrong\nnodes:\n  PC1: ${node}\n`)
    expect(await patchbay.run(['validate', 'labs/lab.yaml'])).toMatchObject({
      code: 3,
      out: '',
      err: expect.stringContaining(message),
    })
    expect(await patchbay.json(['up', 'labs/lab.yaml'])).toMatchObject({
      ...{ ok: false, exit: 3 },
      errors: expect.arrayContaining([
        expect.objectContaining({ file: 'labs/lab.yaml', line: 3, column: expect.any(Number) }),
      ]),
    })
  }
  // All at once: a fault of the file, a file outside, and one that is missing.
  const nodes = [
    '{ kind: pc, strat: true }',
    '{ kind: pc, config: ../secret.cfg }',
    '{ kind: pc, config: ./missing.cfg }',
  ]
  await patchbay.file(
    'labs/lab.yaml',
    `lab: wrong\nnodes:\n${nodes.map((it, index) => `  PC${index}: ${it}\n`).join('')}`,
  )
  expect((await patchbay.run(['validate', 'labs/lab.yaml'])).err.split('\n')).toEqual([
    expect.stringContaining('labs/lab.yaml:3:20: '),
    expect.stringMatching(/^labs\/lab\.yaml:4:28: .*--allow-outside allows it$/),
    expect.stringMatching(/^labs\/lab\.yaml:5:28: .*there is no such file/),
    '',
  ])
  const many = Array.from({ length: 33 }, (_, index) => `  PC${index}: { kind: pc, config: ./pc${index}.cfg }\n`)
  await patchbay.file('labs/lab.yaml', `lab: wrong\nnodes:\n${many.join('')}`)
  expect((await patchbay.run(['validate', 'labs/lab.yaml'])).err.trimEnd().split('\n').slice(19)).toEqual([
    expect.stringContaining('labs/lab.yaml:22:'),
    'labs/lab.yaml: and 13 more',
  ])
  await patchbay.file('labs/lab.yaml', 'lab: right\nnodes:\n  R1:\n    kind: machine-emulator\n    image: none.qcow2\n')
  expect(await patchbay.run(['validate', 'labs/lab.yaml'])).toMatchObject({
    code: 0,
    out: expect.stringContaining('Images were not checked: no service is running here'),
  })
  // No service was started for a file that is wrong.
  expect((await patchbay.run(['service', 'status'])).code).toBe(5)
  expect(await patchbay.run(['up', 'nowhere.yaml'])).toMatchObject({
    code: 3,
    err: expect.stringContaining('nowhere.yaml'),
  })
  expect(await patchbay.run(['up'])).toMatchObject({ code: 64, err: expect.stringContaining('no *.lab.yaml here') })
})

test('one file is many labs by --name, variables come from --var, and JSON from standard input', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const patchbay = await CommandLine.of({ server: service.url })
  const file = JSON.stringify({
    lab: 'made',
    vars: { net: '10.0.0' },
    nodes: { PC1: { kind: 'pc', config: { text: 'echo hello' } } },
  })
  for (const name of ['anna', 'bert'])
    expect(await patchbay.run(['apply', '-', '--name', name, '--var', 'net=10.1.0'], { input: file })).toMatchObject({
      code: 0,
    })
  const { labs } = await patchbay.json<{ labs: { name: string }[] }>(['ls'])
  expect(labs.map(({ name }) => name).sort()).toEqual(['anna', 'bert'])
  expect(await patchbay.run(['apply', '-', '--var', 'nett=1'], { input: file })).toMatchObject({ code: 3 })
  expect(await patchbay.run(['apply', '-', '--var', 'net'], { input: file })).toMatchObject({ code: 64 })
  expect(await patchbay.run(['apply', '-', '--name', 'Anna B'], { input: file })).toMatchObject({
    code: 64,
    err: expect.stringContaining('--name: expected a name of 1 to 63 small letters, digits and -'),
  })
  expect(await patchbay.run(['apply', '-'], { input: 'x'.repeat((1 << 20) + 1) })).toMatchObject({
    code: 3,
    err: 'patchbay: stdin: it is larger than 1 MiB\n',
  })
})

test('down takes the lab that the file names, also when the file is wrong otherwise', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const patchbay = await CommandLine.of({ server: service.url })
  const part = 'nodes:\n  A:\n    kind: pc\n    labels:\n      lab: other\n'
  const files = [
    `${part}lab: mine\n`,
    `${part}lab: mine # of us\nlinks: wrong\n`,
    '{\n  "lab": "mine",\n  "nodes": 5\n}',
  ]
  for (const file of files) {
    await patchbay.file('mine.lab.yaml', file)
    expect(await patchbay.run(['down'])).toMatchObject({ code: 0, out: 'There is no lab mine; nothing to do\n' })
  }
  await patchbay.file('mine.lab.yaml', part)
  expect((await patchbay.run(['down'])).code).toBe(3)
})

test('names cannot control a terminal or a shell', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const patchbay = await CommandLine.of({ server: service.url })
  const file = (names: readonly string[]) => {
    const nodes = Object.fromEntries(
      names.map((name) => [name, { kind: 'pc', after: name === '$(id)' ? [] : ['$(id)'] }]),
    )
    return patchbay.file('odd.lab.yaml', JSON.stringify({ lab: 'odd', nodes }))
  }
  const names = ['$(id)', "it's", '路由器']
  // The character before 31m begins an escape sequence (ECMA-48, CSI); the other name turns the direction of text.
  for (const odd of ['a\u009b31m', 'b\u202e']) {
    await file([...names, odd])
    const { code, out, err } = await patchbay.run(['up'])
    expect([code, `${out}${err}`]).toEqual([3, expect.not.stringMatching(/[\u009b\u202e]/)])
  }
  await file(names)
  const { code, out } = await patchbay.run(['up'])
  expect(code).toBe(0)
  expect(out).toContain("patchbay console 'odd/$(id)'\n")
  expect(out).toContain("patchbay console 'odd/it'\\''s'\n")
  expect(out).toContain('patchbay console odd/路由器\n')
})

test('the reasons why nodes are not ready are reported in lines', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file(
    'never.lab.yaml',
    'lab: never\nnodes: { A: { kind: pc, ready: { console: never, within: 1s } } }\n',
  )
  const { code, out } = await patchbay.run(['up'])
  expect([code, out]).toEqual([1, expect.stringMatching(/^A: The node was not ready .*:\n(.*\n)+A>\n/)])
  await patchbay.run(['down', '--delete', '--yes'])
  const { steps } = await patchbay.json<{ steps: object[] }>(['up'])
  expect(steps).toMatchObject([
    { do: 'create', name: 'A', done: true },
    { do: 'start', name: 'A', done: false },
  ])
})

test('a lab that was made without the file is used only with --take-over', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const patchbay = await CommandLine.of({ server: service.url })
  await service.call('POST', '/v2/projects', { name: 'small-lan' })
  await patchbay.file('lan.lab.yaml', 'lab: small-lan\nnodes: { PC1: { kind: pc } }\n')
  expect(await patchbay.run(['apply'])).toMatchObject({ code: 3, err: expect.stringContaining('--take-over') })
  expect(await patchbay.run(['apply', '--take-over'])).toMatchObject({ code: 0 })
  expect(await patchbay.run(['apply'])).toMatchObject({ code: 0, out: expect.stringContaining('nothing to do') })
})

/** Ends a command by a signal once it has printed a line; gives its exit code and what it printed. */
async function endedAt(
  command: ReturnType<CommandLine['start']>,
  isThere: (text: string) => boolean,
  signal: NodeJS.Signals,
) {
  let text = ''
  let isSent = false
  command.stderr.on('data', (bytes) => {
    text += String(bytes)
    if (isSent || !isThere(text)) return
    isSent = true
    command.kill(signal)
  })
  command.stdout.on('data', (bytes) => {
    text += String(bytes)
  })
  const code = await new Promise<number | null>((resolve) => command.once('close', resolve))
  return { code, text }
}

test('an up that a signal ends at any moment is finished by the next one', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const patchbay = await CommandLine.of({ server: service.url })
  const idle = () =>
    expect
      .poll(() =>
        service.call<{ status: string }[]>('GET', '/v2/jobs').then((jobs) => jobs.map(({ status }) => status)),
      )
      .not.toContain('running')
  for (const [moment, signal] of [
    ['Applying', 'SIGINT'],
    ['Applying', 'SIGKILL'],
    ['Starting', 'SIGINT'],
    ['Starting', 'SIGKILL'],
  ] as const) {
    const lab = `${moment}-${signal}`.toLowerCase()
    // Many to make, or a few that are not ready at once.
    const [count, ready] = moment === 'Applying' ? [40, ''] : [3, ', ready: { after: 1s }']
    const wanted = Array.from({ length: count }, (_, index) => `  PC${index}: { kind: pc${ready} }`).join('\n')
    const file = await patchbay.file(`${lab}.lab.yaml`, `lab: ${lab}\nnodes:\n${wanted}\n`)
    const { code, text } = await endedAt(patchbay.start(['up', file]), (it) => it.includes(`${moment} ${lab}`), signal)
    expect([lab, code], text).toEqual([lab, signal === 'SIGINT' ? 130 : null])
    const said = { Applying: 'the completed steps were reverted', Starting: 'the lab was created' }[moment]
    if (signal === 'SIGINT') expect(text).toContain(`interrupted: ${said}`)
    // The steps of a lab are taken by one job at a time.
    await idle()
    // A first apply that was cancelled leaves nothing, one whose command was killed goes on.
    const labs = await service.call<{ name: string }[]>('GET', '/v2/projects')
    expect(labs.some(({ name }) => name === lab)).toBe(!(moment === 'Applying' && signal === 'SIGINT'))
    expect(await patchbay.run(['up', file])).toMatchObject({ code: 0 })
    const nodes = await service.call<{ status: string }[]>('GET', `/v2/projects/${lab}/nodes`)
    expect(nodes.map(({ status }) => status)).toEqual(Array(count).fill('started'))
    await service.call('DELETE', `/v2/projects/${lab}`)
  }
})

/**
 * A service with one job, whose state it tells only after a cancel: `after`; without that it answers nothing any more. `asked` resolves when
 * the state was asked for.
 */
async function serviceWithJob(after: object | undefined): Promise<{ url: string; asked: Promise<unknown> }> {
  const [job_id, project_id] = [randomUUID(), randomUUID()]
  let isCancelled = false
  const steps = [{ do: 'create', what: 'node', name: 'PC1', how: 'live' }]
  const server = createServer((request, response) => {
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (request.method === 'PUT')
      answer(202, { lab: 'one', project_id, revision: 1, steps, withheld: [], extra: [], job_id })
    else if (request.method === 'DELETE') {
      isCancelled = true
      if (after === undefined) server.closeAllConnections()
      else response.writeHead(204).end()
    } else if (!isCancelled) server.emit('asked')
    else if (after === undefined) response.destroy()
    else answer(200, { job_id, project_id, action: 'apply', nodes: [], done: 0, total: 1, ...after })
  })
  onTestFinished(() => void server.close().closeAllConnections())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, asked: once(server, 'asked') }
}

test.for<[command: 'up' | 'apply', after: object | undefined, said: string]>([
  ['up', { status: 'cancelled', skipped: 1 }, 'the completed steps were reverted'],
  // The cancel comes when the work is done.
  ['up', { status: 'cancelled', done: 1, start_job_id: 'a job' }, 'the lab was created'],
  ['apply', { status: 'done', done: 1 }, 'all steps were already done'],
  ['apply', undefined, 'the result is unknown'],
  // For ten seconds: then nobody knows.
  ['apply', { status: 'running' }, 'the result is unknown'],
])('what %s has come to when it is interrupted is what the service says: %o', async ([command, after, said]) => {
  const { url, asked } = await serviceWithJob(after)
  const patchbay = await CommandLine.of({ server: url })
  await patchbay.file('one.lab.yaml', 'lab: one\nnodes: { PC1: { kind: pc } }\n')
  const running = patchbay.start([command])
  let err = ''
  running.stderr.on('data', (bytes) => {
    err += String(bytes)
  })
  const closed = once(running, 'close')
  await asked
  running.kill('SIGINT')
  expect(await closed).toEqual([130, null])
  expect(err).toContain(`patchbay: interrupted: ${said}`)
})

test('an up that is killed while it starts its service leaves the next one a service', async () => {
  const patchbay = await CommandLine.of()
  await patchbay.file('one.lab.yaml', 'lab: one\nnodes: { PC1: { kind: pc } }\n')
  const begun = patchbay.start(['up'])
  const ended = new Promise((resolve) => begun.once('exit', resolve))
  // The first thing that a service makes.
  await expect.poll(() => existsSync(patchbay.data), { timeout: hangMs, interval: 5 }).toBe(true)
  begun.kill('SIGKILL')
  await ended
  expect(await patchbay.run(['up'])).toMatchObject({ code: 0, out: expect.stringContaining('PC1   pc    running') })
  expect(await patchbay.run(['diff', '--exit-code'])).toMatchObject({ code: 0 })
})

test('up takes a topology of containerlab as it is, and says what it changed; save asks for a lab file', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const patchbay = await CommandLine.of({ server: service.url })
  const nodes = '    h1: { kind: linux, env: { A: b } }\n    h2: { kind: linux }\n'
  const links = '    - endpoints: ["h1:eth1", "h2:eth1"]\n'
  await patchbay.file('dc.clab.yml', `name: dc\ntopology:\n  nodes:\n${nodes}  links:\n${links}`)
  const first = await patchbay.run(['up', 'dc.clab.yml'])
  expect(first).toMatchObject({ code: 0, out: expect.stringContaining('created 2 nodes and 1 link') })
  expect(first.err).toContain('dc.clab.yml: imported from containerlab')
  expect(first.err).toContain('topology.nodes.h1.env: it applies only to containers')
  expect(await patchbay.run(['diff', 'dc.clab.yml', '--exit-code'])).toMatchObject({ code: 0 })
  expect(await patchbay.run(['validate', 'dc.clab.yml'])).toMatchObject({ code: 0 })
  // A lab file in JSON with a node of that name is none of another program.
  await patchbay.file('own.json', JSON.stringify({ lab: 'own', nodes: { topology: { kind: 'pc' } } }, null, 2))
  expect(await patchbay.run(['validate', 'own.json'])).toMatchObject({ code: 0 })
  expect(await patchbay.run(['save', 'dc.clab.yml'])).toMatchObject({
    code: 3,
    err: expect.stringContaining('"patchbay import dc.clab.yml" makes a lab file of it'),
  })
  expect(await patchbay.run(['down', 'dc.clab.yml', '--delete', '--yes'])).toMatchObject({ code: 0 })
  // What no importer can read is refused with its place in the file, and nothing is made.
  await patchbay.file('bad.clab.yml', 'name: bad\ntopology:\n  nodes: [a, b]\n')
  expect(await patchbay.run(['up', 'bad.clab.yml'])).toMatchObject({
    code: 3,
    err: expect.stringMatching(/bad\.clab\.yml:3:/),
  })
  expect((await patchbay.run(['ls'])).out).toContain('No labs')
})

/** SR Linux is a container of its vendor, and the image of FRR is not there: only the hosts can run. */
const fabric = `name: dc
topology:
  nodes:
    leaf: { kind: nokia_srlinux, image: ghcr.io/nokia/srlinux:24.10, license: key.txt }
    router: { kind: linux, image: quay.io/frrouting/frr:9.1.0, binds: [daemons:/etc/frr/daemons, none:/none] }
    h1: { kind: linux, exec: [ip addr add 10.0.0.1/24 dev eth1] }
    h2: { kind: linux, exec: [ip addr add 10.0.0.2/24 dev eth1] }
  links:
    - endpoints: [leaf:e1-49, router:eth1]
    - endpoints: [leaf:e1-1, h1:eth1]
    - endpoints: [router:eth2, h2:eth1]
`

test('up of a topology says all that cannot run and starts nothing; with --partial what can run is started', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file('dc.clab.yml', fabric)
  await patchbay.file('daemons', 'bgpd=yes\n')
  const all = await patchbay.run(['up', 'dc.clab.yml'])
  expect([all.code, all.out]).toEqual([3, ''])
  expect(all.err.split('\n')).toEqual([
    'dc.clab.yml: imported from containerlab',
    '',
    'Changed',
    '  dc.clab.yml:5:28: topology.nodes.router.image: the image "quay.io/frrouting/frr:9.1.0" is the archive quay.io_frrouting_frr_9.1.0.tar here',
    '',
    'Left out',
    '  dc.clab.yml:4:70: topology.nodes.leaf.license: the node cannot run here',
    '  dc.clab.yml:5:98: topology.nodes.router.binds[1]: there is no text file "none" in the directory of the topology',
    '',
    'dc.clab.yml:4:5: leaf cannot run: it is a container of its vendor, and only ordinary ones (of the kind linux) can run here yet',
    'dc.clab.yml:5:5: router cannot run: there is no image "quay.io_frrouting_frr_9.1.0.tar": "patchbay images pull quay.io/frrouting/frr:9.1.0" fetches it, or "docker save -o quay.io_frrouting_frr_9.1.0.tar quay.io/frrouting/frr:9.1.0" makes a file to upload',
    'patchbay: "patchbay images push FILE --name quay.io_frrouting_frr_9.1.0.tar" uploads an image',
    'patchbay: 2 of 4 nodes can run ("patchbay up dc.clab.yml --partial" starts these, and creates the others as placeholders)',
    '',
  ])
  expect((await patchbay.run(['ls'])).out).toContain('No labs')

  const partial = await patchbay.run(['up', 'dc.clab.yml', '--partial', '--no-pull'])
  expect(partial.code).toBe(7)
  expect(partial.out).toContain('created 4 nodes and 3 links, started 2 nodes')
  expect(partial.out).toMatch(/^leaf +machine-emulator +placeholder *$/m)
  expect(partial.out).toMatch(/^router +container +placeholder *$/m)
  expect(partial.out).toMatch(/^h1 +pc +running +patchbay console dc\/h1$/m)
  expect(partial.out).toContain('2 of 4 nodes can run; the others are placeholders:')
  const again = await patchbay.json<{ steps: object[]; cannot_run: object[] }>([
    'up',
    'dc.clab.yml',
    '--partial',
    '--no-pull',
  ])
  expect(again).toMatchObject({ ok: false, exit: 7, steps: [] })
  expect(again.cannot_run[0]).toMatchObject({ name: 'leaf', line: 4, column: 5 })

  expect(await patchbay.run(['diff', 'dc.clab.yml'])).toMatchObject({ code: 0, out: 'dc matches dc.clab.yml\n' })
  expect(await patchbay.run(['validate', 'dc.clab.yml'])).toMatchObject({
    code: 3,
    err: expect.stringContaining('dc.clab.yml:4:5: leaf cannot run'),
  })

  // Without such nodes the exit code is that of any file.
  await patchbay.file('hosts.clab.yml', 'name: hosts\ntopology: { nodes: { h1: { kind: linux } } }\n')
  expect((await patchbay.run(['up', 'hosts.clab.yml'])).code).toBe(0)
})

testWith(requireProgram('qemu-system-x86_64'), requireProgram('qemu-img'))(
  'up of a machine without a platform says where it is missing, and what would be right, before anything is made',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const patchbay = await CommandLine.of({ server: service.url })
    const image = { method: 'POST', body: emptyDisk() }
    expect((await service.fetch('/v2/compute/machine-emulator/images/router.img', image)).ok).toBe(true)
    const file = (more: string) =>
      `lab: plain\nnodes:\n  PC1: { kind: pc }\n  R1: { kind: machine, image: router.img${more} }\n`
    await patchbay.file('plain.lab.yaml', file(''))
    const fault =
      'plain.lab.yaml:4:3: nodes.R1: "platform" is missing; write platform: x86_64, or the platform that its image is for\n'
    for (const flags of [[], ['--partial'], ['--dry-run']])
      expect(await patchbay.run(['up', 'plain.lab.yaml', ...flags])).toMatchObject({ code: 3, out: '', err: fault })
    expect(await service.call('GET', '/v2/projects')).toEqual([])
    await patchbay.file('plain.lab.yaml', file(', platform: x86_64'))
    expect(await patchbay.run(['apply', 'plain.lab.yaml'])).toMatchObject({ code: 0 })
    // What it has need not be in the file again.
    await patchbay.file('plain.lab.yaml', file(', ram: 300'))
    expect(await patchbay.run(['apply', 'plain.lab.yaml', '--dry-run'])).toMatchObject({ code: 0 })
    // A second fault of the same node is said at once.
    await patchbay.file('two.lab.yaml', 'lab: two\nnodes:\n  R1: { kind: machine, image: none.qcow2 }\n')
    const { err } = await patchbay.run(['up', 'two.lab.yaml'])
    expect(err).toContain('two.lab.yaml:3:3: nodes.R1: "platform" is missing')
    expect(err).toContain('there is no image "none.qcow2"')
  },
)

test('up of a lab file whose images are missing says how they are uploaded, and that --partial starts the others', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const patchbay = await CommandLine.of({ server: service.url })
  const lab = (more = '') =>
    `lab: missing\nnodes:\n  R1: { kind: machine, platform: x86_64, image: gone.qcow2 }\n  PC1: { kind: pc }\n${more}`
  await patchbay.file('missing.lab.yaml', lab())
  for (const command of ['up', 'apply']) {
    const refused = await patchbay.run([command, 'missing.lab.yaml'])
    expect(refused).toMatchObject({ code: 3, out: '' })
    expect(refused.err.trimEnd().split('\n')).toEqual([
      'missing.lab.yaml:3:49: nodes.R1.image: there is no image "gone.qcow2"; upload it first',
      'patchbay: "patchbay images push FILE --name gone.qcow2" uploads an image',
      'patchbay: 1 of 2 nodes can run ("patchbay up missing.lab.yaml --partial" starts these, and creates the others as placeholders)',
    ])
  }
  expect((await patchbay.run(['ls'])).out).toContain('No labs')
  expect(await patchbay.run(['up', 'missing.lab.yaml', '--partial'])).toMatchObject({ code: 7 })
  // Where more is wrong, it is no way out.
  await patchbay.file('missing.lab.yaml', lab('  PC2: { kind: pcx }\n'))
  expect((await patchbay.run(['up', 'missing.lab.yaml'])).err).not.toContain('--partial')
})
