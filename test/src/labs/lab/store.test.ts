import { expect, test } from 'vitest'
import { storedValue } from '../../../../src/labs/lab/store.ts'

test('half a surrogate pair that an earlier version stored is U+FFFD', () => {
  const text = String.raw`{"name":"x\ud800y","label":{"text":"\ud83d\ude00"},"usage":"\\ud800"}`
  expect(storedValue(text)).toEqual({ name: 'x\ufffdy', label: { text: '😀' }, usage: '\\ud800' })
})
