import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { KeeperClient } from '../../runtime/node/keeper/client/client.ts'
import type { EmbeddedPcSpec } from '../../runtime/node/keeper/protocol/protocol.ts'
import { isAlive, startKeeper, type TestKeeper } from '../support/keeper.ts'
import { hangMs } from '../support/limits.ts'
import { freePort } from '../support/ports.ts'
import { processState, usage } from '../support/processor-time.ts'
import { quickest, took } from '../support/rounds.ts'
import { TcpClient } from '../support/tcp-client.ts'

// Bounds are wide: the processors are shared with other tests.
const busy = 'while :; do :; done'

const limit = ({ client }: TestKeeper, cpu_percent: number, key = 'a') =>
  client.call('unit.limit', { key, cpu_percent })

/** Resolves in a moment at which a unit is stopped by its limit. */
const stopped = (pid: number) => expect.poll(() => processState(pid), { interval: 5 }).toBe('T')

/** A program of Node as a unit; resolves when it has shown `ready`. */
const program = ({ shell, data }: TestKeeper, source: string) =>
  shell('a', '', { command: process.execPath, args: ['-e', source], cwd: data, ready: 'ready' })

test('a busy program uses the time of its limit, also after the end of the service that set it', async () => {
  const keeper = await startKeeper()
  const { pid } = await keeper.shell('a', busy)
  const service = await KeeperClient.connect(keeper.data)
  await service.call('unit.limit', { key: 'a', cpu_percent: 20 })
  service.disconnect()
  await service.closed
  const used = await usage(pid, 1500)
  expect(used).toBeGreaterThan(10)
  expect(used).toBeLessThan(30)
})

test('a limit is changed and removed while the program runs, and setting it again changes nothing', async () => {
  const keeper = await startKeeper()
  const { pid } = await keeper.shell('a', busy)
  for (const percent of [0, 50, 5, 5]) await limit(keeper, percent)
  const used = await usage(pid, 1500)
  expect(used).toBeGreaterThan(1)
  expect(used).toBeLessThan(12)
  await stopped(pid)
  for (const percent of [0, 0]) await limit(keeper, percent)
  expect(processState(pid)).not.toBe('T')
  await expect.poll(() => usage(pid, 500)).toBeGreaterThan(40)
})

test('two threads may use one and a half processors', async () => {
  const keeper = await startKeeper()
  const source = `
    const { Worker } = require('node:worker_threads')
    new Worker('while (true);', { eval: true }).on('online', () => { console.log('ready'); while (true); })`
  const { pid } = await program(keeper, source)
  // Nearly 200, where two processors are free.
  const free = await usage(pid, 800)
  await limit(keeper, 150)
  expect(await usage(pid, 1500)).toBeLessThan(175)
  await expect.poll(() => usage(pid, 1000)).toBeGreaterThan(Math.min(free, 150) * 0.6)
  await limit(keeper, 30)
  expect(await usage(pid, 1500)).toBeLessThan(45)
})

test('several units have each a limit of their own', async () => {
  const keeper = await startKeeper()
  const units = await Promise.all(
    [5, 10, 20].map(async (percent) => {
      const key = `unit ${percent}`
      const { pid } = await keeper.shell(key, busy)
      await limit(keeper, percent, key)
      return { pid, percent }
    }),
  )
  for (const { used, percent } of await Promise.all(
    units.map(async ({ pid, percent }) => ({ percent, used: await usage(pid, 2500) })),
  )) {
    expect(used).toBeGreaterThan(percent / 2)
    expect(used).toBeLessThan(percent * 1.5)
  }
})

test('a program that sleeps and wakes up often is never stopped; a busy one is', async () => {
  const keeper = await startKeeper()
  const source = `
    process.on('SIGCONT', () => console.log('continued'))
    process.stdin.once('data', () => {
      let ticks = 0
      setInterval(() => console.log('tick ' + ++ticks), 25)
    })
    process.stdin.on('data', (text) => {
      if (String(text) === 'work') for (const end = Date.now() + 300; Date.now() < end; );
    })
    console.log('ready')`
  await program(keeper, source)
  await limit(keeper, 10)
  const client = new TcpClient(await keeper.client.attach('console.attach', { key: 'a' }))
  client.socket.write('begin')
  await client.shows('tick 60\n')
  expect(client.received.toString()).not.toContain('continued')
  client.socket.write('work')
  await client.shows('continued')
})

