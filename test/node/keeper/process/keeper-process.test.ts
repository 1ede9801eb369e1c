import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { KeeperClient } from '../../../../runtime/node/keeper/client/client.ts'
import { ensureKeeper, openKeeper as openHeld } from '../../../../runtime/node/keeper/client/launch.ts'
import { reapLeftovers } from '../../../../runtime/node/keeper/process/child-records.ts'
import { generation, hasKeeper, keeperDirectory, lockOf } from '../../../../runtime/node/keeper/process/generation.ts'
import { protocolVersion } from '../../../../runtime/node/keeper/protocol/protocol.ts'
import { LineReader } from '../../../../runtime/node/os/system/line-reader.ts'
import { identify } from '../../../../runtime/node/os/system/process-identity.ts'
import { takeLock } from '../../../../runtime/node/os/system/process-lock.ts'
import { shellUnit } from '../../../support/child-unit.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { endsWithUs } from '../../../support/ends-with-us.ts'
import { python3 } from '../../../support/python.ts'
import { requireProgram, requireRoot } from '../../../support/require.ts'
import { TcpClient } from '../../../support/tcp-client.ts'
import { testWith } from '../../../support/test-with.ts'

/** A keeper of a fresh directory, ended with the test. */
async function openKeeper(idleMs?: number): Promise<{ data: string; client: KeeperClient }> {
  const data = await freshDirectory()
  const { client, created } = await ensureKeeper(data, idleMs === undefined ? {} : { idleMs })
  expect(created).toBe(true)
  endWith(client)
  return { data, client }
}

/** One for the tests that leave it as it was. */
let shared: Awaited<ReturnType<typeof ensureKeeper>>['client'] | undefined
let sharedData = ''
beforeAll(async () => {
  sharedData = await mkdtemp(join(tmpdir(), 'patchbay-keeper-'))
  endsWithUs(sharedData)
  shared = (await ensureKeeper(sharedData)).client
})
afterAll(async () => {
  await shared?.call('shutdown', { grace_ms: 100 })
  shared?.disconnect()
  await rm(sharedData, { recursive: true, force: true })
})
function sharedKeeper(): { data: string; client: KeeperClient } {
  if (shared === undefined) throw new Error('the keeper is started before the tests')
  return { data: sharedData, client: shared }
}

function endWith(client: KeeperClient): void {
  onTestFinished(async () => {
    await client.call('shutdown', { grace_ms: 100 }).catch(() => {})
    client.disconnect()
  })
}

/** A connection to the socket that speaks for itself. */
async function rawSocket(data: string): Promise<{ socket: Socket; ask: (line: string) => Promise<unknown> }> {
  const socket = connect(join(keeperDirectory(data), 'keeper.sock'))
  await once(socket, 'connect')
  onTestFinished(() => void socket.destroy())
  const lines = new LineReader(1 << 20)
  const ask = async (line: string) => {
    socket.write(`${line}\n`)
    for (;;) {
      const [bytes] = (await once(socket, 'data')) as [Buffer]
      const [answer] = lines.push(bytes)
      if (answer !== undefined) return JSON.parse(answer) as unknown
    }
  }
  return { socket, ask }
}

test('the second keeper of a directory refuses, and the first one goes on', async () => {
  const { data, client } = sharedKeeper()
  const second = spawn(process.execPath, [join(inject('bundled'), 'keeper.js'), data], { stdio: 'ignore' })
  expect(await once(second, 'exit')).toEqual([3, null])
  expect((await KeeperClient.connect(data)).pid).toBe(client.pid)
  expect(await client.call('inventory', {})).toEqual({ units: [], ports: [], links: [] })
})

testWith(requireProgram('python3'), requireRoot())(
  'a process of another user that has the name of the lock keeps no keeper from starting',
  async () => {
    const data = await freshDirectory()
    mkdirSync(keeperDirectory(data), { recursive: true })
    const python = `
import socket, sys
it = socket.socket(socket.AF_UNIX)
it.bind(("\\0" + sys.argv[1]).encode().ljust(108, b"\\0"))
it.listen()
print("ready", flush=True)
sys.stdin.read()`
    const args = ['-c', python, lockOf(keeperDirectory(data)).socket]
    const squatter = spawn(python3, args, { uid: 65_534, gid: 65_534, stdio: ['pipe', 'pipe', 'inherit'] })
    onTestFinished(async () => {
      squatter.stdin.end()
      await once(squatter, 'exit')
    })
    await once(squatter.stdout, 'data')
    const { client, created } = await ensureKeeper(data)
    endWith(client)
    expect([created, await hasKeeper(keeperDirectory(data))]).toEqual([true, true])
  },
)

