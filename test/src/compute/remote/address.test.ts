import { expect, test } from 'vitest'
import {
  computeNameOf,
  hostOfAddress,
  isForbidden,
  isOwnAddress,
  originOf,
} from '../../../../src/compute/remote/address.ts'

const at = (host: string, more: object = {}) => ({ protocol: 'http' as const, host, port: 3080, ...more })

test.for([
  ['10.0.0.2', 'http://10.0.0.2:3080'],
  ['Lab.example', 'http://lab.example:3080'],
  ['0.0.0.0', 'http://127.0.0.1:3080'],
  ['::', 'http://[::1]:3080'],
  ['2001:0db8:0:0:0:0:0:1', 'http://[2001:db8::1]:3080'],
] as const)('%s is asked at %s', ([host, origin]) => {
  expect(originOf(at(host))).toBe(origin)
})

test('the port is always given', () => {
  expect(originOf({ protocol: 'https', host: 'lab', port: 443 })).toBe('https://lab:443')
})

test('a compute without a name is named after its address, with the decoded user', () => {
  const name = (user: string | null, host = 'lab') => computeNameOf({ ...at(host), name: null, user })
  expect(name(null)).toBe('http://lab:3080')
  expect(name('anna')).toBe('http://anna@lab:3080')
  expect(name('abcdefghijklmn')).toBe('http://abcdefghijklmn@lab:3080')
  expect(name('abcdefghijklmno')).toBe('http://abcdefghijk...@lab:3080')
  expect(name(null, '2001:db8::1')).toBe('http://[2001:db8::1]:3080')
  expect(computeNameOf({ ...at('lab'), name: 'mine', user: 'anna' })).toBe('mine')
})

test.for([
  '169.254.169.254',
  '169.254.0.1',
  // The same in the other ways of writing it.
  '169.254.43518',
  '0xa9.0xfe.0xa9.0xfe',
  '2852039166',
  '[::ffff:169.254.169.254]',
  '::ffff:a9fe:a9fe',
  '64:ff9b::169.254.169.254',
  '2002:a9fe:a9fe::1',
  'fe80::1',
  'febf::1',
  'fd00:ec2::254',
  'fd20:ce::254',
  'ff02::1',
  '224.0.0.1',
  '255.255.255.255',
  '100.100.100.200',
  'metadata.google.internal',
  'Metadata.Google.Internal.',
])('%s is an address that no compute can have', (host) => {
  expect(() => hostOfAddress(host)).toThrow(expect.objectContaining({ status: 400 }))
})

test.for([
  '127.0.0.1',
  '192.168.1.2',
  '169.253.1.1',
  'localhost',
  'lab_1.example',
  '::1',
  '[2001:db8::1]',
  'fd00::1',
  '64:ff9b::10.0.0.1',
  'fec0::1',
])('%s may be one', (host) => {
  expect(hostOfAddress(host)).toBe(host.replace(/[[\]]/g, ''))
})

test.for(['1.2.3.4.5', '256.1.1.1', ':::', '1::2::3', 'g::1', '[::1', 'a b', ''])('%s is not a host', (host) => {
  expect(() => hostOfAddress(host)).toThrow(expect.objectContaining({ status: 400 }))
})

test('a name may lead to an address with a zone', () => {
  expect(isForbidden('fe80::1%eth0')).toBe(true)
  expect(isForbidden('::1%lo')).toBe(false)
})

test.each([
  ...['127.0.0.1', '127.9.9.9', '0.0.0.0', '0.1.2.3', '::', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1'],
  ...['0:0:0:0:0:0:0:1', '64:ff9b::7f00:1', '2002:7f00:1::'],
])('%s is an address of the host itself, or of no host', (address) => {
  expect(isOwnAddress(address)).toBe(true)
})

test.each(['10.0.0.1', '192.0.2.1', '2001:db8::1', 'fd00::1', '::ffff:10.0.0.1', '128.0.0.1'])(
  '%s may be another host',
  (address) => {
    expect(isOwnAddress(address)).toBe(false)
  },
)
