import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { commands } from '../../runtime/node/cli/commands.ts'
import { keeperDirectory } from '../../runtime/node/keeper/process/generation.ts'
import { flagOf, settingKeys } from '../../runtime/node/service/config/keys.ts'
import { CommandLine, type Printed } from '../support/command-line.ts'
import { createPc, openConsole, start } from '../support/lab.ts'
import { hangMs } from '../support/limits.ts'
import { bundledProgram, TestService } from '../support/service.ts'

/** Runs a command of a user who has nothing yet. */
async function run(argv: readonly string[], input = '', env: Record<string, string> = {}): Promise<Printed> {
  return (await CommandLine.of()).run(argv, { input, env })
}

test('version and help', async () => {
  const { version } = JSON.parse(await readFile(join(import.meta.dirname, '../../package.json'), 'utf8')) as {
    version: string
  }
  const patchbay = await CommandLine.of()
  expect(await patchbay.runProgram(['version'])).toEqual({ code: 0, out: `${version}\n`, err: '' })
  expect((await patchbay.runProgram(['help'])).out).toContain('  serve ')
})

test('a command asks the service that --server or PATCHBAY_SERVER names, with the token of PATCHBAY_TOKEN', async () => {
  const { url } = await TestService.start({ token: 'token-of-the-test' })
  const token = { PATCHBAY_TOKEN: 'token-of-the-test' }
  const [version = ''] = (await run(['version'])).out.split('\n')
  const both = { code: 0, out: `${version}\n${version} at ${url}\n`, err: '' }
  expect(await run(['version', '--server', url], '', token)).toEqual(both)
  expect(await run(['version'], '', { ...token, PATCHBAY_SERVER: url })).toEqual(both)
  expect(await run(['version', '--server', url])).toMatchObject({
    code: 5,
    err: expect.stringContaining('set PATCHBAY_TOKEN'),
  })
  expect(await run(['version', '--server', 'localhost'])).toMatchObject({
    code: 64,
    err: expect.stringContaining('such as http://'),
  })
  expect(await run(['version', '--server', 'http://127.0.0.1:1'])).toMatchObject({
    code: 5,
    err: expect.stringContaining('cannot be reached'),
  })
})

test('patchbay alone shows what it can do, and commands have a --help', async () => {
  const { code, out } = await run([])
  expect(code).toBe(0)
  const shown = [...out.matchAll(/^ {2}(\w+(?: \w+)?) {2,}/gm)].map(([, name = '']) => name)
  expect(shown).toEqual(expect.arrayContaining(Object.keys(commands).filter((name) => commands[name]?.hidden !== true)))
  // Of each way to read the arguments one: without a service, with settings, with the words of a node, with two words.
  for (const command of ['version', 'serve', 'exec', 'snapshot create']) {
    const help = await run([...command.split(' '), '--help'])
    expect(help).toMatchObject({ code: 0, out: expect.stringMatching(new RegExp(`^patchbay ${command}`)), err: '' })
    expect((await run(['help', command])).out).toBe(help.out)
  }
  const { out: serve } = await run(['serve', '--help'])
  expect(serve).toContain('--pc-engine auto|vpcs|embedded')
  for (const key of settingKeys) expect(serve).toContain(`${flagOf(key)}`)
  expect(await run(['config', '--help'])).toMatchObject({
    out: expect.stringContaining('--console-port-range FIRST-LAST'),
  })
})

test('help is available as JSON, too', async () => {
  const of = async (...argv: string[]) => JSON.parse((await run([...argv, '--json'])).out)
  const { commands, ...rest } = await of('help')
  expect(rest).toEqual({ ok: true, exit: 0, version: expect.stringMatching(/^\d/) })
  expect(commands).toContainEqual({ name: 'ls', group: 'labs', summary: 'list the labs' })
  expect(await of('--help')).toMatchObject({ commands })
  const { flags, ...ls } = await of('ls', '--help')
  expect(ls).toMatchObject({ ok: true, command: 'ls', usage: 'patchbay ls [flags]', args: [] })
  expect(flags).toContainEqual({ name: '--json', about: 'print one JSON object' })
  expect(await of('help', 'ls')).toEqual({ flags, ...ls })
  expect((await of('help', 'serve')).settings).toContainEqual({ name: '--port', about: expect.any(String) })
  for (const argv of [
    ['help', 'lss'],
    ['--help', 'lss'],
  ])
    expect(await run(argv)).toMatchObject({ code: 64, out: '', err: expect.stringContaining('did you mean ls?') })
})

