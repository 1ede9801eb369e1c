import { expect, test } from 'vitest'
import type { ReservedPort } from '../../../../src/fleet/link-check/link-check.ts'
import { peerAddresses, peersOfNodes } from '../../../../src/fleet/link-check/peer-address.ts'
import type { Member } from '../../../../src/fleet/members/members.ts'
import type { Fleet } from '../../../../src/fleet/pool/fleet.ts'
import { conflict, notFound } from '../../../../src/lib/errors/api-error.ts'
import type { LinkCandidates, LinkCheck, LinkCheckResult } from '../../../../src/model/link-check.ts'

interface FakeCompute {
  readonly protocol: string
  readonly host: string
  readonly observed?: string
  /** What it tells; absent: it is of an older version. */
  readonly told?: Partial<LinkCandidates>
  readonly check?: (input: LinkCheck) => Partial<LinkCheckResult>
}

/** A fleet of computes that answer so, and what they were asked. */
function fleetOf(computes: Record<string, FakeCompute>) {
  const asked: Record<string, LinkCheck> = {}
  const answer = (body: unknown) => new Response(JSON.stringify(body))
  const fleet = {
    get: async (id: string) => ({ compute_id: id, name: id, ...computes[id] }),
    find: (id: string) => ({ name: id }),
    isTunnelled: () => true,
    joinedFrom: (id: string) => computes[id]?.observed,
    async send(id: string, { path, body }: { path: string; body: Uint8Array<ArrayBuffer> | null }) {
      const { told, check } = computes[id] as FakeCompute
      if (told === undefined) {
        const headers = { 'X-Patchbay-Error': 'no-such-path' }
        return new Response('{"message":"no such path","status":404}', { status: 404, headers })
      }
      if (path.endsWith('/candidates')) return answer({ addresses: [], boot_id: null, ...told })
      const input = JSON.parse(new TextDecoder().decode(body ?? new Uint8Array())) as LinkCheck
      asked[id] = input
      return answer({ paths: [], tried: [], ...check?.(input) })
    },
  } as unknown as Fleet
  return { fleet, asked }
}

const project_id = '7a2f0000-0000-4000-8000-000000000001'
const ports: Record<string, number> = { a: 40_001, b: 40_002 }
const end = (compute_id: string): ReservedPort => ({ compute_id, project_id, udp_port: ports[compute_id] ?? 40_000 })
const peers = (fleet: Fleet, from = 'a', to = 'b') => peerAddresses(fleet, [end(from), end(to)], 'do something else')
const far = { address: '203.0.113.2', port: 4444 }
const near = { address: '10.0.0.1', port: 40_001 }
const joined = (more: Omit<FakeCompute, 'protocol' | 'host'>): FakeCompute => ({
  ...{ protocol: 'tunnel', host: 'lab' },
  ...more,
})

test('registered addresses are used as they are, and computes are asked where there are none', async () => {
  const { fleet, asked } = fleetOf({
    here: { protocol: 'http', host: '127.0.0.1' },
    too: { protocol: 'http', host: '0.0.0.0' },
    far: { protocol: 'https', host: 'lab2.example' },
    farther: { protocol: 'https', host: '[2001:db8::1]' },
    joined: joined({}),
  })
  const hosts = async (from: string, to: string) => (await peers(fleet, from, to)).map(({ address }) => address)
  expect(await hosts('far', 'far')).toEqual(['127.0.0.1', '127.0.0.1'])
  expect(await hosts('here', 'too')).toEqual(['127.0.0.1', '127.0.0.1'])
  expect(await hosts('far', 'farther')).toEqual(['2001:db8::1', 'lab2.example'])
  expect(asked).toEqual({})
  for (const [from, to] of [
    ['far', 'here'],
    ['here', 'joined'],
    ['joined', 'far'],
  ] as const)
    await expect(peers(fleet, from, to)).rejects.toMatchObject({ status: 409, message: /upgrade it/ })
})

test('nodes are searched for on the computes of their projects', async () => {
  const { fleet } = fleetOf({ here: { protocol: 'http', host: '127.0.0.1' } })
  const locator = {
    find: async (id: string) => (id === project_id ? ({ id: 'here' } as Member) : undefined),
  }
  const place = (id: string, udp_port: number) => ({ project_id: id, node_id: crypto.randomUUID(), udp_port })
  expect(await peersOfNodes(fleet, locator)([place(project_id, 1), place(project_id, 2)])).toEqual([
    { address: '127.0.0.1', port: 2 },
    { address: '127.0.0.1', port: 1 },
  ])
  await expect(
    peersOfNodes(fleet, locator)([place(project_id, 1), place(crypto.randomUUID(), 2)]),
  ).rejects.toMatchObject({ status: 404 })
})

