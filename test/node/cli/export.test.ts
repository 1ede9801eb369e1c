import { access, readdir, readFile, stat } from 'node:fs/promises'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { listening } from '../../support/fleet.ts'
import { TestService } from '../../support/service.ts'

let service: TestService

beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded' })
  return () => service.close()
})

async function labOf(name: string): Promise<CommandLine> {
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file('two.yaml', `lab: ${name}\nnodes: { A: { kind: pc }, B: { kind: pc } }\nlinks: [[A, B]]\n`)
  expect(await patchbay.run(['up', 'two.yaml'])).toMatchObject({ code: 0 })
  return patchbay
}

test('a lab is exported as a lab file that makes an equal one', async () => {
  const patchbay = await labOf('exported')
  expect((await patchbay.run(['export', 'exported'])).out).toBe('exported.lab.yaml: the lab exported\n')
  expect((await patchbay.run(['diff', 'exported.lab.yaml', '--exit-code'])).code).toBe(0)
  const { out } = await patchbay.run(['export', 'exported', '-'])
  expect(out).toBe(await readFile(join(patchbay.home, 'exported.lab.yaml'), 'utf8'))
  expect(await patchbay.run(['apply', '-', '--name', 'again'], { input: out })).toMatchObject({ code: 0 })
  expect(await patchbay.run(['export', 'exported'])).toMatchObject({ code: 1, err: expect.stringContaining('--force') })
  expect(await patchbay.json(['export', 'exported', '--force'])).toMatchObject({ ok: true, left_out: [] })
})

test('a stopped lab is exported as an archive, which is imported as another lab', async () => {
  const patchbay = await labOf('archived')
  const running = await patchbay.run(['export', 'archived', 'a.gns3project'])
  expect(running).toMatchObject({
    code: 1,
    err: expect.stringContaining('is running: the project can be exported after its nodes are stopped'),
  })
  await patchbay.run(['stop', 'archived'])
  expect((await patchbay.run(['export', 'archived', 'a.gns3project'])).out).toMatch(
    /^a\.gns3project: the lab archived, [\d.]+ k?B\n$/,
  )
  expect(await patchbay.run(['import', 'a.gns3project', '--name', 'copy'])).toMatchObject({ code: 0 })
  expect((await patchbay.run(['ls'])).out).toMatch(/copy +closed +2/)
  expect(await patchbay.json(['export', 'archived', '--format', 'gns3project'])).toMatchObject({
    file: 'archived.gns3project',
    format: 'gns3project',
  })
  expect((await readdir(patchbay.home)).filter((it) => it.startsWith('.a'))).toEqual([])
})

