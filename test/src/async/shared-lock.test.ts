import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { SharedLock } from '../../../src/async/shared-lock.ts'

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
    lock.exclusive(operation('C')),
    lock.exclusive(operation('D')),
    lock.shared(operation('e')),
  ])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'rejected', 'rejected'])
  const shared = ['a begins', 'b begins', 'a ends', 'b ends']
  expect(log).toEqual([...shared, 'C begins', 'C ends', 'D begins', 'D ends', 'e begins', 'e ends'])
})
