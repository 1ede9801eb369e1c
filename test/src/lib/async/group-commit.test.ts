import { expect, test } from 'vitest'
import { GroupCommit } from '../../../../src/lib/async/group-commit.ts'

/** Runs that wait until they are let end, in the order in which they began. */
function controlled() {
  const ends: ((error?: Error) => void)[] = []
  const work = () =>
    new Promise<void>((resolve, reject) => {
      ends.push((error) => (error === undefined ? resolve() : reject(error)))
    })
  return { ends, work }
}

test('callers that come while a run is under way share the next one', async () => {
  const group = new GroupCommit()
  const { ends, work } = controlled()
  const first = group.run('a', work)
  const others = [1, 2, 3].map(() => group.run('a', work))
  expect(ends).toHaveLength(1)
  ends[0]?.()
  await first
  await expect.poll(() => ends.length).toBe(2)
  // The second run has begun: it may have missed what changes now.
  const late = group.run('a', work)
  ends[1]?.()
  await Promise.all(others)
  await expect.poll(() => ends.length).toBe(3)
  ends[2]?.()
  await late
  expect(ends).toHaveLength(3)
})

test('keys do not wait for each other', async () => {
  const group = new GroupCommit()
  const { ends, work } = controlled()
  const runs = ['a', 'b'].map((key) => group.run(key, work))
  expect(ends).toHaveLength(2)
  for (const end of ends) end()
  await Promise.all(runs)
})

test('a failed run rejects its callers, and not those of the next run', async () => {
  const group = new GroupCommit()
  const { ends, work } = controlled()
  const first = group.run('a', work)
  const second = group.run('a', work)
  ends[0]?.(new Error('the disk is full'))
  await expect(first).rejects.toThrow('the disk is full')
  await expect.poll(() => ends.length).toBe(2)
  ends[1]?.()
  await second
})
