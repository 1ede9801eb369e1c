import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { SharedLock } from '../../../../src/lib/async/shared-lock.ts'
import { hangMs } from '../../../support/limits.ts'

const inTime = {
  waitMs: hangMs,
  late() {
    throw new Error('it waits too long')
  },
}

test('an exclusive operation runs alone, after those before it and before those after it, also when they fail', async () => {
  const lock = new SharedLock()
  const log: string[] = []
  const operation = (name: string) => async () => {
    log.push(`${name} begins`)
    await turn()
    await turn()
    log.push(`${name} ends`)
    if (name !== 'b') throw new Error(`${name} failed`)
    return name
  }
  const results = await Promise.allSettled([
    lock.shared(operation('a')),
    lock.shared(operation('b')),
    lock.exclusive(operation('C'), inTime),
    lock.exclusive(operation('D'), inTime),
    lock.shared(operation('e')),
  ])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'rejected', 'rejected'])
  const shared = ['a begins', 'b begins', 'a ends', 'b ends']
  expect(log).toEqual([...shared, 'C begins', 'C ends', 'D begins', 'D ends', 'e begins', 'e ends'])
})

test('an exclusive operation that waits too long for one before it fails or runs, and the others run then', async () => {
  const lock = new SharedLock()
  let end = () => {}
  const hanging = lock.shared(
    () =>
      new Promise<void>((resolve) => {
        end = resolve
      }),
  )
  const log: string[] = []
  const note = (name: string) => async () => void log.push(name)
  await expect(lock.exclusive(note('A'), { ...inTime, waitMs: 1 })).rejects.toThrow('it waits too long')
  await lock.exclusive(note('B'), { waitMs: 1, late: () => log.push('late') })
  await lock.shared(note('c'))
  expect(log).toEqual(['late', 'B', 'c'])
  end()
  await hanging
})
