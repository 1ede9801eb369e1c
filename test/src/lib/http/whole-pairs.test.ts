import { expect, test } from 'vitest'
import { parseJson } from '../../../../src/lib/http/whole-pairs.ts'

const why = (half: string) =>
  `\\u${half} is half of a surrogate pair, which UTF-8 does not have: leave it out, or write both halves`

test('half a surrogate pair is refused where it is', () => {
  expect(() => parseJson(String.raw`{"name":"x\ud800y"}`)).toThrow(`name: ${why('d800')}`)
  expect(() => parseJson(String.raw`{"nodes":[{"label":{"text":"\uDFFF"}}]}`)).toThrow(
    `nodes[0].label.text: ${why('dfff')}`,
  )
  expect(() => parseJson(String.raw`{"kept":{"a\udc00":1}}`)).toThrow(`kept.a\ufffd: ${why('dc00')}`)
  expect(() => parseJson(String.raw`"\udc00\ud800"`)).toThrow(`body: ${why('dc00')}`)
})

test('whole pairs, and backslashes that are not an escape, are accepted', () => {
  expect(parseJson(String.raw`{"name":"\ud83d\ude00 \\ud800"}`)).toEqual({ name: '😀 \\ud800' })
})

test('a value that is nested deeper than the stack is checked', () => {
  const depth = 200_000
  expect(() => parseJson(`${'['.repeat(depth)}"\\ud800"${']'.repeat(depth)}`)).toThrow(/^\[0\]\[0\].*: \\ud800 is half/)
})
