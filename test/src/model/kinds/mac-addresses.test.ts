import { expect, test } from 'vitest'
import { addressIssue } from '../../../../src/model/kinds/mac-addresses.ts'

const mac = '0c:aa:aa:aa:00:01'

test.each([
  ['mac_address: 01:00:5e:00:00:01 is a multicast address', { mac_address: '01:00:5e:00:00:01', adapters: 3 }],
  ['mac_address: 00:00:00:00:00:00 is not an adapter address', { mac_address: '00:00:00:00:00:00' }],
  ['mac_address: ff:ff:ff:ff:ff:ff is the broadcast address', { mac_address: 'ff:ff:ff:ff:ff:ff' }],
  ['mac_address: adapter 2 would get ff:00:00:00:00:00', { mac_address: 'fe:ff:ff:ff:ff:fe', adapters: 3 }],
  [
    'custom_adapters: the adapters 0 and 1 would both have 0c:aa:aa:aa:00:01',
    { adapters: 2, custom_adapters: [0, 1].map((adapter_number) => ({ adapter_number, mac_address: mac })) },
  ],
  [
    'mac_address: the adapters 0 and 1 would both have',
    { mac_address: '0c:aa:aa:aa:00:00', adapters: 2, custom_adapters: [{ adapter_number: 0, mac_address: mac }] },
  ],
  [
    'custom_adapters: adapter 4: 33:33:00:00:00:01 is a multicast address',
    { custom_adapters: [{ adapter_number: 4, mac_address: '33:33:00:00:00:01' }] },
  ],
])('MAC addresses that no adapter can have are refused: %s', (start, settings) => {
  expect(addressIssue(settings)).toMatch(new RegExp(`^${start}`))
})

test('unicast addresses that differ are accepted, also locally administered ones', () => {
  expect(addressIssue({ mac_address: 'FE:ff:ff:ff:ff:fd', adapters: 3 })).toBeUndefined()
  expect(addressIssue({ adapters: 275, mac_address: '' })).toBeUndefined()
  const custom_adapters = [{ adapter_number: 1, mac_address: mac }, { adapter_number: 2 }]
  expect(addressIssue({ mac_address: '02:00:00:00:00:00', adapters: 3, custom_adapters })).toBeUndefined()
})
