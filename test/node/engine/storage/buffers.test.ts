import { expect, test } from 'vitest'
import { bufferBytes, giveBack, lend } from '../../../../runtime/node/engine/storage/buffers.ts'

test('a buffer is used again after it was returned, and only once', () => {
  const first = lend(bufferBytes)
  const second = lend(bufferBytes)
  expect(second.buffer).not.toBe(first.buffer)
  giveBack(first)
  giveBack(first)
  const [third, fourth] = [lend(bufferBytes), lend(bufferBytes)]
  expect(third.buffer).toBe(first.buffer)
  expect(fourth.buffer).not.toBe(first.buffer)
})

test('a part of a buffer, a short buffer and a foreign one are not reused: other code may refer to them', () => {
  const whole = lend(bufferBytes)
  for (const piece of [whole.subarray(0, 10), whole.subarray(10), lend(10), new Uint8Array(bufferBytes)]) {
    giveBack(piece)
    expect(lend(bufferBytes).buffer).not.toBe(piece.buffer)
  }
})
