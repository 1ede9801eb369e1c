import { expect, test } from 'vitest'
import { BatchedWrites } from '../../../runtime/worker/directory/batched-writes.ts'

test('writes are made together, and only the last one of each row', async () => {
  const writes = new BatchedWrites()
  const made: string[] = []
  const first = writes.add('a', () => made.push('a opened'))
  const second = writes.add('b', () => made.push('b opened'))
  const third = writes.add('a', () => made.push('a closed'))
  expect(made).toEqual([])
  await Promise.all([first, second, third])
  expect(made).toEqual(['a closed', 'b opened'])
})

test('an immediate write replaces the waiting write of its row', async () => {
  const writes = new BatchedWrites()
  const made: string[] = []
  const waiting = [writes.add('a', () => made.push('a opened')), writes.add('b', () => made.push('b opened'))]
  writes.now('a', () => made.push('a removed'))
  expect(made).toEqual(['a removed'])
  await Promise.all(waiting)
  expect(made).toEqual(['a removed', 'b opened'])
})

test('all callers of a failed write get the error, and later writes are made', async () => {
  const writes = new BatchedWrites()
  const made: string[] = []
  const full = () => {
    throw new Error('the disk is full')
  }
  const waiting = [writes.add('a', full), writes.add('b', () => made.push('b'))]
  for (const it of await Promise.allSettled(waiting)) expect(it.status).toBe('rejected')
  await writes.add('c', () => made.push('c'))
  expect(made).toEqual(['c'])
})
