import { once } from 'node:events'
import { mkdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { hangMs } from '../../support/limits.ts'
import { TestService } from '../../support/service.ts'
import { zipOf } from '../../support/zip.ts'

let service: TestService

beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded' })
  return () => service.close()
})

/** A lab of two linked pcs. */
async function lab(name: string): Promise<CommandLine> {
  await service.call('POST', '/v2/projects', { name })
  for (const pc of ['PC1', 'PC2'])
    await service.call('POST', `/v2/projects/${name}/nodes`, { name: pc, node_type: 'pc' })
  await service.call('POST', `/v2/projects/${name}/links`, { nodes: ['PC1:Ethernet0', 'PC2:Ethernet0'] })
  return CommandLine.of({ server: service.url })
}

test('labs and nodes are started, shown and stopped by their names', async () => {
  const patchbay = await lab('wan-edge')
  expect((await patchbay.run(['ls'])).out).toMatch(/^LAB +STATE +NODES\n(.*\n)*wan-edge +stopped +0 of 2\n/)
  expect(await patchbay.run(['start', 'wan-edge'])).toMatchObject({ code: 0, out: 'wan-edge: 2 nodes started\n' })
  expect((await patchbay.run(['inspect', 'wan-edge'])).out).toMatch(
    /^wan-edge: 2 of 2 nodes running, 1 link\n\nNODE +KIND +STATE +CONSOLE +COMPUTE\nPC1 +pc +running +telnet \d+ +\S+\n/,
  )
  expect((await patchbay.run(['inspect', 'wan-edge'])).out).toContain('PC1:e0 -- PC2:e0  ok     none\n')
  expect(await patchbay.run(['stop', 'wan-edge/PC1'])).toMatchObject({ code: 0, out: 'wan-edge: 1 node stopped\n' })
  const { labs } = await patchbay.json<{ labs: { name: string }[] }>(['ls'])
  expect(labs.find(({ name }) => name === 'wan-edge')).toMatchObject({ state: 'running', nodes: 2, running: 1 })
  // The objects of --json have the words of the tables, too.
  expect(await patchbay.json(['inspect', 'wan-edge'])).toMatchObject({
    nodes: [{ name: 'PC1', state: 'stopped' }, { state: 'running' }],
    links: [{ state: 'stopped' }],
  })
})

test('a node is shown with its state, its console, and where its ports lead; with --json with all its settings', async () => {
  const patchbay = await lab('one-node')
  await patchbay.run(['start', 'one-node/PC1'])
  const { out } = await patchbay.run(['inspect', 'one-node/PC1'])
  expect(out).toMatch(
    /^one-node\/PC1\n {2}kind +PC\n {2}state +running\n {2}console +patchbay console one-node\/PC1 {2}\(telnet 127.0.0.1:\d+\)\n/,
  )
  expect(out).toMatch(/\n\nPORT +PEER +STATE +REASON\ne0 +PC2:e0 +stopped +PC2 is not running: start it\n$/)
  expect(await patchbay.json(['inspect', 'one-node/PC1'])).toMatchObject({
    node: { node_type: 'pc', state: 'running', properties: { engine: 'embedded' } },
    ports: [{ port: 'e0', peer: 'PC2:e0', state: 'stopped' }],
  })
})

test('the links of a lab are listed; a change needs the name of one', async () => {
  const patchbay = await lab('linked')
  await patchbay.run(['link', 'linked/PC1:e0', '--delay', '5ms'])
  const { out } = await patchbay.run(['link', 'linked'])
  expect(out).toMatch(/^LINK +STATE +IMPAIRMENT\nPC1:e0 -- PC2:e0 +stopped +delay 5ms\n\nPC1:e0 -- PC2:e0: /)
  expect(await patchbay.json(['link', 'linked'])).toMatchObject({
    lab: 'linked',
    links: [{ ends: ['PC1:e0', 'PC2:e0'], state: 'stopped' }],
  })
  expect(await patchbay.run(['link', 'linked', '--clear'])).toMatchObject({
    ...{ code: 64, err: expect.stringContaining('expected LAB/LINK ("patchbay link linked" lists the links)') },
  })
})

test('a question does not take a letter that was typed before it was shown', async () => {
  const patchbay = await lab('kept')
  const down = patchbay.startOnTerminal('patchbay down kept --delete')
  // While the command starts.
  down.type('y')
  await down.shows('Delete the lab kept')
  down.type('n')
  expect(await down.ended()).toContain('nothing was deleted')
  const again = patchbay.startOnTerminal('patchbay down kept --delete')
  await again.shows('Delete the lab kept')
  again.type('y')
  expect(await again.ended()).toContain('kept: deleted')
})

