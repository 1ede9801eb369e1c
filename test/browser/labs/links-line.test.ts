import { expect, test } from 'vitest'
import { linksLine } from '../../../runtime/browser/labs/links-line.ts'

const sizes = { nodes: 4, segments: 0, links: 3, running: 2 }

test.for([
  ['ok', 3, 'All links pass frames.'],
  // The others are at a node that could not be made: they have no verdict.
  ['ok', 1, '1 of 3 links passes frames.'],
  ['stopped', 2, '2 of 3 links pass frames.'],
  ['stopped', 0, undefined],
  ['one_way', 2, 'Worst link: Frames pass in one direction only.'],
] as const)('links of which the worst is %s, and %i pass frames', ([worst_verdict, links_passing, text]) => {
  expect(linksLine({ ...sizes, worst_verdict, links_passing })?.text).toBe(text)
})

test('a service that does not say how many pass frames, or nothing of its links', () => {
  expect(linksLine({ ...sizes, worst_verdict: 'ok' })?.text).toBe('All links pass frames.')
  expect(linksLine(sizes)).toBe(undefined)
})
