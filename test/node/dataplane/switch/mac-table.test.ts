import { expect, test } from 'vitest'
import { Bridge, drop, flood } from '../../../../runtime/node/dataplane/switch/core/bridge.ts'
import { MacTable } from '../../../../runtime/node/dataplane/switch/core/mac-table.ts'

test('an address is removed when it was not seen for the ageing time', () => {
  const table = new MacTable()
  table.learn(1, 2, 7, 0)
  expect(table.find(1, 2, 299_999)).toBe(7)
  expect(table.find(1, 2, 300_000)).toBeLessThan(0)
  table.learn(1, 2, 8, 200_000)
  expect(table.find(1, 2, 499_999)).toBe(8)
  expect(table.entries(300_000)).toEqual([{ mac: '00:00:00:01:00:00', vlan: 2, port_number: 8, age_s: 100 }])
})

test('a table holds tens of thousands of addresses, and stops learning when it is full', () => {
  const table = new MacTable()
  const lowOf = (index: number) => ((index << 16) | 1) >>> 0
  for (let index = 0; index < 60_000; index++) table.learn(index, lowOf(index), index % 1000, 0)
  const found = Array.from({ length: 60_000 }, (_, index) => table.find(index, lowOf(index), 1))
  expect(found.findIndex((port, index) => port !== index % 1000)).toBe(-1)
  for (let index = 60_000; index < 200_000; index++) table.learn(index, lowOf(index), 1, 1)
  expect(table.entries(1).length).toBeLessThanOrEqual(65_536)
  // What is too old makes room.
  table.learn(500_000, 1, 3, 400_000)
  expect(table.find(500_000, 1, 400_000)).toBe(3)
  expect(table.entries(400_000)).toHaveLength(1)
})

test('the ageing time is a setting of the switch', () => {
  const bridge = new Bridge<object>(() => {})
  const ports = [0, 1].map((port_number) => ({ port_number, mode: 'access' as const, vlan: 1, ethertype: 0x8100 }))
  bridge.configure({ type: 'bridge', forwards: 'learned', ageing_s: 10, ports })
  const view = (to: number, from: number) =>
    new DataView(Uint8Array.from([2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0]).buffer)
  const [a, b] = [0, 1].map((number) => bridge.port(number))
  if (a === undefined || b === undefined) throw new Error('no ports')
  expect(bridge.route(a, view(2, 1), 0, 14, 0)).toBe(flood)
  expect(bridge.route(b, view(1, 2), 0, 14, 9_999)).toBe(0)
  expect(bridge.route(b, view(1, 2), 0, 14, 10_000)).toBe(flood)
  expect(bridge.route(b, view(2, 3), 0, 14, 10_000)).toBe(drop)
})