test('the ready lines name the address, the page, the reference, the data directory and the adopted nodes', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  await start(service, await createPc(service, `/v2/compute/projects/${project_id}`, 1))
  await createPc(service, `/v2/compute/projects/${project_id}`, 2)
  await service.kill('SIGKILL')
  const flags = ['--port', '0', '--data', service.data, '--config', join(service.data, 'config.toml')]
  const child = spawn(process.execPath, [bundledProgram(), 'serve', ...flags], { stdio: ['ignore', 'pipe', 'inherit'] })
  const gone = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    if (line.includes('taken over')) break
  }
  const url = /^Patchbay \S+ is ready on (http:\/\/127\.0\.0\.1:\d+)$/.exec(lines[0] ?? '')?.[1]
  expect(lines.slice(1)).toEqual([
    `  labs        ${url}/`,
    `  reference   ${url}/docs`,
    `  data        ${service.data}`,
    '  taken over  1 project, 1 running node',
  ])
  child.kill('SIGTERM')
  await gone
})

test('a console port without a listener is reported in words', async () => {
  expect(await run(['console', '1'])).toMatchObject({ code: 1, err: expect.stringContaining('nothing listens there') })
  expect(await run(['console', '70000'])).toMatchObject({ code: 64, err: expect.stringContaining('[HOST:]PORT') })
})