/** The URL of a server that hands everything on to the service, but answers requests whose URL has a text in another way. */
async function changing(part: string, change: (answer: IncomingMessage, res: ServerResponse) => void): Promise<string> {
  const server = createServer((req, res) => {
    const { method, headers, url = '' } = req
    const asked = request(service.url + url, { method, headers }, (answer) => {
      if (url.includes(part)) return change(answer, res)
      res.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(res)
    })
    asked.on('error', () => res.destroy())
    req.pipe(asked)
  })
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${await listening(server)}`
}

/** Ends archives in their middle as if they were whole. */
const cuttingArchives = () =>
  changing('/export', (answer, res) => {
    res.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.once('data', (piece: Buffer) => {
      res.end(piece.subarray(0, 20))
      answer.destroy()
    })
  })

test('an archive without its end is reported, and no file is left', async () => {
  const { home } = await labOf('cut')
  const patchbay = await CommandLine.of({ server: await cuttingArchives() })
  await patchbay.run(['stop', 'cut'])
  expect(await patchbay.run(['export', 'cut', 'cut.gns3project'])).toMatchObject({
    code: expect.any(Number),
    err: expect.stringContaining('the archive is incomplete: its end is missing; nothing was saved'),
  })
  expect(await patchbay.run(['export', 'cut', '-', '--format', 'gns3project'])).toMatchObject({
    code: 5,
    out: expect.stringMatching(/^PK/),
    err: expect.stringContaining('its end is missing; 20 B were written to standard output'),
  })
  expect((await readdir(home)).concat(await readdir(patchbay.home)).filter((it) => it.includes('gns3project'))).toEqual(
    [],
  )
})

test('containers are exported as a topology of containerlab, with their files beside it', async () => {
  await labOf('routers')
  const lab = `lab: routers
nodes:
  r1:
    kind: container
    image: router_8.4.tar
    files: [{ path: /etc/frr/frr.conf, text: hostname r1 }, { path: /up.sh, text: ip a, mode: "0755" }]
  r2: { kind: container, image: router_8.4.tar }
  PC1: { kind: pc }
links: [[r1, r2]]
`
  const server = await changing('/topology', (answer, res) => {
    answer.resume()
    res.writeHead(200, { 'Content-Type': 'application/yaml' }).end(lab)
  })
  const patchbay = await CommandLine.of({ server })
  const read = (name: string) => readFile(join(patchbay.home, name), 'utf8')
  const command = ['export', 'routers', '--format', 'containerlab']
  expect((await patchbay.run(command)).out).toBe(
    [
      'routers.clab.yml: the lab routers',
      '  configs/r1/frr.conf',
      '  configs/r1/up.sh',
      'Not in the file',
      '  The pc PC1, with its links.',
      '',
    ].join('\n'),
  )
  expect(await read('routers.clab.yml')).toContain('configs/r1/frr.conf:/etc/frr/frr.conf')
  expect(await read('configs/r1/frr.conf')).toBe('hostname r1')
  expect((await stat(join(patchbay.home, 'configs/r1/up.sh'))).mode & 0o777).toBe(0o755)
  // The import reads it again.
  expect(await patchbay.run(['import', 'routers.clab.yml', '--to', '-'])).toMatchObject({ code: 0 })
  expect(await patchbay.run([...command, '--force'])).toMatchObject({ code: 0 })
  expect(await patchbay.run(['export', 'routers', 'again.clab.yml'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('configs/r1/frr.conf already exists'),
  })
  const printed = await patchbay.run(['export', 'routers', '-', '--format', 'containerlab'])
  expect(printed.out).toBe(await read('routers.clab.yml'))
  expect(printed.err).toContain('The file configs/r1/frr.conf, which is written beside a FILE.')
})

test('a failed export is reported, and leaves no file', async () => {
  const patchbay = await labOf('refused')
  const wrong = [
    [['export', 'refusde'], 1, 'did you mean refused?'],
    [['export', 'refused', 'x.yaml', '--images'], 64, '--images and --snapshots are for archives only'],
    [['export', 'refused', '--format', 'zip'], 64, 'expected one of lab, gns3project, containerlab'],
    [['export', 'refused', '-', '--format', 'gns3project', '--json'], 64, 'an archive is not text'],
    [['export', 'refused', 'x.clab.yml'], 1, 'refused has no containers'],
  ] as const
  for (const [argv, code, message] of wrong)
    expect(await patchbay.run(argv)).toMatchObject({ code, err: expect.stringContaining(message) })
  await patchbay.run(['stop', 'refused'])
  for (const file of ['nowhere/x.gns3project', 'nowhere/x.lab.yaml'])
    expect(await patchbay.run(['export', 'refused', file])).toMatchObject({
      code: 1,
      err: expect.stringContaining(`${file} cannot be written: there is no directory nowhere`),
    })
  await expect(access(join(patchbay.home, 'nowhere'))).rejects.toThrow('ENOENT')
})

test('the schema of lab files is printed as the service has it', async () => {
  const patchbay = await CommandLine.of({ server: 'http://127.0.0.1:1' })
  const { out } = await patchbay.run(['schema'])
  const served = (await (await fetch(`${service.url}/schemas/lab-1.json`)).json()) as object
  // It is larger than a pipe takes at once.
  expect(JSON.parse(out)).toEqual(served)
})
