import { expect, test } from 'vitest'
import { bytesOf } from '../../../../runtime/node/drivers/nat/addresses.ts'
import { Policy, type PolicyOptions } from '../../../../runtime/node/drivers/nat/policy.ts'
import { numberOf4, subnetOf, textOf4 } from '../../../../src/model/kinds/nat-subnet.ts'

/** A host without addresses: every route leads elsewhere. */
const policy = (options: Partial<PolicyOptions> = {}) =>
  new Policy({ reach: [], isLocal: true, isElsewhere: () => true, ...options })

const allows = (it: Policy, address: string) =>
  address.includes(':') ? it.allows6(bytesOf(address)) : it.allows4(numberOf4(address))

test.for([
  ['192.88.99.2', true, true],
  ['2620:4f:8000::2', true, true],
  ['10.1.2.3', true, false],
  ['100.64.0.1', true, false],
  ['172.31.0.1', true, false],
  ['172.32.0.1', true, true],
  ['192.168.1.1', true, false],
  ['198.18.0.1', true, false],
  ['fd00::1', true, false],
  ['2001:db8::1', true, false],
  ['0.0.0.0', false, false],
  ['0.1.2.3', false, false],
  ['127.1.2.3', false, false],
  ['169.254.169.254', false, false],
  ['224.0.0.251', false, false],
  ['255.255.255.255', false, false],
  ['::', false, false],
  ['::1', false, false],
  // IPv4-mapped and IPv4-compatible, whatever is in them.
  ['::ffff:c058:6302', false, false],
  ['::c058:6302', false, false],
  ['fe80::1', false, false],
  ['ff02::1', false, false],
  ['ff0e::1', false, false],
  // Teredo, and 6to4 and NAT64 with a public address, a private one and the loopback in them.
  ['2001::1', false, false],
  ['2002:c058:6302::1', true, true],
  ['2002:a01:203::1', true, false],
  ['2002:7f00:1::1', false, false],
  ['64:ff9b::c058:6302', true, true],
  ['64:ff9b::a01:203', true, false],
  ['64:ff9b::7f00:1', false, false],
] as const)('%s is reachable in local mode: %s, outside: %s', ([address, inLocal, outside]) => {
  expect([allows(policy(), address), allows(policy({ isLocal: false }), address)]).toEqual([inLocal, outside])
})

test('addresses of the host are refused, unless a setting names them', () => {
  const isElsewhere = () => false
  expect(allows(policy({ isElsewhere }), '192.88.99.2')).toBe(false)
  const named = policy({ isElsewhere, isLocal: false, reach: ['192.88.99.2', '10.1.0.0/16', 'fd00::/16'] })
  for (const address of ['192.88.99.2', '10.1.255.1', 'fd00::5']) expect(allows(named, address)).toBe(true)
  for (const address of ['192.88.99.3', '10.2.0.1', 'fd01::5']) expect(allows(named, address)).toBe(false)
})

test('decisions are cached until addresses change', () => {
  let asked = 0
  const it = policy({ isElsewhere: () => ++asked > 0 })
  for (let round = 0; round < 3; round++) for (const to of ['192.88.99.2', '2620:4f:8000::2']) allows(it, to)
  expect(asked).toBe(2)
  it.forget()
  allows(it, '192.88.99.2')
  expect(asked).toBe(3)
})

test('a network has a gateway, a host and addresses for guests', () => {
  const texts = (subnet: string) => {
    const { gateway, host, first, last, broadcast } = subnetOf(subnet) ?? expect.unreachable()
    return [gateway, host, first, last, broadcast].map(textOf4)
  }
  expect(texts('192.168.122.0/24')).toEqual(['.1', '.2', '.10', '.254', '.255'].map((end) => `192.168.122${end}`))
  expect(texts('10.0.0.16/28')).toEqual(['.17', '.18', '.19', '.30', '.31'].map((end) => `10.0.0${end}`))
  expect(texts('10.0.0.0/8')).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.10', '10.0.16.9', '10.255.255.255'])
})
