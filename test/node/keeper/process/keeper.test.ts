import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { KeeperClient } from '../../../../runtime/node/keeper/client/client.ts'
import { ensureKeeper } from '../../../../runtime/node/keeper/client/launch.ts'
import { ChildRecords, reapLeftovers } from '../../../../runtime/node/keeper/process/child-records.ts'
import { keeperDirectory } from '../../../../runtime/node/keeper/process/generation.ts'
import { emptyKeeper, isAlive, startKeeper } from '../../../support/keeper.ts'
import { freePorts } from '../../../support/ports.ts'
import { requireProgram } from '../../../support/require.ts'
import { Terminal } from '../../../support/terminal.ts'
import { testWith } from '../../../support/test-with.ts'

const vpcs = requireProgram('vpcs')
const first = freePorts(20)
const port = (offset: number) => first + offset

test('a unit that ends by itself is reported with its code and its last output, also later', async () => {
  const { client, shell, exit } = await emptyKeeper()
  await shell('a', 'echo something is wrong; exit 3')
  expect(await exit()).toEqual({
    key: 'a',
    exit: { code: 3, signal: null, requested: false, last_words: 'something is wrong' },
  })
  expect((await client.call('inventory', {})).units).toMatchObject([{ key: 'a', exit: { code: 3 } }])
  await client.call('unit.forget', { key: 'a' })
  expect((await client.call('inventory', {})).units).toEqual([])
})

test('a unit that ignores SIGTERM is killed with all its children', async () => {
  const { client, shell, data } = await emptyKeeper()
  const grandchild = join(data, 'grandchild')
  await shell('a', `trap "" TERM; sleep 1000 & echo $! > ${grandchild}; echo ready; wait; sleep 1000`, {
    ready: 'ready',
  })
  const pid = Number(readFileSync(grandchild, 'utf8'))
  expect(isAlive(pid)).toBe(true)
  const { exit } = await client.call('unit.stop', { key: 'a', grace_ms: 100 })
  expect(exit).toMatchObject({ signal: 'SIGKILL', requested: true })
  await expect.poll(() => isAlive(pid)).toBe(false)
})

test('a key has one unit at a time, and a start waits for the stop before it', async () => {
  const { client, shell } = await emptyKeeper()
  await shell('a', 'cat')
  await expect(shell('a', 'cat')).rejects.toMatchObject({ code: 'exists' })
  const stopping = client.call('unit.stop', { key: 'a', grace_ms: 1000 })
  await shell('a', 'cat')
  await stopping
  expect((await client.call('inventory', {})).units).toMatchObject([{ key: 'a', exit: null }])
})

test('a program that cannot be started, or ends before it is ready, says why', async () => {
  const { shell } = await emptyKeeper()
  await expect(shell('a', 'echo no licence; exit 1', { ready: 'welcome' })).rejects.toMatchObject({
    code: 'spawn_failed',
    message: expect.stringContaining('exit code 1): no licence'),
  })
  await expect(shell('b', 'sleep 100', { ready: 'welcome', ready_ms: 100 })).rejects.toMatchObject({
    code: 'spawn_failed',
  })
  await expect(shell('c', 'true', { cwd: '/nowhere' })).rejects.toMatchObject({ code: 'spawn_failed' })
})

test('a console port that is taken is reported before anything is started', async () => {
  const { client, shell } = await emptyKeeper()
  const other = createServer().listen(port(1), '127.0.0.1')
  await once(other, 'listening')
  onTestFinished(() => void other.close())
  await expect(shell('a', 'cat', {}, port(1))).rejects.toMatchObject({ code: 'port_taken' })
  expect((await client.call('inventory', {})).units).toEqual([])
})

test('a console has many clients, and a new one gets the scroll-back', async () => {
  const { shell } = await emptyKeeper()
  await shell('a', 'echo hello; cat', {}, port(2))
  const [one, two] = await Promise.all([Terminal.connect(port(2)), Terminal.connect(port(2))])
  await one.expect('hello')
  one.type('from one\n')
  await two.expect('from one')
  two.type('from two\n')
  await one.expect('from two')
  const three = await Terminal.connect(port(2))
  await three.expect(/hello\s+from one\s+from two/)
})

test('a client that does not read is dropped, while the guest and another client go on', async () => {
  const { shell } = await emptyKeeper()
  await shell(
    'a',
    'read go; i=0; while [ $i -lt 2000 ]; do i=$((i+1)); printf "%01000d\\n" $i; done; echo the end; cat',
    {},
    port(3),
  )
  const deaf = await Terminal.connect(port(3))
  deaf.pause()
  const reader = await Terminal.connect(port(3))
  reader.type('go\n')
  await reader.expect('the end')
  reader.type('still here\n')
  await reader.expect('still here')
})

test('a guest that does not read does not block others', async () => {
  const { client, shell } = await emptyKeeper()
  await shell('a', 'sleep 1000', {}, port(4))
  const terminal = await Terminal.connect(port(4))
  for (let round = 0; round < 100; round++) terminal.type('x'.repeat(10_000))
  expect((await client.call('inventory', {})).units).toHaveLength(1)
})

