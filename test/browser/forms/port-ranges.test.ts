import { expect, test } from 'vitest'
import { newPortRow, portsOf, rowsOf, withOwnPorts } from '../../../runtime/browser/forms/port-ranges.ts'

const port = (port_number: number, type = 'access', vlan = 1, name = `Ethernet${port_number}`) => ({
  ...{ port_number, name, type, vlan, ethertype: '' },
})
const row = (ports: string, mode = 'access', vlan = '1', name = '') => ({ ports, mode, vlan, ethertype: '', name })

test('ports with equal settings are one row', () => {
  const ports = [port(0, 'access', 10), port(1, 'access', 10), port(2, 'dot1q'), port(3, 'access', 10)]
  expect(rowsOf(ports)).toEqual([row('e0-e1, e3', 'access', '10'), row('e2', 'dot1q')])
  expect(portsOf(rowsOf(ports))).toEqual(ports)
})

test('a port with a name of its own has a row of its own, and keeps the name', () => {
  const ports = [port(0), port(1, 'access', 1, 'uplink'), port(2)]
  expect(rowsOf(ports)).toEqual([row('e0, e2'), row('e1', 'access', '1', 'uplink')])
  expect(portsOf(rowsOf(ports))).toEqual(ports)
})

test('ranges are taken as people write them', () => {
  const numbers = (text: string) => portsOf([row(text)]).map(({ port_number }) => port_number)
  expect([numbers('0-2'), numbers('E1 - e2,e7'), numbers('Ethernet3 to 4')]).toEqual([
    [0, 1, 2],
    [1, 2, 7],
    [3, 4],
  ])
})

test.each([
  [[row('e0-')], 'expected ports such as e0-e3 or e7, not "e0-"'],
  [[row('e3-e1')], 'e3-e1 ends before it begins'],
  [[row('e0-e3'), row('e3')], 'e3 is in two rows'],
  [[row('e2000')], 'at most 1024 ports'],
  [[row('e0', 'access', '')], 'expected a VLAN such as 10'],
])('of %j it says %j', (rows, message) => {
  expect(() => portsOf(rows)).toThrow(message)
})

test('a row takes its ports from the others, and those that have none left go', () => {
  const own = row('e1, e7-e8', 'dot1q')
  const rows = [row('e0-e7'), row('e8', 'access', '10'), row('e9, e', 'access', '20'), own]
  expect(withOwnPorts(rows, own)).toEqual([row('e0, e2-e6'), row('e9, e', 'access', '20'), own])
  expect(withOwnPorts([row('e0-e7'), newPortRow], newPortRow)).toEqual([row('e0-e7'), newPortRow])
})
