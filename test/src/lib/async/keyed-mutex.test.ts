import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { KeyedMutex } from '../../../../src/lib/async/keyed-mutex.ts'

test('operations on one key run one after the other, in the order they came, also after a failure', async () => {
  const serial = new KeyedMutex()
  const log: string[] = []
  const operation = (name: string) => async () => {
    log.push(`${name} begins`)
    await turn()
    log.push(`${name} ends`)
    if (name === 'b') throw new Error('b failed')
    return name
  }
  const results = await Promise.allSettled(['a', 'b', 'c'].map((name) => serial.run('key', operation(name))))
  expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

test('keys do not wait for each other, and a key is busy until its last operation ends', async () => {
  const serial = new KeyedMutex()
  let finish: () => void = () => {}
  const blocked = serial.run('a', () => new Promise<void>((resolve) => (finish = resolve)))
  expect(await serial.run('b', async () => 'through')).toBe('through')
  expect(serial.isBusy('a')).toBe(true)
  finish()
  await blocked
  await turn()
  expect(serial.isBusy('a')).toBe(false)
})

test('an operation on several keys locks all of them, and two such operations do not deadlock', async () => {
  const mutex = new KeyedMutex()
  const did: string[] = []
  const slowly = (word: string) => async () => {
    did.push(`${word} begins`)
    await turn()
    did.push(`${word} ends`)
  }
  await Promise.all([
    mutex.runAll(['a', 'b', 'a'], slowly('first')),
    mutex.runAll(['b', 'a'], slowly('second')),
    mutex.run('b', slowly('third')),
    mutex.runAll([], slowly('free')),
  ])
  const order = did.filter((it) => !it.startsWith('free'))
  expect(order).toEqual(order.filter((_, at) => at % 2 === 0).flatMap((it) => [it, it.replace('begins', 'ends')]))
  expect(order).toHaveLength(6)
  expect([mutex.isBusy('a'), mutex.isBusy('b')]).toEqual([false, false])
})
