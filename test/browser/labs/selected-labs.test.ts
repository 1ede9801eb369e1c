import { expect, test } from 'vitest'
import { failuresText, selectedLabs, withEach } from '../../../runtime/browser/labs/selected-labs.ts'

const labs = ['1', '2', '3'].map((project_id) => ({ project_id, name: `lab ${project_id}` }))

test('what the search hides is not selected, nor is a lab that was deleted', () => {
  expect(selectedLabs(labs, new Set(['1', '2', '4']), ['3', '2', '4'])).toEqual([labs[1]])
})

test('four labs at most are worked on at a time, and a failure holds up no other', async () => {
  const waiting: (() => void)[] = []
  const begun: string[] = []
  const many = Array.from({ length: 6 }, (_, index) => ({ name: `net-${index}` }))
  const all = withEach(many, async ({ name }) => {
    begun.push(name)
    await new Promise<void>((resolve) => waiting.push(resolve))
    if (name === 'net-1') throw new Error('node_id: the disk is full')
  })
  expect(begun).toEqual(['net-0', 'net-1', 'net-2', 'net-3'])
  for (let go = waiting.shift(); go !== undefined; go = waiting.shift()) {
    go()
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(await all).toEqual(['net-1: the disk is full'])
  expect(begun).toHaveLength(6)
})

test('one message tells of all failures', () => {
  expect(failuresText(['a: full', 'b: full'], 20, 'did not start')).toBe('2 of 20 labs did not start: a: full; b: full')
  const seven = Array.from({ length: 7 }, (_, index) => `${index}: full`)
  expect(failuresText(seven, 7, 'did not stop')).toMatch(/^7 of 7 labs did not stop: 0: full; .*4: full; and 2 more$/)
})