test('a service waits for a keeper that has its directory and no socket, as one that starts or ends', async () => {
  const directory = await freshDirectory()
  const lock = await takeLock(lockOf(directory))
  const hello = { protocol: protocolVersion, version: 'x', pid: 1, packet_path: 'fast' }
  const opened = openHeld(directory)
  const server = createServer((socket) => {
    socket.once('data', () => void socket.write(`${JSON.stringify({ id: 0, result: hello })}\n`))
  })
  onTestFinished(() => void server.close())
  server.listen(join(directory, 'keeper.sock'))
  const client = await opened
  expect(client.version).toBe('x')
  client.disconnect()
  await new Promise((resolve) => server.close(resolve))
  // One that ends leaves the lock last.
  const next = openHeld(directory)
  lock?.release()
  await expect(next).rejects.toMatchObject({ code: 'internal' })
})

test('many services that start at the same moment share one keeper, which one of them started', async () => {
  const data = await freshDirectory()
  const all = await Promise.all(Array.from({ length: 3 }, () => ensureKeeper(data)))
  for (const { client } of all) endWith(client)
  expect(new Set(all.map(({ client }) => client.pid)).size).toBe(1)
  expect(all.filter(({ created }) => created).length).toBe(1)
})

test('every service gets the event of the end of a unit, and can attach to its console', async () => {
  const { data, client } = await openKeeper()
  const other = await KeeperClient.connect(data)
  onTestFinished(() => other.disconnect())
  const told = [client, other].map(
    (it) => new Promise<string>((resolve) => (it.onExit = (key, run, { code }) => resolve(`${key} ${run} ${code}`))),
  )
  const { run } = await client.call('unit.start', shellUnit(data, 'echo hello; read line; exit 4'))
  await expect(other.call('unit.start', shellUnit(data, 'exit 0'))).rejects.toMatchObject({ code: 'exists' })
  const console = new TcpClient(await other.attach('console.attach', { key: 'test:unit' }))
  await console.shows('hello')
  console.socket.write('\n')
  expect(await Promise.all(told)).toEqual([`test:unit ${run} 4`, `test:unit ${run} 4`])
  await console.closed()
  const [unit] = (await other.call('inventory', {})).units
  expect(unit).toMatchObject({ run, exit: { code: 4, requested: false } })
})

test('units keep running after the end of a service, and the next one finds them', async () => {
  const { data, client } = await openKeeper()
  const { pid } = await client.call('unit.start', shellUnit(data, 'exec cat'))
  client.disconnect()
  await client.closed
  const { client: next, created } = await ensureKeeper(data)
  endWith(next)
  expect(created).toBe(false)
  expect(next.pid).toBe(client.pid)
  expect((await next.call('inventory', {})).units).toMatchObject([{ key: 'test:unit', pid, exit: null }])
})

test('kill -9 of a keeper closes its connections, fails pending requests, and ends its children; runs of the next have other numbers', async () => {
  const { data, client } = await openKeeper()
  const { pid, run } = await client.call('unit.start', shellUnit(data, 'exec cat'))
  const waiting = client.call('unit.start', { ...shellUnit(data, 'sleep 100', { ready: 'never' }), key: 'test:other' })
  const failed = expect(waiting).rejects.toMatchObject({ code: 'internal', message: 'the keeper has ended' })
  process.kill(client.pid, 'SIGKILL')
  await client.closed
  await failed
  await expect(client.call('inventory', {})).rejects.toMatchObject({ code: 'internal' })
  // Its socket is still there, and is no obstacle.
  expect(existsSync(join(keeperDirectory(data), 'keeper.sock'))).toBe(true)
  const next = await ensureKeeper(data)
  endWith(next.client)
  expect(next.created).toBe(true)
  expect(next.client.pid).not.toBe(client.pid)
  // With a death signal they are gone already; without one they are the leftovers.
  await reapLeftovers(keeperDirectory(data))
  await expect.poll(() => identify(pid)).toBeUndefined()
  // The event of an end may come when another keeper runs the node.
  expect((await next.client.call('unit.start', shellUnit(data, 'exec cat'))).run).not.toBe(run)
})

test('a service that starts while an idle keeper ends gets a working one', async () => {
  const data = await freshDirectory()
  let last = 0
  for (let round = 0; round < 2; round++) {
    const { client } = await ensureKeeper(data, { idleMs: 500 })
    expect(client.pid).not.toBe(last)
    last = client.pid
    expect(await client.call('inventory', {})).toEqual({ units: [], ports: [], links: [] })
    client.disconnect()
    // Its socket goes first; the process still holds the directory for a moment.
    await expect.poll(() => existsSync(join(keeperDirectory(data), 'keeper.sock')), { interval: 1 }).toBe(false)
  }
  await expect.poll(() => identify(last)).toBeUndefined()
})

