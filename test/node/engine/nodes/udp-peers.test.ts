import { networkInterfaces } from 'node:os'
import { expect, test } from 'vitest'
import { requirePeer } from '../../../../runtime/node/engine/nodes/udp-peers.ts'

const [project, other] = ['10000000-0000-4000-8000-000000000001', '10000000-0000-4000-8000-000000000002']
const owners = new Map([
  [20_000, project],
  [20_001, `${project}/pc:1/0/0`],
  [20_002, other],
  [20_003, `${other}/pc:2/0/0`],
])
const ports = { ownerOfUdp: (port: number) => owners.get(port) }

interface Rules {
  readonly isLocal?: boolean
  readonly isOwnLink?: boolean
  readonly networks?: readonly string[]
}

/** What the link of the project to the address is answered. */
function judged(
  address: string,
  port: number,
  { isLocal = false, isOwnLink = false, networks = [] }: Rules = {},
): string {
  try {
    requirePeer({ address, port }, { projectId: project, isOwnLink }, { isLocal, networks, ports })
    return 'allowed'
  } catch (error) {
    const { status, message } = error as Error & { status: number }
    return `${status} ${message}`
  }
}

const interfaces = Object.values(networkInterfaces()).flatMap((all) => all ?? [])
const ofInterface = interfaces.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.2'

/** Addresses that no link leads to, but in local mode. */
const never = [
  ...['169.254.169.254', '::ffff:169.254.169.254', 'fe80::1', 'fe80::1%lo', 'febf::1'],
  ...['224.0.0.1', '239.255.255.250', '::ffff:224.0.0.1', 'ff02::1', '255.255.255.255', '240.0.0.1'],
  ...['0.0.0.0', '0.1.2.3', '::', '::ffff:0.0.0.0', '100.100.100.200', 'fd00:ec2::254'],
]
/** Addresses of this host. */
const own = ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', ofInterface, `::ffff:${ofInterface}`]
/** Addresses of other hosts, and networks that have them. */
const elsewhere = [
  ['10.0.0.5', '10.0.0.0/8'],
  ['172.16.3.4', '172.16.3.4'],
  ['192.168.77.9', '192.168.77.0/24'],
  ['198.51.100.7', '198.51.100.0/24'],
  ['8.8.8.8', '0.0.0.0/0'],
  ['::ffff:10.0.0.5', '10.0.0.0/8'],
  ['fd12::5', 'fd00::/8'],
  ['2001:db8::9', '2001:db8::/32'],
] as const

test.each(never)('outside local mode no link leads to %s, whoever makes it and whatever udp_peers has', (address) => {
  for (const rules of [{}, { isOwnLink: true }, { networks: ['0.0.0.0/0', '::/0', address.replace(/%.*/, '')] }])
    for (const port of [20_000, 53]) expect(judged(address, port, rules)).toMatch(/^403 rhost: .* local mode/)
  expect(judged(address, 53, { isLocal: true })).toBe('allowed')
})

test.each(own)('outside local mode a link to this host (%s) leads to ports of its own project only', (address) => {
  for (const port of [20_000, 20_001]) expect(judged(address, port)).toBe('allowed')
  const refused = /^403 rhost: .* is an address of this host, and UDP port \d+ is not reserved for the project/
  for (const port of [20_002, 20_003, 53]) expect(judged(address, port)).toMatch(refused)
  // Whoever lists all networks means other hosts.
  expect(judged(address, 53, { networks: ['0.0.0.0/0', '::/0'] })).toMatch(refused)
  expect(judged(address, 53, { networks: [address] })).toBe('allowed')
  for (const rules of [{ isOwnLink: true }, { isLocal: true }]) expect(judged(address, 53, rules)).toBe('allowed')
})

test.each(elsewhere)('outside local mode a link to %s needs an entry of udp_peers, such as %s', (address, network) => {
  expect(judged(address, 20_000)).toMatch(/^403 rhost: .* is not in a network of the setting udp_peers/)
  expect(judged(address, 20_000, { networks: ['192.0.2.0/24', '2001:db8:1::/48'] })).toMatch(/^403 /)
  for (const rules of [{ networks: [network] }, { isOwnLink: true }, { isLocal: true }])
    expect(judged(address, 4000, rules)).toBe('allowed')
})

test('a network that cannot be is named, and no defect of the service', () => {
  for (const network of ['10.0.0.0/40', '10.0.0.300', ':::'])
    expect(judged('10.0.0.5', 1, { networks: [network] })).toMatch(/^409 A setting contains/)
})
