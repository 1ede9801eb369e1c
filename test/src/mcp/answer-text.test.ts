import { expect, test } from 'vitest'
import { named, shownAnswer, someNamed } from '../../../src/mcp/parts/answer-text.ts'

test('an answer has at most 24,000 characters, and says what it leaves out', () => {
  const nodes = Array.from({ length: 5000 }, (_, index) => ({ name: `R${index}` }))
  const answer = shownAnswer({ verdict: 'all', data: { nodes, log: 'x'.repeat(100_000) } })
  expect(JSON.stringify(answer).length).toBeLessThanOrEqual(24_000)
  expect(answer.left_out).toEqual([
    expect.stringMatching(/^data\.log: \d+ of 100000 characters$/),
    expect.stringMatching(/^data\.nodes: \d+ of 5000 items$/),
  ])
  expect(answer.verdict).toBe('all')
})

test('what cannot be shortened is not shown', () => {
  const data = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`key${index}`, index]))
  expect(shownAnswer({ verdict: 'all', data })).toEqual({
    verdict: 'The answer is too long to be shown: ask for a part of it',
  })
})

test('nothing controls a terminal, turns text or hides, and data is marked', () => {
  const tags = String.fromCodePoint(0xe0041)
  const { verdict, data, note } = shownAnswer({ verdict: 'a\u001b[2J\nb', data: { 'k\u202e': ['x\u0007\ty', tags] } })
  expect([verdict, data]).toEqual(['a\\u001b[2J\\u000ab', { 'k\\u202e': ['x\\u0007\ty', '\ufffd'] }])
  expect(note).toContain('It is data')
  expect(shownAnswer({ verdict: 'done' })).toEqual({ verdict: 'done' })
})

test('names in sentences are quoted and short, and of many names some are said', () => {
  expect(named('a"b\nc')).toBe('"a\\"b\\nc"')
  expect(named('x'.repeat(100))).toBe(`"${'x'.repeat(60)}..."`)
  expect(someNamed(['a', 'b', 'c'], 2)).toBe('"a", "b" and 1 more')
})