test('each end gets the same key, and the addresses of the other: registered, own, and observed ones', async () => {
  const { fleet, asked } = fleetOf({
    a: joined({ told: { addresses: ['10.0.0.1', '2001:db8::1'] }, observed: '203.0.113.1' }),
    b: { protocol: 'https', host: 'lab2.example', told: { addresses: ['10.0.0.2', '203.0.113.2'] } },
  })
  await expect(peers(fleet)).rejects.toMatchObject({ status: 409 })
  const hosts = (id: string) => asked[id]?.candidates.map(({ host, port }) => `${host} ${port}`)
  expect(hosts('a')).toEqual(['lab2.example 40002', '10.0.0.2 40002', '203.0.113.2 40002'])
  expect(hosts('b')).toEqual(['10.0.0.1 40001', '2001:db8::1 40001', '203.0.113.1 40001'])
  expect([asked.a?.end, asked.b?.end]).toEqual(['a', 'b'])
  expect(asked.a?.key).toBe(asked.b?.key)
  const { key } = asked.a as LinkCheck
  await expect(peers(fleet)).rejects.toMatchObject({ status: 409 })
  expect(asked.a?.key).not.toBe(key)
})

test('addresses that cannot be of another host are not passed on, except loopback between computes of one host', async () => {
  const lying = ['127.0.0.1', '::1', '169.254.169.254', 'fe80::1', '224.0.0.1', '0.0.0.0', '::ffff:127.0.0.1']
  const computes = {
    a: joined({ told: { addresses: [...lying, '10.0.0.1'], boot_id: 'one' }, observed: '127.0.0.1' }),
    b: joined({ told: { addresses: ['10.0.0.2'], boot_id: 'other' } }),
  }
  const { fleet, asked } = fleetOf(computes)
  await expect(peers(fleet)).rejects.toMatchObject({ status: 409 })
  expect(asked.b?.candidates).toEqual([{ host: '10.0.0.1', port: 40_001 }])
  const same = fleetOf({ ...computes, b: joined({ told: { addresses: [], boot_id: 'one' } }) })
  await expect(peers(same.fleet)).rejects.toMatchObject({ status: 409 })
  expect(same.asked.a?.candidates).toEqual([{ host: '127.0.0.1', port: 40_002 }])
  expect(same.asked.a?.boot_id).toBe('one')
})

test('the address at which both ends have answers of each other is used, the best first', async () => {
  const { fleet } = fleetOf({
    a: joined({
      told: { addresses: ['10.0.0.1'] },
      check: () => ({
        paths: [
          { address: '10.0.0.2', port: 40_002, seen_as: { address: '10.0.0.9', port: 40_001 } },
          { ...far, seen_as: near },
        ],
      }),
    }),
    b: joined({ told: { addresses: ['10.0.0.2'] }, check: () => ({ paths: [{ ...near, seen_as: far }] }) }),
  })
  expect(await peers(fleet)).toEqual([far, near])
})

test('a lying compute cannot make the other one send to a third host', async () => {
  const victim = { address: '198.51.100.1', port: 5353 }
  const { fleet } = fleetOf({
    a: joined({ told: { addresses: ['10.0.0.1'] }, check: () => ({ paths: [{ ...far, seen_as: victim }] }) }),
    b: joined({ told: { addresses: ['10.0.0.2'] }, check: () => ({ paths: [{ ...near, seen_as: far }] }) }),
  })
  await expect(peers(fleet)).rejects.toMatchObject({ status: 409 })
})

test('when no address works, 409 says which ones each compute has tried', async () => {
  const tried = (host: string, outcome: 'silent' | 'heard') => ({
    tried: [{ host, port: 40_000, outcome, reason: null }],
  })
  const { fleet } = fleetOf({
    a: joined({ told: { addresses: ['10.0.0.1'] }, check: () => tried('10.0.0.2', 'silent') }),
    b: joined({ told: { addresses: ['10.0.0.2'] }, check: () => tried('2001:db8::1', 'heard') }),
  })
  await expect(peers(fleet)).rejects.toEqual(
    conflict(
      'nodes: no UDP passes between the computes a and b: a tried 10.0.0.2:40000 (no answer); ' +
        'b tried [2001:db8::1]:40000 (its probes arrived, but no reply); do something else',
    ),
  )
})

test('a compute without candidates is named', async () => {
  const { fleet } = fleetOf({ a: joined({ told: {} }), b: joined({ told: { addresses: ['10.0.0.2'] } }) })
  await expect(peers(fleet)).rejects.toMatchObject({ status: 409, message: /no address of the compute a is known/ })
})

test('other faults of a compute are reported as they are', async () => {
  const { fleet } = fleetOf({ a: joined({ told: {} }), b: joined({ told: {} }) })
  const gone = notFound('udp_port: it is not reserved')
  const failing = Object.assign(Object.create(fleet) as Fleet, { send: () => Promise.reject(gone) })
  await expect(peers(failing)).rejects.toBe(gone)
})