test('start and stop count nodes as ls does: without segments, unless only these are named', async () => {
  const patchbay = await lab('segmented')
  await service.call('POST', '/v2/projects/segmented/nodes', { name: 'sw1', node_type: 'switch' })
  expect((await patchbay.run(['ls'])).out).toMatch(/segmented +stopped +0 of 2\n/)
  expect(await patchbay.run(['start', 'segmented'])).toMatchObject({ code: 0, out: 'segmented: 2 nodes started\n' })
  const stopped = await patchbay.json<{ jobs: object[] }>(['stop', 'segmented/PC1', 'segmented/sw1'])
  expect(stopped.jobs).toMatchObject([{ lab: 'segmented', status: 'done', done: 1, total: 1 }])
  expect((await patchbay.run(['start', 'segmented/sw1'])).out).toBe('segmented: 1 segment started\n')
})

test('nodes that this service cannot run are named with the reason, and a start that starts nothing fails', async () => {
  const nodes = ['web', 'db'].map((name) => ({
    ...{ name, node_id: crypto.randomUUID(), node_type: 'traceng', compute_id: 'local', x: 0, y: 0, z: 1 },
    ...{ properties: {}, symbol: ':/s.svg', console_type: 'telnet', label: { text: name } },
  }))
  const document = {
    ...{ name: 'containers', project_id: crypto.randomUUID(), revision: 9, type: 'topology', version: '2.2.59' },
    topology: { computes: [], drawings: [], links: [], nodes },
  }
  const archive = zipOf([{ name: 'project.gns3', data: JSON.stringify(document) }])
  const imported = await service.fetch(`/v2/projects/${crypto.randomUUID()}/import`, {
    method: 'POST',
    body: new Uint8Array(archive),
  })
  expect(imported.status).toBe(201)
  const patchbay = await CommandLine.of({ server: service.url })
  const started = await patchbay.run(['start', 'containers'])
  expect(started).toMatchObject({ code: 1 })
  expect(started.out).toMatch(
    /^containers: 0 nodes started of 2\n( {2}containers\/(web|db): .* no kind traceng, .*\n){2}$/,
  )
  await service.call('POST', '/v2/projects/containers/nodes', { name: 'PC1', node_type: 'pc' })
  const partly = await patchbay.run(['start', 'containers'])
  expect([partly.code, partly.out.split('\n').length]).toEqual([0, 4])
  expect(await patchbay.run(['start', 'containers/web'])).toMatchObject({ code: 1 })
})

