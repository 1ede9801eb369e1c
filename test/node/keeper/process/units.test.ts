import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Switch } from '../../../../runtime/node/dataplane/switch/switch.ts'
import { ChildRecords } from '../../../../runtime/node/keeper/process/child-records.ts'
import { EmbeddedPcs } from '../../../../runtime/node/keeper/process/embedded-pcs.ts'
import { Panels } from '../../../../runtime/node/keeper/process/panels.ts'
import { Units } from '../../../../runtime/node/keeper/process/units.ts'
import type { Exit, ProcessSpec, UnitSpec } from '../../../../runtime/node/keeper/protocol/protocol.ts'
import { findProgram } from '../../../../runtime/node/os/system/find-program.ts'
import { identify } from '../../../../runtime/node/os/system/process-identity.ts'
import { shellUnit } from '../../../support/child-unit.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { freePorts } from '../../../support/ports.ts'
import { requireProgram } from '../../../support/require.ts'
import { TcpClient } from '../../../support/tcp-client.ts'
import { testWith } from '../../../support/test-with.ts'

const host = '127.0.0.1'
const base = freePorts(50)
const key = 'test:unit'

interface Bench {
  readonly directory: string
  readonly units: Units
  /** The next exit that is told. */
  readonly exit: () => Promise<{ key: string; run: number; exit: Exit }>
}

async function openBench(): Promise<Bench> {
  const directory = await freshDirectory()
  const records = new ChildRecords(directory)
  const told: { key: string; run: number; exit: Exit }[] = []
  let wake: () => void = () => {}
  const units = new Units(
    records,
    new EmbeddedPcs(records, () => {}),
    {} as Switch,
    new Panels(() => {}),
    (key, run, exit) => {
      told.push({ key, run, exit })
      wake()
    },
  )
  onTestFinished(() => units.stopAll(100))
  const exit = async () => {
    for (;;) {
      const next = told.shift()
      if (next !== undefined) return next
      await new Promise<void>((resolve) => (wake = resolve))
    }
  }
  return { directory, units, exit }
}

/** The first group of the pattern, when the unit has shown it. */
async function shown(units: Units, pattern: RegExp): Promise<string> {
  await expect.poll(() => units.hub(key).shown.toString()).toMatch(pattern)
  return pattern.exec(units.hub(key).shown.toString())?.[1] ?? ''
}

async function canConnect(port: number): Promise<boolean> {
  const socket = connect(port, host)
  const is = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  })
  socket.destroy()
  return is
}

test('input on a console reaches the stdin of its program, and its stdout the console', async () => {
  const { directory, units } = await openBench()
  await units.start({ ...shellUnit(directory, 'exec cat'), console: { host, port: base } })
  const client = await TcpClient.connect(base)
  client.socket.write('to the guest\r\n')
  await client.shows('to the guest\r')
})

test('the console of a program that listens by telnet is read when it listens, without telnet commands', async () => {
  const { directory, units } = await openBench()
  const at = { host: '127.0.0.2', port: base + 40 }
  const server = createServer()
  onTestFinished(() => void server.close())
  const next = () => once(server, 'connection').then(([socket]) => socket as Socket)
  await units.start({
    ...shellUnit(directory, 'echo this is not its console; exec sleep 60', { console_at: at }),
    console: { host, port: base + 41 },
  })
  const client = await TcpClient.connect(base + 41)
  let guest = next()
  server.listen(at)
  // IAC WILL ECHO, as dynamips begins.
  ;(await guest).write(Buffer.from([255, 251, 1, ...Buffer.from('Router>')]))
  await client.shows('Router>')
  const typed = new TcpClient(await guest)
  client.socket.write('show\n')
  await typed.shows('show\r')
  guest = next()
  typed.socket.destroy()
  ;(await guest).write('again')
  await client.shows('again')
  expect(units.hub(key).shown.toString()).toBe('Router>again')
  const gone = once(await guest, 'close')
  await units.stop(key, 100)
  await gone
})

test('a program that ends by itself is reported as not requested, with its code and last output, and stays listed', async () => {
  const { directory, units, exit } = await openBench()
  const { pid, run } = await units.start({
    ...shellUnit(directory, 'echo no licence; read line; exit 7'),
    console: { host, port: base + 1 },
  })
  expect(units.running).toBe(1)
  const client = await TcpClient.connect(base + 1)
  await client.shows('no licence')
  client.socket.write('\n')
  const ended = { code: 7, signal: null, requested: false, last_words: 'no licence' }
  expect(await exit()).toEqual({ key, run, exit: ended })
  await client.closed()
  expect(units.list()).toEqual([{ key, pid, run, console: null, is_held: false, telnet_clients: 0, exit: ended }])
  expect(units.running).toBe(0)
  expect(() => units.hub(key)).toThrow(expect.objectContaining({ code: 'not_running' }))
  units.forget(key)
  expect(units.list()).toEqual([])
})

test('the last output of a program without console output is the end of its log', async () => {
  const { directory, units, exit } = await openBench()
  await units.start(shellUnit(directory, 'echo cannot open disk >&2; exit 1', { stdio: 'none' }))
  expect((await exit()).exit.last_words).toBe('cannot open disk')
  expect(await readFile(join(directory, 'unit.log'), 'utf8')).toBe('cannot open disk\n')
})

