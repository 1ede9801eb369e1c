import { expect, test } from 'vitest'
import { Reassembly } from '../../../../runtime/node/keeper/simulator/stack/reassembly.ts'

/** Gives the fragments of a packet of zeros in turn; the last result. */
function addAll(reassembly: Reassembly, length: number, size: number): Uint8Array | undefined {
  let whole: Uint8Array | undefined
  for (let at = 0; at < length; at += size)
    whole = reassembly.add('a', at, new Uint8Array(Math.min(size, length - at)), at + size >= length)
  return whole
}

test('a packet of the largest size is put together', () => {
  expect(addAll(new Reassembly(), 65_515, 1480)).toHaveLength(65_515)
})

test('a packet in very many small fragments is dropped', () => {
  expect(addAll(new Reassembly(), 8 * 300, 8)).toBeUndefined()
})

test('empty fragments, and those of an impossible size, are not stored', () => {
  const reassembly = new Reassembly()
  expect(reassembly.add('a', 8, new Uint8Array(0), false)).toBeUndefined()
  expect(reassembly.add('a', 0, new Uint8Array(9), false)).toBeUndefined()
  expect(reassembly.add('a', 0, new Uint8Array(8), false)).toBeUndefined()
  expect(reassembly.add('a', 8, new Uint8Array(8), true)).toHaveLength(16)
})

test('overlapping fragments are dropped once they are larger than any packet', () => {
  const reassembly = new Reassembly()
  const pieces = Math.ceil(65_536 / 1480)
  for (let piece = 0; piece < pieces; piece++)
    expect(reassembly.add('a', piece * 8, new Uint8Array(1480), false)).toBeUndefined()
  expect(addAll(reassembly, 3000, 1480)).toHaveLength(3000)
})