test('a lab that could not be stopped is not reported as stopped', async () => {
  const nodes = [{ name: 'PC1', state: 'failed', reason: 'Its keeper does not answer' }]
  const answers: Readonly<Record<string, unknown>> = {
    'GET /v2/projects/one': { project_id: '1', name: 'one', status: 'opened' },
    'GET /v2/projects/1/nodes': [{ name: 'PC1', status: 'started' }],
    'POST /v2/projects/1/jobs': { job_id: '2' },
    'GET /v2/jobs/2': { ...{ action: 'stop', status: 'failed', reason: null, nodes, done: 0, failed: 1 }, skipped: 0 },
  }
  const server = createServer(({ method, url }, response) => {
    response.end(JSON.stringify(answers[`${method} ${url}`]))
  })
  onTestFinished(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const patchbay = await CommandLine.of({ server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
  expect(await patchbay.run(['down', 'one'])).toMatchObject({
    code: 1,
    out: 'PC1: Its keeper does not answer\none could not be stopped; "patchbay down one" retries\n',
  })
})

test('nodes are sorted by name, not by creation', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  await service.call('POST', '/v2/projects', { name: 'mixed' })
  for (const pc of ['PC10', 'PC2', 'A'])
    await service.call('POST', '/v2/projects/mixed/nodes', { name: pc, node_type: 'pc' })
  const { nodes } = await patchbay.json<{ nodes: { name: string }[] }>(['inspect', 'mixed'])
  expect(nodes.map(({ name }) => name)).toEqual(['A', 'PC2', 'PC10'])
  expect((await patchbay.run(['inspect', 'mixed'])).out).toMatch(/\nA +pc .*\nPC2 +pc .*\nPC10 +pc /)
})

test('a link is shown by its name, which commands take, and its ends', async () => {
  const patchbay = await lab('titled')
  const [link] = await service.call<{ link_id: string }[]>('GET', '/v2/projects/titled/links')
  await service.call('PUT', `/v2/projects/titled/links/${link?.link_id}`, { name: 'core' })
  expect((await patchbay.run(['inspect', 'titled'])).out).toContain('\ncore (PC1:e0 -- PC2:e0)  ')
  expect((await patchbay.run(['link', 'titled/core'])).out).toMatch(/^core \(PC1:e0 -- PC2:e0\)\n/)
  expect(await patchbay.json(['inspect', 'titled'])).toMatchObject({
    links: [{ name: 'core', ends: ['PC1:e0', 'PC2:e0'] }],
  })
})

test('a name that is not known is an error with the nearest one', async () => {
  const patchbay = await lab('names')
  const errors = [
    [['inspect', 'namse'], 'there is no lab "namse"', 'did you mean names?'],
    [['start', 'names/PC3'], 'the lab names has no node "PC3"', 'did you mean PC1?'],
    [['link', 'names/PC1:e7'], 'the lab names has no link "PC1:e7"', 'it has PC1:e0 -- PC2:e0'],
    [['console', 'names/PC1'], 'names/PC1 is stopped', '"patchbay start names/PC1" starts it'],
  ] as const
  for (const [argv, message, hint] of errors) {
    expect(await patchbay.run(argv)).toMatchObject({ code: 1, out: '', err: expect.stringContaining(message) })
    const { ok, exit, errors } = await patchbay
      .json<{ errors: object[] }>(argv)
      .catch(() => ({ ok: false, exit: 1, errors: [] }))
    if (argv[0] !== 'console') expect({ ok, exit, errors }).toMatchObject({ ok: false, exit: 1, errors: [{ hint }] })
  }
})

test('projects that no lab file or lab has made are listed, too', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'bare' })
  await service.call('POST', `/v2/compute/projects/${project_id}/close`)
  expect((await patchbay.run(['ls'])).out).toMatch(/^bare +closed +- *$/m)
})

test('a lab is found by its name where a directory has it, too', async () => {
  const patchbay = await lab('directory')
  await mkdir(join(patchbay.home, 'directory'))
  expect(await patchbay.run(['down', 'directory'])).toMatchObject({ code: 0, err: '' })
})

test('a link is impaired and suspended while it runs; other settings stay', async () => {
  const patchbay = await lab('impaired')
  const link = (...argv: string[]) => patchbay.run(['link', 'impaired/PC1--PC2', ...argv])
  expect((await link()).out).toContain('impairment  none\n')
  expect((await link('--delay', '20ms', '--jitter', '3ms')).out).toContain('impairment  delay 20ms jitter 3ms\n')
  expect((await link('--loss', '0.5%', '--there')).out).toContain(
    'impairment  there loss 0.5% delay 20ms jitter 3ms, back delay 20ms jitter 3ms\n',
  )
  expect((await link('--delay', '0', '--loss', '0', '--suspend')).out).toMatch(
    /suspended[^\n]*\n {2}impairment {2}none\n/,
  )
  expect((await link('--resume')).out).not.toContain('suspended')
  const wrong = [
    [['--delay', '20'], '--delay: expected a time such as 20ms'],
    [['--jitter', '3ms'], '--jitter: jitter needs delay'],
    [['--there', '--back', '--loss', '1%'], 'both directions'],
  ] as const
  for (const [argv, message] of wrong)
    expect(await link(...argv)).toMatchObject({ code: 64, err: expect.stringContaining(message) })
})

test('a terminal has colours, but not with NO_COLOR; a pipe has none', async () => {
  const patchbay = await lab('coloured')
  const onTerminal = (variables: string) =>
    patchbay.inShell('sh', `${variables} script -qec 'patchbay inspect coloured' /dev/null < /dev/null`)
  const [coloured, plain] = await Promise.all([onTerminal('env -u NO_COLOR'), onTerminal('NO_COLOR=1')])
  expect(coloured.out).toContain('\u001b[1m\u001b[36mNODE')
  expect(plain.out).toContain('NODE ')
  const { out: piped } = await patchbay.run(['inspect', 'coloured'])
  for (const out of [plain.out, piped]) expect(out).not.toContain('\u001b')
})