test('errors in the log of a program come before the output of its guest, and only those of this run', async () => {
  const { directory, units, exit } = await openBench()
  const lastWords = async (script: string, more: Partial<ProcessSpec> = {}) => {
    await units.start(shellUnit(directory, script, more))
    return (await exit()).exit.last_words
  }
  const failing = 'echo Welcome to the guest; echo cannot open disk >&2; exit 1'
  expect(await lastWords(failing)).toBe('cannot open disk')
  expect(await lastWords('echo no screen >&2; exit 1')).toBe('no screen')
  expect(await lastWords('echo Welcome to the guest; exit 1')).toBe('Welcome to the guest')
  expect(await lastWords('exit 1', { stdio: 'none' })).toBe('')
  // The stderr of a program on a terminal is on that, too.
  expect(await lastWords(failing, { stdio: 'pty' })).toBe('Welcome to the guest\ncannot open disk')
  expect(await lastWords('exit 1', { stdio: 'pty' })).toBe('')
  // Longer than what is kept.
  const long = 'i=0; while [ $i -lt 400 ]; do echo "line $i" >&2; i=$((i+1)); done'
  const words = await lastWords(long)
  expect(words.length).toBeGreaterThan(2000)
  expect(words).toMatch(/line 398\nline 399$/)
  expect(await lastWords(': > unit.log; echo begun anew >&2')).toBe('begun anew')
})

test('a stop is reported as requested, and the port can be bound again at once', async () => {
  const { directory, units, exit } = await openBench()
  const spec: UnitSpec = { ...shellUnit(directory, 'exec cat'), console: { host, port: base + 2 } }
  const first = await units.start(spec)
  const client = await TcpClient.connect(base + 2)
  const stopped = await units.stop(key, 2000)
  expect(stopped.exit).toMatchObject({ signal: 'SIGTERM', requested: true })
  expect(await exit()).toMatchObject({ run: first.run, exit: { requested: true } })
  await client.closed()
  const second = await units.start(spec)
  expect(second.run).toBeGreaterThan(first.run)
  expect(second.pid).not.toBe(first.pid)
  await (await TcpClient.connect(base + 2)).untilLength(3)
})

test('a stop is safe for a key that is not known, has ended, or is being stopped', async () => {
  const { directory, units, exit } = await openBench()
  expect(await units.stop('nobody', 100)).toEqual({ exit: null })
  await units.start(shellUnit(directory, 'exit 0'))
  await exit()
  expect(await units.stop(key, 100)).toMatchObject({ exit: { code: 0, requested: false } })
  await units.start(shellUnit(directory, 'exec cat'))
  const both = await Promise.all([units.stop(key, 2000), units.stop(key, 2000)])
  expect(both[0]).toMatchObject({ exit: { requested: true } })
  expect(both[1]).toEqual({ exit: null })
})

test('a key that runs cannot be started a second time, also not at the same moment', async () => {
  const { directory, units } = await openBench()
  const spec = shellUnit(directory, 'exec cat')
  const results = await Promise.allSettled([units.start(spec), units.start(spec)])
  expect(results).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: { code: 'exists' } }])
  expect(units.running).toBe(1)
})

test('a tree of processes that ignores SIGTERM is killed after the grace period', async () => {
  const { directory, units } = await openBench()
  const stubborn = 'trap "" TERM; sh -c \'trap "" TERM; echo "child $$."; while :; do sleep 1; done\' & wait; wait'
  const { pid } = await units.start(shellUnit(directory, stubborn))
  const child = Number(await shown(units, /child (\d+)\./))
  expect(identify(child)).toBeDefined()
  const { exit } = await units.stop(key, 200)
  expect(exit).toMatchObject({ signal: 'SIGKILL', requested: true })
  await expect.poll(() => [identify(pid), identify(child)]).toEqual([undefined, undefined])
})

test('children of a program end with it, when it was stopped and when it ended by itself', async () => {
  const { directory, units, exit } = await openBench()
  const leaving = 'sh -c \'trap "" TERM HUP; echo "child $$."; while :; do sleep 1; done\' & read line'
  for (const end of [() => units.stop(key, 2000), () => endOfInput(units)]) {
    await units.start(shellUnit(directory, leaving))
    const child = Number(await shown(units, /child (\d+)\./))
    await end()
    await exit()
    await expect.poll(() => identify(child)).toBeUndefined()
  }
})

/** Types an empty line, by a raw attachment. */
async function endOfInput(units: Units): Promise<void> {
  const server = createServer((socket) => units.hub(key).attach(socket)).listen(0, host)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const client = await TcpClient.connect((server.address() as AddressInfo).port)
  client.socket.write('\n')
}

test('a program that ends before it is ready fails the start, with its last output', async () => {
  const { directory, units } = await openBench()
  const failing = {
    ...shellUnit(directory, 'echo bad image; exit 3', { ready: 'prompt>' }),
    console: { host, port: base + 3 },
  }
  await expect(units.start(failing)).rejects.toMatchObject({
    code: 'spawn_failed',
    message: expect.stringMatching(/exit code 3.*bad image/s),
  })
  expect(units.list()).toEqual([])
  expect(await canConnect(base + 3)).toBe(false)
})