test('a keeper is not idle before the service that started it has connected, or has ended', async () => {
  const data = await freshDirectory()
  const args = [join(inject('bundled'), 'keeper.js'), data, '0', generation()]
  const keeper = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit', 'pipe'] })
  const pipe = keeper.stdio[3] as Socket
  await once(pipe, 'data')
  // A busy service is late; without the pipe the keeper would have ended.
  await delay(500)
  const client = await KeeperClient.connect(data)
  endWith(client)
  expect(await client.call('inventory', {})).toEqual({ units: [], ports: [], links: [] })
  client.disconnect()
  await client.closed
  pipe.destroy()
  expect(await once(keeper, 'exit')).toEqual([0, null])
})

test('a service that starts while a keeper ends its units gets the next keeper', async () => {
  const { data, client } = await openKeeper()
  const unit = shellUnit(data, 'trap "" TERM; echo ready; while :; do sleep 0.1; done', { ready: 'ready' })
  const { pid } = await client.call('unit.start', unit)
  const ended = client.call('shutdown', { grace_ms: 1000 })
  const { client: next, created } = await ensureKeeper(data)
  endWith(next)
  await ended
  expect(created).toBe(true)
  expect(next.pid).not.toBe(client.pid)
  expect(identify(pid)).toBeUndefined()
  expect(await next.call('inventory', {})).toEqual({ units: [], ports: [], links: [] })
})

test('an idle keeper ends after its time, and its children and its socket with it', async () => {
  // Enough for the next connection.
  const { data, client } = await openKeeper(1000)
  const { pid } = await client.call('unit.start', shellUnit(data, 'read line'))
  client.disconnect()
  const again = await KeeperClient.connect(data)
  expect(again.pid).toBe(client.pid)
  await again.call('unit.stop', { key: 'test:unit', grace_ms: 1000 })
  again.disconnect()
  await expect.poll(() => identify(again.pid)).toBeUndefined()
  expect(identify(pid)).toBeUndefined()
  expect(existsSync(join(keeperDirectory(data), 'keeper.sock'))).toBe(false)
})

test('Ctrl-C and a closed terminal do not end the keeper; SIGTERM ends it and its units, and its consoles are refused', async () => {
  const { data, client } = await openKeeper()
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGQUIT'] as const) process.kill(client.pid, signal)
  const { pid } = await client.call('unit.start', shellUnit(data, 'exec cat'))
  process.kill(client.pid, 'SIGTERM')
  await client.closed
  expect(identify(pid)).toBeUndefined()
  await expect(client.attach('console.attach', { key: 'test:unit' })).rejects.toMatchObject({
    code: 'internal',
    message: 'the keeper has ended',
  })
  await expect.poll(() => identify(client.pid)).toBeUndefined()
})

test('a service of any version gets the version of the keeper, and unknown operations are refused', async () => {
  const { data, client } = sharedKeeper()
  const { ask } = await rawSocket(data)
  for (const protocol of [protocolVersion - 1, protocolVersion, protocolVersion + 1]) {
    expect(await ask(JSON.stringify({ id: 1, op: 'hello', with: { protocol } }))).toMatchObject({
      id: 1,
      result: { protocol: protocolVersion, pid: client.pid },
    })
  }
  expect(await ask('{"id":2,"op":"unit.dance","with":{}}')).toMatchObject({ id: 2, error: { code: 'bad_request' } })
  const other = await rawSocket(data)
  expect(await other.ask('{"id":3,"op":"console.attach","with":{"key":"nobody"}}')).toMatchObject({
    id: 3,
    error: { code: 'not_running' },
  })
})

test('no second keeper is started beside one that refuses this version', async () => {
  const data = await freshDirectory()
  mkdirSync(keeperDirectory(data), { recursive: true })
  const message = 'this keeper speaks protocol 1, the service another'
  const other = createServer((socket) => {
    socket.once('data', () => socket.write(`${JSON.stringify({ id: 0, error: { code: 'protocol', message } })}\n`))
  }).listen(join(keeperDirectory(data), 'keeper.sock'))
  await once(other, 'listening')
  onTestFinished(() => void other.close())
  await expect(ensureKeeper(data)).rejects.toMatchObject({ code: 'protocol', message })
  expect(existsSync(join(data, 'run', 'keeper.log'))).toBe(false)
})

test('a connection that does not send JSON is closed, without effect on others', async () => {
  const { data, client } = sharedKeeper()
  for (const rubbish of ['GET / HTTP/1.1\r\n', 'null\n', '"text"\n', '{"id":1,"op":"unit.start","with":null}\n']) {
    const { socket } = await rawSocket(data)
    socket.end(rubbish)
    socket.resume()
    await once(socket, 'close')
  }
  expect(await client.call('inventory', {})).toEqual({ units: [], ports: [], links: [] })
})