test('a terminal gets lines that are broken between words; a pipe gets whole lines', async () => {
  const patchbay = await lab('narrow')
  const onTerminal = async (columns: number) => {
    const script = `stty columns ${columns}; patchbay inspect narrow; patchbay link narrow/none`
    const { out } = await patchbay.inShell('sh', `NO_COLOR=1 script -qec '${script}' /dev/null < /dev/null`)
    return out.replaceAll('\r', '').trimEnd().split('\n')
  }
  for (const columns of [40, 60]) {
    const lines = await onTerminal(columns)
    expect(lines.filter((line) => line.length > columns)).toEqual([])
    expect(lines.map((line) => line.trim()).join(' ')).toContain(
      'the lab narrow has no link "none" (it has PC1:e0 -- PC2:e0)',
    )
  }
  const { err } = await patchbay.run(['link', 'narrow/none'])
  expect(err.split('\n')).toHaveLength(2)
})

test('a line is typed on the console of a node, and its answer shown', async () => {
  const patchbay = await lab('typed')
  await patchbay.run(['start', 'typed'])
  const { out } = await patchbay.run(['exec', 'typed/PC1', 'ip 10.0.0.1/24', '--expect', String.raw`PC1 : (\S+)`])
  expect(out).toContain('PC1 : 10.0.0.1')
  expect((await patchbay.run(['exec', 'typed/PC1', 'show ip'])).out).toContain('10.0.0.1/24')
  expect((await patchbay.run(['logs', 'typed/PC1'])).out).toMatch(/show ip(.*\n)+(VPCS|PC1)> \n$/)
  expect(await patchbay.json(['logs', 'typed/PC1'])).toMatchObject({
    ...{ ok: true, lab: 'typed', node: 'PC1', lines: expect.arrayContaining([expect.stringContaining('show ip')]) },
  })
  expect(await patchbay.run(['logs', 'typed/PC1', '-f', '--json'])).toMatchObject({ code: 64 })
  const late = await patchbay.run(['exec', 'typed/PC1', 'version', '--expect', 'never', '--within', '100ms'])
  expect(late).toMatchObject({ code: 1, err: expect.stringContaining('typed/PC1') })
  const wrong = await patchbay.run(['exec', 'typed/PC1', 'version', '--expect', '('])
  expect(wrong).toMatchObject({ code: 64, err: expect.stringContaining('--expect: not a regular expression') })
  // Without quotes, too: what looks like a flag of one letter belongs to the line, and after "--" everything does.
  const unquoted = ['exec', 'typed/PC1', 'ping', '10.0.0.1', '-c', '2', '--expect', 'icmp_seq=2 ', '--json']
  expect(JSON.parse((await patchbay.run(unquoted)).out)).toMatchObject({ ok: true, matched: 'icmp_seq=2 ' })
  const verbatim = ['exec', 'typed/PC1', '--no-echo', '--expect', 'echo (.*)', '--', 'echo', '--json', '-h']
  expect((await patchbay.run(verbatim)).out).toContain('echo --json -h')
  const misspelt = ['exec', 'typed/PC1', 'version', '--expcet', 'x']
  expect(await patchbay.run(misspelt)).toMatchObject({ code: 64, err: expect.stringContaining('mean --expect?') })
  // The line itself is no answer.
  const echoed = ['exec', 'typed/PC1', 'no such command', '--expect', 'such']
  expect(await patchbay.run([...echoed, '--within', '1s'])).toMatchObject({ code: 1, out: '' })
  expect(await patchbay.run([...echoed, '--no-echo'])).toMatchObject({ code: 0, out: expect.stringContaining('such') })
})

test('a console is a terminal by websocket and by telnet, and is logged to a file', async () => {
  const patchbay = await lab('consoles')
  await patchbay.run(['start', 'consoles'])
  const argv = ['console', 'consoles/PC1', '--log', 'console.log']
  expect((await patchbay.run(argv, { input: 'echo by websocket\n' })).out).toContain('by websocket')
  expect(await readFile(join(patchbay.home, 'console.log'), 'utf8')).toContain('by websocket')
  expect((await patchbay.run(['console', 'consoles/PC1', '--telnet'], { input: 'echo by telnet\n' })).out).toContain(
    'by telnet',
  )
})

