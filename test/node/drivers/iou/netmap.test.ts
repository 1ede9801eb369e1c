import { expect, test } from 'vitest'
import { freeApplicationId, netmapPeerOf, netmapText } from '../../../../runtime/node/drivers/iou/netmap.ts'

test('a NETMAP joins every port of 16 bays to its peer', () => {
  const lines = netmapText(7).split('\n')
  expect(lines.slice(0, 5)).toEqual([
    '519:0/0    7:0/0',
    '519:0/1    7:0/1',
    '519:0/2    7:0/2',
    '519:0/3    7:0/3',
    '519:1/0    7:1/0',
  ])
  expect(lines.slice(-2)).toEqual(['519:15/3    7:15/3', ''])
  expect(lines.length).toBe(65)
  expect(netmapText(511)).toMatch(/^1023:0\/0 {2}511:0\/0\n/)
  expect(netmapPeerOf(1)).toBe(513)
})

test('the lowest free id is used, and none when all are in use', () => {
  expect(freeApplicationId([])).toBe(1)
  expect(freeApplicationId(new Set([1, 2, 4, 511]))).toBe(3)
  const all = Array.from({ length: 511 }, (_, n) => n + 1)
  expect(freeApplicationId(all.slice(0, 510))).toBe(511)
  expect(() => freeApplicationId(all)).toThrow(
    expect.objectContaining({ status: 409, message: expect.stringContaining('All 511 application ids') }),
  )
})