test('a program that does not become ready in its time is ended', async () => {
  const { directory, units } = await openBench()
  const spec = shellUnit(directory, 'echo "pid $$."; exec cat', { ready: 'prompt>', ready_ms: 300 })
  const error = await units.start(spec).catch((it: Error) => it)
  expect(error).toMatchObject({ code: 'spawn_failed', message: expect.stringContaining('not ready after 300 ms') })
  const pid = Number(/pid (\d+)\./.exec((error as Error).message)?.[1])
  expect(identify(pid)).toBeUndefined()
})

test('the text that means ready may come in pieces', async () => {
  const { directory, units } = await openBench()
  const spec = shellUnit(directory, 'printf pro; sleep 0.1; printf "mpt>"; exec cat', { ready: 'prompt>' })
  await units.start(spec)
  expect(units.hub(key).shown.toString()).toBe('prompt>')
})

test('a missing program or directory fails the start, and leaves no listener', async () => {
  const { directory, units } = await openBench()
  const console = { host, port: base + 4 }
  for (const wrong of [
    { command: '/no/such/program' },
    { command: 'no-such-program' },
    { cwd: join(directory, 'none') },
  ]) {
    const spec = { ...shellUnit(directory, 'exec cat', wrong), console }
    await expect(units.start(spec)).rejects.toMatchObject({ code: 'spawn_failed' })
    expect(await canConnect(base + 4)).toBe(false)
  }
  expect(units.list()).toEqual([])
})

test('nothing is started when the console port is taken', async () => {
  const { directory, units } = await openBench()
  const server = createServer().listen(base + 5, host)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const spec = { ...shellUnit(directory, 'touch started; exec cat'), console: { host, port: base + 5 } }
  await expect(units.start(spec)).rejects.toMatchObject({ code: 'port_taken' })
  await expect(readFile(join(directory, 'started'))).rejects.toThrow('ENOENT')
})

const vpcs = requireProgram('vpcs')

testWith(vpcs)('VPCS on a pseudo-terminal: its prompt, quit, and a start again on the same port', async () => {
  const { directory, units, exit } = await openBench()
  const spec: UnitSpec = {
    key,
    run: {
      type: 'process',
      command: findProgram('vpcs') ?? '',
      args: ['-i', '1', '-m', '7', '-s', `${base + 6}`, '-c', `${base + 7}`, '-t', host],
      cwd: directory,
      log: join(directory, 'vpcs.log'),
      stdio: 'pty',
      ready: 'Virtual PC Simulator',
    },
    console: { host, port: base + 8 },
  }
  for (let round = 0; round < 2; round++) {
    const { run } = await units.start(spec)
    const client = await TcpClient.connect(base + 8)
    const output = await client.shows('VPCS> ')
    expect(output.toString('latin1')).not.toMatch(/[^\r]\n/)
    client.socket.write('show ip\r\n')
    await client.shows('00:50:79:66:68:07')
    client.socket.write('quit\r\n')
    expect(await exit()).toMatchObject({ key, run, exit: { requested: false } })
    await client.closed()
    expect(await canConnect(base + 8)).toBe(false)
  }
})

testWith(vpcs)('a program on a pseudo-terminal that ends leaves no descriptor open', async () => {
  const { directory, units, exit } = await openBench()
  const spec = shellUnit(directory, 'tty; read line', { stdio: 'pty' })
  for (let round = 0; round < 3; round++) {
    await units.start(spec)
    const terminal = await shown(units, /(\/dev\/pts\/\d+)/)
    await units.stop(key, 1000)
    await exit()
    // The kernel removes it when its last descriptor is closed.
    await expect.poll(() => readFile(terminal).then(String, ({ code }) => code as string)).toMatch(/ENOENT|EIO/)
  }
})

test('a pc that does not answer is ended alone', async () => {
  const { directory, units } = await openBench()
  const pc = (name: string, port: number): UnitSpec => ({
    key: name,
    run: {
      ...{ type: 'pc', mac: '00:50:79:66:68:00', directory, script: 'startup.vpc' },
      ...{ guest_port: port, switch_port: port + 1 },
    },
  })
  await units.start(pc('pc:one', base + 40))
  await units.start(pc('pc:two', base + 42))
  const [name = ''] = await readdir(join(directory, 'children'))
  const { pid } = JSON.parse(await readFile(join(directory, 'children', name), 'utf8')) as { pid: number }
  process.kill(pid, 'SIGSTOP')
  expect(await units.stop('pc:one', 100)).toMatchObject({ exit: { requested: true } })
  expect(units.list().map(({ key, exit }) => [key, exit])).toEqual([['pc:two', null]])
  process.kill(pid, 'SIGCONT')
  // It is the same process, and what it was asked for while it was held is done.
  await units.start(pc('pc:one', base + 40))
  expect(units.list().map(({ exit }) => exit)).toEqual([null, null])
  expect(identify(pid)).toBeDefined()
})
