import { expect, onTestFinished, test, vi } from 'vitest'
import { RunningWatch } from '../../../../runtime/node/drivers/hypervisor/virtualbox/running-watch.ts'
import { adapter, driverWorld, planOf, soon } from './virtualbox-driver.ts'

test('ends and starts by other programs are reported, and the settings of ended machines are restored', async () => {
  const { world, driver } = await driverWorld()
  const [mine, other] = [world.add('mine', { nics: { 1: {} } }).uuid, world.add('other').uuid]
  const before = world.machine(mine)
  const told: string[] = []
  const leave = driver.watch((uuid) => told.push(uuid))
  await driver.get(other)
  await driver.start(mine, planOf([adapter(0)]))
  world.alter(({ machines }) => void Object.assign(machines[1] ?? {}, { state: 'running', pid: process.pid }))
  await expect.poll(() => told, soon).toEqual([other])
  process.kill(world.machine(mine).pid, 'SIGKILL')
  await expect.poll(() => told, soon).toEqual([other, mine])
  await expect.poll(() => world.machine(mine).nics[0], soon).toEqual(before.nics[0])
  world.alter(({ machines }) => void Object.assign(machines[1] ?? {}, { state: 'poweroff', pid: 0 }))
  await expect.poll(() => told, soon).toEqual([other, mine, other])
  leave()
  leave()
})

/** A watch with a clock that goes when it is told to. */
function clockedWatch(ask: () => Promise<readonly string[]>, told: string[]) {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const watch = new RunningWatch(ask, 2000, (uuid) => told.push(uuid))
  return { watch, go: (ms: number) => vi.advanceTimersByTimeAsync(ms) }
}

test('VirtualBox is not polled without watchers or running machines', async () => {
  let asked = 0
  let running: string[] = ['a']
  const told: string[] = []
  const ask = () => {
    asked++
    return Promise.resolve(running)
  }
  const { watch, go } = clockedWatch(ask, told)
  watch.note('a', true)
  await go(10_000)
  expect(asked).toBe(0)
  const leave = watch.enter()
  await go(6100)
  expect([asked, told]).toEqual([3, []])
  running = []
  await go(10_000)
  expect([asked, told]).toEqual([4, ['a']])
  running = ['a']
  watch.note('a', true)
  await go(2000)
  expect(asked).toBe(5)
  leave()
  await go(10_000)
  expect([asked, told]).toEqual([5, ['a']])
})

test('polls do not overlap, a failed one is repeated, and a newer state is not replaced by an older answer', async () => {
  const told: string[] = []
  const answers: { resolve: (running: string[]) => void; reject: (error: Error) => void }[] = []
  const ask = () => new Promise<string[]>((resolve, reject) => answers.push({ resolve, reject }))
  const { watch, go } = clockedWatch(ask, told)
  watch.enter()
  watch.note('a', true)
  watch.note('b', true)
  await go(10_000)
  expect(answers).toHaveLength(1)
  answers[0]?.reject(new Error('busy'))
  await go(2000)
  expect(answers).toHaveLength(2)
  watch.note('a', false)
  watch.forget('b')
  watch.note('c', true)
  answers[1]?.resolve([])
  await go(2000)
  expect([answers.length, told]).toEqual([3, []])
  answers[2]?.resolve([])
  await go(10_000)
  expect([answers.length, told]).toEqual([3, ['c']])
  watch.close()
})