test('a stop sends SIGTERM at once, although the program is stopped by its limit', async () => {
  const keeper = await startKeeper()
  const round = async () => {
    const { pid } = await keeper.shell('a', `trap 'echo goodbye; exit 0' TERM; echo ready; ${busy}`, { ready: 'ready' })
    await limit(keeper, 1)
    await stopped(pid)
    return took(async () => {
      const { exit } = await keeper.client.call('unit.stop', { key: 'a', grace_ms: hangMs })
      expect(exit).toEqual({ code: 0, signal: null, requested: true, last_words: 'ready\ngoodbye' })
    })
  }
  // Left to the limit, it would stay stopped for a second.
  expect(await quickest(700, round)).toBeLessThan(700)
})

test('the end of the keeper does the same', async () => {
  const keeper = await startKeeper()
  const file = join(keeper.data, 'goodbye')
  const { pid } = await keeper.shell('a', `trap 'echo goodbye > goodbye; exit' TERM; echo ready; ${busy}`, {
    ready: 'ready',
  })
  await limit(keeper, 1)
  await stopped(pid)
  await keeper.client.call('shutdown', { grace_ms: 10_000 })
  expect(readFileSync(file, 'utf8')).toBe('goodbye\n')
})

test('programs that a limit has stopped end with a killed keeper', async () => {
  const keeper = await startKeeper()
  const { pid } = await keeper.shell('a', busy)
  onTestFinished(() => {
    if (isAlive(pid)) process.kill(-pid, 'SIGKILL')
  })
  await limit(keeper, 1)
  await stopped(pid)
  process.kill(keeper.client.pid, 'SIGKILL')
  await keeper.client.closed
  await expect.poll(() => isAlive(pid)).toBe(false)
})

test('a limit ends with its unit: the next start has none, and nothing remains of it', async () => {
  const keeper = await startKeeper()
  const { pid } = await keeper.shell('a', busy)
  await limit(keeper, 1)
  await stopped(pid)
  const open = () =>
    readdirSync(`/proc/${keeper.client.pid}/fd`).filter((it) => fileOf(keeper.client.pid, it).endsWith('/stat'))
  expect(open()).toHaveLength(1)
  process.kill(pid, 'SIGKILL')
  expect(await keeper.exit()).toMatchObject({ key: 'a', exit: { signal: 'SIGKILL', requested: false } })
  expect(open()).toEqual([])
  await expect(limit(keeper, 50)).rejects.toMatchObject({ code: 'not_running' })
  const again = await keeper.shell('a', busy)
  await expect.poll(() => usage(again.pid, 500)).toBeGreaterThan(40)
})

test('a unit that does not run or has no process, and a limit that is not a valid number, are refused', async () => {
  const keeper = await startKeeper()
  await expect(limit(keeper, 50)).rejects.toMatchObject({ code: 'not_running' })
  await keeper.shell('a', 'exec cat')
  for (const percent of [-1, 0.5, 801, Number.NaN, '20' as unknown as number])
    await expect(limit(keeper, percent)).rejects.toMatchObject({ code: 'bad_request' })
  await limit(keeper, 800)
  const run: EmbeddedPcSpec = {
    ...{ type: 'pc', mac: '00:50:79:66:68:00', directory: keeper.data, script: 'startup.vpc' },
    ...{ guest_port: freePort(), switch_port: freePort() },
  }
  await keeper.client.call('unit.start', { key: 'pc:a', run })
  await expect(limit(keeper, 50, 'pc:a')).rejects.toMatchObject({ code: 'unsupported' })
})

function fileOf(pid: number, descriptor: string): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${descriptor}`)
  } catch {
    return ''
  }
}