test('the end of a unit closes its console, whose port can be used again at once', async () => {
  const { client, shell } = await emptyKeeper()
  for (let round = 0; round < 3; round++) {
    await shell('a', 'cat', {}, port(5))
    const terminal = await Terminal.connect(port(5))
    terminal.type('hi\n')
    await terminal.expect('hi')
    await client.call('unit.stop', { key: 'a', grace_ms: 1000 })
    await terminal.closed()
  }
})

test('a console is moved while its unit runs, and attached to without telnet', async () => {
  const { client, shell } = await emptyKeeper()
  await shell('a', 'echo hello; cat', {}, port(6))
  await client.call('console.listen', { key: 'a', listen: { host: '127.0.0.1', port: port(7) } })
  await (await Terminal.connect(port(7))).expect('hello')
  await expect(Terminal.connect(port(6))).rejects.toThrow('ECONNREFUSED')
  const raw = await client.attach('console.attach', { key: 'a' })
  onTestFinished(() => void raw.destroy())
  raw.write(Uint8Array.of(0xff, 0x0a))
  let seen = Buffer.alloc(0)
  for await (const chunk of raw) {
    seen = Buffer.concat([seen, chunk as Buffer])
    if (seen.includes(0xff)) break
  }
  expect(seen.toString('latin1')).toBe('hello\n\xff\n')
  await expect(client.attach('console.attach', { key: 'b' })).rejects.toMatchObject({ code: 'not_running' })
})

testWith(vpcs)('VPCS runs on its own terminal, and quit is an end that was not requested', async () => {
  const { client, exit, data } = await emptyKeeper()
  const start = () =>
    client.call('unit.start', {
      key: 'pc:1',
      console: { host: '127.0.0.1', port: port(8) },
      run: {
        type: 'process',
        command: 'vpcs',
        args: ['-i', '1', '-s', `${port(11)}`, '-c', `${port(12)}`],
        cwd: data,
        log: join(data, 'vpcs.log'),
        stdio: 'pty',
        ready: 'Virtual PC',
      },
    })
  for (let round = 0; round < 2; round++) {
    await start()
    const terminal = await Terminal.connect(port(8))
    const banner = await terminal.expect('VPCS> ')
    expect(banner).not.toMatch(/\r\r|[^\r]\n/)
    terminal.type('quit\r')
    await terminal.closed()
    expect(await exit()).toMatchObject({ key: 'pc:1', exit: { code: 0, requested: false } })
  }
})

test('only the user can use the socket, and it works in a directory with a long path', async () => {
  const base = await mkdtemp(join(tmpdir(), 'patchbay-long-'))
  const data = join(base, 'd'.repeat(200))
  mkdirSync(data)
  const { client } = await startKeeper({ data })
  expect((await stat(join(keeperDirectory(data), 'keeper.sock'))).mode & 0o777).toBe(0o600)
  expect(await client.call('inventory', {})).toEqual({ units: [], ports: [], links: [] })
  onTestFinished(() => rm(base, { recursive: true, force: true }))
})

test('two services at once share one keeper', async () => {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-two-'))
  const [one, two] = await Promise.all([startKeeper({ data }), ensureKeeper(data)])
  expect(two.client.pid).toBe(one.client.pid)
  two.client.disconnect()
})

test('a keeper without services and units ends by itself, one with units does not', async () => {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-idle-'))
  onTestFinished(() => rm(data, { recursive: true, force: true }))
  const { client } = await ensureKeeper(data, { idleMs: 1000 })
  const { pid } = client
  await client.call('unit.start', {
    key: 'a',
    run: { type: 'process', command: 'cat', args: [], cwd: data, log: join(data, 'a.log'), stdio: 'pipe' },
  })
  client.disconnect()
  const again = await KeeperClient.connect(data)
  expect(again.pid).toBe(pid)
  await again.call('unit.stop', { key: 'a', grace_ms: 1000 })
  again.disconnect()
  await expect.poll(() => isAlive(pid)).toBe(false)
})

test('orphans of a killed keeper are ended, and no other process', async () => {
  const run = await mkdtemp(join(tmpdir(), 'patchbay-reap-'))
  onTestFinished(() => rm(run, { recursive: true, force: true }))
  const [ours, foreign] = [0, 1].map(() => spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' }))
  onTestFinished(() => void foreign?.kill('SIGKILL'))
  const records = new ChildRecords(run)
  records.add('ours', ours?.pid ?? 0)
  records.add('foreign', foreign?.pid ?? 0)
  // The same pid, but another process: it was started at another time.
  const { readdirSync } = await import('node:fs')
  for (const name of readdirSync(join(run, 'children'))) {
    const file = join(run, 'children', name)
    const record = JSON.parse(readFileSync(file, 'utf8')) as { key: string; start_time: number }
    if (record.key === 'foreign') writeFileSync(file, JSON.stringify({ ...record, start_time: record.start_time - 1 }))
  }
  const gone = once(ours as NonNullable<typeof ours>, 'exit')
  expect(await reapLeftovers(run)).toEqual(['ours'])
  await gone
  expect(isAlive(foreign?.pid ?? 0)).toBe(true)
  expect(readdirSync(join(run, 'children'))).toEqual([])
})