test('after a loss of the service the console is opened again, and its output continues', async () => {
  const lone = await TestService.start({ 'pc.engine': 'embedded' })
  const patchbay = await CommandLine.of({ server: lone.url })
  await patchbay.file('one.lab.yaml', 'lab: one\nnodes: { PC1: { kind: pc, config: { text: "ip 10.0.0.1/24" } } }\n')
  await patchbay.run(['up'])
  const exec = once(
    patchbay.start(['exec', 'one/PC1', 'ping 10.0.0.1 -c 1000', '--expect', 'never', '--within', '5m']),
    'close',
  )
  const log = '/v2/projects/one/nodes/PC1/console/log'
  await expect.poll(async () => (await lone.fetch(log)).text()).toContain('icmp_seq=2 ')
  const follower = patchbay.start(['logs', 'one/PC1', '-f', '--lines', '1'])
  const follow = once(follower, 'close')
  let shown = ''
  follower.stdout.on('data', (bytes) => {
    shown += String(bytes)
  })
  // One was there before; the others came live.
  await expect.poll(() => shown.match(/icmp_seq/g)?.length, { timeout: hangMs }).toBeGreaterThan(2)
  await lone.kill('SIGKILL')
  expect([await exec, await follow]).toEqual([
    [5, null],
    [5, null],
  ])
})

test('logs -f shows output during its connection exactly once', async () => {
  const patchbay = await lab('followed')
  await patchbay.run(['start', 'followed/PC1'])
  const console = '/v2/projects/followed/nodes/PC1/console'
  const type = async (send: string) =>
    service.fetch(`${console}/expect`, {
      method: 'POST',
      body: JSON.stringify({ send: `${send}\r`, expect: `^${send.slice(5)}$` }),
    })
  await type('echo before')
  // The websocket waits until there is output after all that the command has read.
  const way = createTcpServer((client) => {
    const { hostname, port } = new URL(service.url)
    const server = connect(Number(port), hostname)
    client.on('data', (bytes) => {
      const isConsole = bytes.includes('/console/ws')
      void (isConsole ? type('echo between') : Promise.resolve()).then(() => server.write(bytes))
    })
    server.pipe(client)
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const)
      one.on('error', () => other.destroy()).on('close', () => other.destroy())
  }).listen(0, '127.0.0.1')
  await once(way, 'listening')
  onTestFinished(() => void way.close())
  const server = `http://127.0.0.1:${(way.address() as AddressInfo).port}`
  const follower = patchbay.start(['logs', 'followed/PC1', '-f', '--server', server])
  let shown = ''
  follower.stdout.on('data', (bytes) => {
    shown += String(bytes)
  })
  await expect.poll(() => shown, { timeout: hangMs }).toContain('echo between')
  await type('echo after')
  await expect.poll(() => shown, { timeout: hangMs }).toMatch(/^after\r?$/m)
  expect(shown.match(/^(?:before|between|after)\r?$/gm)?.map((it) => it.trim())).toEqual(['before', 'between', 'after'])
  follower.kill('SIGINT')
  expect(await once(follower, 'close')).toEqual([130, null])
  expect(shown.at(-1)).toBe('\n')
})

test('watch prints a line for each change where there is no terminal', async () => {
  const patchbay = await lab('watched')
  const watching = patchbay.start(['watch', 'watched'])
  let text = ''
  watching.stdout.on('data', (piece) => {
    text += String(piece)
  })
  await expect.poll(() => text).toContain('PC1 is stopped\nPC2 is stopped\n')
  // The feed may not be open yet: the node changes until a line says so.
  await expect
    .poll(async () => {
      await patchbay.run(['start', 'watched/PC1'])
      await patchbay.run(['stop', 'watched/PC1'])
      return text
    })
    .toContain('PC1 is running\n')
  watching.kill('SIGINT')
  expect(await new Promise((resolve) => watching.once('exit', resolve))).toBe(130)
})

test('a command ends when the reader of its output does, and reports output that could not be written', async () => {
  const patchbay = await lab('unread')
  await patchbay.run(['start', 'unread'])
  const watching = patchbay.start(['watch', 'unread'])
  let messages = ''
  watching.stderr.on('data', (piece) => {
    messages += String(piece)
  })
  const ended = once(watching, 'close')
  await once(watching.stdout, 'data')
  watching.stdout.destroy()
  const ends = new AbortController()
  void ended.then(() => ends.abort())
  while (!ends.signal.aborted) {
    await patchbay.run(['stop', 'unread/PC1'])
    await patchbay.run(['start', 'unread/PC1'])
  }
  expect([await ended, messages]).toEqual([[0, null], ''])
  expect(await patchbay.runProgram(['ls', '--json'], { to: '/dev/full' })).toMatchObject({
    code: 1,
    err: 'patchbay: standard output: the disk is full\n',
  })
})
