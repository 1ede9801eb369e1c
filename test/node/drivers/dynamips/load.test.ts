import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { watchLoad } from '../../../../runtime/node/drivers/dynamips/load.ts'
import { ProcessorTime } from '../../../../runtime/node/os/system/processor-time.ts'
import { requireProgram } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'

/** A program that runs on the first processor only, when it says that it has begun. */
async function pinned(...command: string[]): Promise<number> {
  const child = spawn('taskset', ['-c', '0', ...command], { stdio: ['ignore', 'pipe', 'ignore'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child.pid ?? 0
}

testWith(requireProgram('taskset'))('what is kept from running is not taken for rest', async () => {
  const spinning = ['sh', '-c', 'echo; while :; do :; done']
  const [pid, , , resting] = [
    await pinned(...spinning),
    await pinned(...spinning),
    await pinned(...spinning),
    await pinned(process.execPath, '-e', 'console.log(); setInterval(() => {}, 20)'),
  ]
  const time = new ProcessorTime(pid)
  onTestFinished(() => time.close())
  const [before, since] = [time.read() ?? Number.NaN, performance.now()]
  const [busy, idle] = [watchLoad(pid), watchLoad(resting)]
  await delay(800)
  expect(((time.read() ?? Number.NaN) - before) / (performance.now() - since)).toBeLessThan(0.6)
  expect(await busy?.()).toBeGreaterThan(90)
  expect(await idle?.()).toBeLessThan(60)
})

test('a process that has ended has no known load', () => {
  expect(watchLoad(2 ** 30)).toBeUndefined()
})

test('a process that ends during the measurement was not idle', async () => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' })
  await once(child, 'spawn')
  const load = watchLoad(child.pid ?? 0)
  expect(load).toBeDefined()
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(await load?.()).toBe(100)
})