test('a checkout runs without a build, also the processes that it starts', async () => {
  const service = await TestService.startFromSources({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const pc = await createPc(service, `/v2/compute/projects/${project_id}`, 1)
  await start(service, pc)
  const console = await openConsole(service, pc)
  console.type('echo from the sources\r')
  await console.expect('from the sources')
})

test('an unknown word is reported, with what was probably meant', async () => {
  expect(await run(['serv'])).toMatchObject({ code: 64, err: expect.stringContaining('did you mean serve?') })
  expect(await run(['serve', '--prot', '1'])).toMatchObject({
    code: 64,
    err: expect.stringContaining('did you mean --port?'),
  })
})

test('config shows where each value came from, and no secret', async () => {
  const { out } = await run(['config', '--port', '4000'], '', { PATCHBAY_TOKEN: 'hidden' })
  expect(out).toMatch(/^port +4000 +flag --port$/m)
  expect(out).toMatch(/^token +\*{8} +variable PATCHBAY_TOKEN$/m)
  const json = JSON.parse((await run(['config', '--json', '--port', '4000'], '', { PATCHBAY_TOKEN: 'hidden' })).out)
  expect(json).toMatchObject({ ok: true, exit: 0 })
  expect(json.settings).toContainEqual({ key: 'port', value: '4000', source: 'flag --port' })
  expect(json.settings).toContainEqual({ key: 'token', value: '********', source: 'variable PATCHBAY_TOKEN' })
  // Not at a terminal: what is in the list of processes is no secret.
  const refused = await run(['config', '--token', 'hidden'])
  expect(refused).toMatchObject({ code: 64, out: '', err: expect.stringContaining('--token-file FILE') })
})

test('doctor says what it found, and how to fix each fault', async () => {
  const { code, out } = await run(['doctor', '--json', '--data', '/tmp'])
  const { ok, exit, checks } = JSON.parse(out) as {
    ok: boolean
    exit: number
    checks: { name: string; status: string; found: string; fix: string | null }[]
  }
  expect({ ok, exit, lines: out.trim().split('\n').length }).toEqual({ ok: code === 0, exit: code, lines: 1 })
  expect(checks.find(({ name }) => name === 'Node.js')).toMatchObject({
    status: 'ok',
    found: expect.stringContaining(process.version),
  })
  for (const { status, fix } of checks) expect(fix === null).toBe(status === 'ok')
  const missing = await run(['doctor', '--pc-engine', 'vpcs', '--pc-vpcs-path', '/nowhere/vpcs', '--data', '/tmp'])
  expect(missing).toMatchObject({
    code: 1,
    out: expect.stringMatching(/error +VPCS[\s\S]*-> sudo apt-get install vpcs/),
  })
})

test('a data directory has one service, its files are private, and SIGTERM ends it with code 0', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  expect((await stat(join(service.data, 'run'))).mode & 0o777).toBe(0o700)
  await expect
    .poll(async () => (await stat(join(keeperDirectory(service.data), 'keeper.sock')).catch(() => undefined))?.mode, {
      timeout: hangMs,
    })
    .toBeDefined()
  expect((await stat(join(keeperDirectory(service.data), 'keeper.sock'))).mode & 0o777).toBe(0o600)
  const second = await run(['serve', '--port', '0', '--data', service.data])
  expect(second).toMatchObject({ code: 1, err: expect.stringContaining('Another Patchbay runs on the data directory') })
  const { port } = new URL(service.url)
  const taken = await run(['serve', '--port', port, '--data', join(service.data, 'other')])
  expect(taken).toMatchObject({ code: 1, err: expect.stringContaining(`Port ${port} of 127.0.0.1 is in use`) })
})

test('console is a terminal on the console of a pc, also piped', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const pc = await createPc(service, `/v2/compute/projects/${project_id}`, 1)
  await start(service, pc)
  const { console: port } = await service.call<{ console: number }>('GET', pc)
  // `quit` ends the pc, and with it the console and the client.
  const { code, out } = await run(['console', String(port)], 'echo typed through\rquit\r')
  expect(code).toBe(0)
  expect(out).toContain('typed through\r\n')
  expect(out).not.toContain('\ufffd')
  await expect.poll(() => service.call('GET', pc)).toMatchObject({ status: 'stopped', status_reason: null })
  await start(service, pc)
})

test('a data directory that cannot be created or written to ends the program at once, with its name in the message', async () => {
  for (const data of ['/proc/x', '/proc/x/y', '/proc', '/sys/x', '/sys', '/dev/null/x']) {
    const { code, out, err } = await run(['serve', '--port', '0', '--data', data])
    expect([code, out, err]).toEqual([
      1,
      '',
      expect.stringMatching(
        new RegExp(`^patchbay: The data directory ${data} cannot be made or written to: .*--data\n$`),
      ),
    ])
  }
})

test('a signal to npm ends the service that npm start has started', async () => {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-cli-'))
  onTestFinished(() => rm(data, { recursive: true, force: true }))
  const flags = ['--port', '0', '--data', data]
  const root = join(import.meta.dirname, '../..')
  const child = spawn('npm', ['start', '--', ...flags], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  const gone = once(child, 'exit')
  let url: string | undefined
  // The output ends with the last process that has it: the service.
  for await (const line of createInterface({ input: child.stdout })) {
    const found = /is ready on (http:\S+)/.exec(line)?.[1]
    if (found === undefined) continue
    url = found
    child.kill('SIGTERM')
  }
  await gone
  await expect(fetch(`${url}/v1/version`)).rejects.toThrow()
})

test('Ctrl-C at npm start stops the service as one signal does: the terminal and npm both send it', async () => {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-cli-'))
  onTestFinished(() => rm(data, { recursive: true, force: true }))
  const root = join(import.meta.dirname, '../..')
  const flags = ['start', '--', '--port', '0', '--data', data]
  // A terminal sends it to the group, of which npm and the service are.
  const child = spawn('npm', flags, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  const gone = once(child, 'exit')
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.includes('is ready on')) process.kill(-(child.pid ?? 0), 'SIGINT')
  }
  expect(await gone).toEqual([0, null])
})
