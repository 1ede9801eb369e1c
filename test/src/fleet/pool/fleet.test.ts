import type { ServerResponse } from 'node:http'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { HostAgent } from '../../../../src/host-agent.ts'
import type { ComputeCreate } from '../../../../src/model/compute.ts'
import { textOf } from '../../../support/answer.ts'
import { faultOf, json, openFleet, StandIn, unusedPort, version } from '../../../support/fleet.ts'
import { MemoryRegistry } from '../../../support/memory-registry.ts'

const secret = 'geheim-ü-1'

/** A request as a route would send it. */
const ask = (path = '/v2/compute/x', signal = new AbortController().signal) => ({
  ...{ method: 'GET', path, headers: {}, body: null, signal },
})

test('a compute that answers is registered, connected, and shown with its load', async () => {
  const compute = await StandIn.start()
  const { fleet, registry, events, until } = await openFleet()
  const shown = await fleet.create(compute.input({ user: ' anna ', password: secret }))
  expect(shown).toMatchObject({
    compute_id: 'one',
    name: `http://anna@127.0.0.1:${compute.port}`,
    protocol: 'http',
    host: '127.0.0.1',
    port: compute.port,
    user: 'anna',
    connected: true,
    capabilities: { version, platform: 'linux', node_types: ['pc'] },
    last_error: null,
  })
  expect(Object.keys(shown)).not.toContain('password')
  expect(await until('one', { cpu_usage_percent: 3 })).toMatchObject({ memory_usage_percent: 40 })
  compute.ping(55.5, 60)
  await until('one', { cpu_usage_percent: 55.5, memory_usage_percent: 60 })
  expect(registry.records.get('one')).toMatchObject({ user: 'anna', password: secret })
  expect(events[0]).toMatchObject({ type: 'compute.created' })
  expect(events.slice(1).every(({ type }) => type === 'compute.updated')).toBe(true)
  expect(JSON.stringify([shown, events])).not.toContain(secret)
})

test('a compute that was reported as connected counts as gone from its loss, not from the start of the service', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const address = { protocol: 'http', host: '127.0.0.1', port: 9, user: null, password: null } as const
  const registry = new MemoryRegistry([{ compute_id: 'one', name: null, ...address }])
  const { fleet } = await openFleet({ registry, healthChecks: 'external' })
  const shown = fleet.find('one')?.show()
  if (shown === undefined) throw new Error('There is no compute')
  fleet.acceptState({ ...shown, connected: true, last_error: null })
  const lostAt = Date.now() + 60_000
  vi.setSystemTime(lostAt)
  fleet.left('one', 'its connection ended')
  expect(fleet.find('one')?.show().disconnected_since).toBe(new Date(lostAt).toISOString())
})

test('an id is generated, and the id of a known compute answers with it unchanged', async () => {
  const compute = await StandIn.start()
  const { fleet, events } = await openFleet()
  const { compute_id } = await fleet.create(compute.input({ compute_id: null }))
  expect(compute_id).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/)
  await fleet.create(compute.input({ compute_id: 'Lab', name: 'first' }))
  expect(await fleet.create(compute.input({ compute_id: 'lAB', name: 'second' }))).toMatchObject({
    ...{ compute_id: 'Lab', name: 'first' },
  })
  expect(await fleet.get('LAB')).toMatchObject({ compute_id: 'Lab' })
  expect((await fleet.list()).map((it) => it.compute_id)).toEqual([compute_id, 'Lab'])
  expect(events.filter(({ type }) => type === 'compute.created')).toHaveLength(2)
})

test('a compute that cannot be reached is registered, and connected later', async () => {
  const compute = await StandIn.start()
  await compute.stop()
  const { fleet, registry, until } = await openFleet()
  const shown = await fleet.create(compute.input())
  expect(shown).toMatchObject({
    connected: false,
    cpu_usage_percent: null,
    memory_usage_percent: null,
    capabilities: { version: null, node_types: [] },
    last_error: expect.stringContaining('ECONNREFUSED'),
  })
  expect(registry.records.size).toBe(1)
  await compute.listen()
  expect(await until('one', { connected: true })).toMatchObject({ last_error: null })
})

test('a compute that does not answer in time is registered as one that cannot be reached', async () => {
  const compute = await StandIn.start()
  compute.capabilities = (_, res) => void res.writeHead(200).write('{')
  const { fleet } = await openFleet({ timeouts: { connectMs: 60 } })
  expect(await fleet.create(compute.input())).toMatchObject({
    ...{ connected: false, last_error: 'it did not answer in 0.06 s' },
  })
})

const refusals: readonly (readonly [what: string, answer: (res: ServerResponse) => void, message: RegExp])[] = [
  ['answers 404', (res) => json(res, 404, {}), /not a Patchbay or compatible compute: it answered 404/],
  ['answers a page', (res) => void res.end('<html>hello</html>'), /not a Patchbay or compatible compute/],
  ['has no version', (res) => json(res, 200, { node_types: [] }), /no version/],
  ['has a version of null', (res) => json(res, 200, { version: null, node_types: [] }), /no version/],
  ['has no real version', (res) => json(res, 200, { version: 'new', node_types: [] }), /no version/],
  ['never ends', (res) => void res.end(`"${'x'.repeat(100_000)}"`), /no version/],
  ['is of another major version', (res) => json(res, 200, { version: '2.2.54', node_types: [] }), /2\.2\.54.*1\.4\.2/],
  ['refuses the credentials', (res) => json(res, 401, {}), /refuses the user and password/],
  ['refuses our name for it', (res) => json(res, 403, { message: 'no name of ours' }), /403: no name of ours/],
  ['redirects', (res) => void res.writeHead(302, { Location: 'http://127.0.0.1/' }).end(), /redirect/],
  ['is being restarted', (res) => void res.writeHead(503).end('<html>'), /503/],
]
test.for(refusals)('a server that %s is not registered', async ([, answer, message]) => {
  const compute = await StandIn.start()
  compute.capabilities = (_, res) => answer(res)
  const { fleet, registry, events } = await openFleet()
  const fault = await faultOf(fleet.create(compute.input({ user: 'anna', password: secret })))
  expect(fault).toMatchObject({ status: 409, message: expect.stringMatching(message) })
  expect(fault.message).not.toContain(secret)
  expect([await fleet.list(), registry.records.size, events]).toEqual([[], 0, []])
})

test('a compute without the feed of a compute is not registered', async () => {
  const compute = await StandIn.start()
  compute.feed = (_, res) => json(res, 404, {})
  const { fleet } = await openFleet()
  expect(await faultOf(fleet.create(compute.input()))).toMatchObject({ status: 409 })
})

test.for(['1.4.3', '1.9.0-dev1'])('version %s is compatible, which is reported once', async (other) => {
  const compute = await StandIn.start()
  compute.capabilities = (_, res) => json(res, 200, { version: other, node_types: [] })
  const { fleet, events, until } = await openFleet()
  expect(await fleet.create(compute.input())).toMatchObject({ connected: true })
  compute.endFeeds()
  await until('one', { connected: false })
  await until('one', { connected: true })
  expect(events.filter(({ type }) => type === 'log.warning')).toEqual([
    { type: 'log.warning', message: expect.stringMatching(new RegExp(`${other}.*${version}`)) },
  ])
})

test('names are unique when a compute is registered, and some ids are reserved', async () => {
  const compute = await StandIn.start()
  const { fleet, registry } = await openFleet()
  await fleet.create(compute.input({ name: 'mine' }))
  const create = (more: Partial<ComputeCreate>) => faultOf(fleet.create(compute.input(more)))
  expect(await create({ compute_id: 'two', name: 'mine' })).toMatchObject({ status: 409 })
  const both = ['three', 'four'].map((compute_id) => fleet.create(compute.input({ compute_id, name: 'theirs' })))
  expect((await Promise.allSettled(both)).map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  for (const compute_id of ['local', 'VM', 'endpoint']) {
    expect(await create({ compute_id })).toMatchObject({ status: 409, message: /reserved/ })
  }
  expect(registry.records.size).toBe(2)
})

test('two registrations at the same time make one compute', async () => {
  const compute = await StandIn.start()
  const { fleet, events } = await openFleet()
  const [a, b] = await Promise.all([fleet.create(compute.input()), fleet.create(compute.input())])
  expect(a.compute_id).toBe(b.compute_id)
  expect(await fleet.list()).toHaveLength(1)
  expect(events.filter(({ type }) => type === 'compute.created')).toHaveLength(1)
})

test('a compute that cannot be saved is not registered', async () => {
  const compute = await StandIn.start()
  const { fleet, registry, events } = await openFleet()
  registry.fault = new Error('the disk is full')
  await expect(fleet.create(compute.input())).rejects.toThrow('the disk is full')
  expect([await fleet.list(), events]).toEqual([[], []])
  await expect.poll(() => compute.openFeeds).toBe(0)
})

test('a change keeps absent members, and connects again', async () => {
  const [first, second] = [await StandIn.start(), await StandIn.start()]
  const { fleet, registry, until } = await openFleet()
  await fleet.create(first.input({ user: 'anna', password: secret }))
  const seen: unknown[] = []
  second.capabilities = ({ headers }, res) => {
    seen.push(headers.authorization)
    json(res, 200, { version, node_types: ['iou'] })
  }
  expect(await fleet.update('one', { compute_id: 'other', name: 'new', port: second.port })).toMatchObject({
    ...{ compute_id: 'one', name: 'new', port: second.port, user: 'anna', connected: false },
    capabilities: { version: null, node_types: [] },
  })
  expect(await until('one', { connected: true })).toMatchObject({ capabilities: { node_types: ['iou'] } })
  expect(seen).toEqual([`Basic ${Buffer.from(`anna:${secret}`).toString('base64')}`])
  expect(registry.records.get('one')).toMatchObject({ name: 'new', user: 'anna', password: secret })
  await expect.poll(() => first.openFeeds).toBe(0)
  await fleet.update('one', { user: null, password: 'other' })
  expect(registry.records.get('one')).toMatchObject({ user: 'anna', password: 'other' })
  // Without a user there is nothing to keep a password for.
  expect(await fleet.update('one', { user: ' ' })).toMatchObject({ user: null })
  expect(registry.records.get('one')).toMatchObject({ user: null, password: null })
})

test('a deleted compute is disconnected, and may be deleted again', async () => {
  const compute = await StandIn.start()
  const { fleet, registry, events } = await openFleet()
  await fleet.create(compute.input())
  await fleet.remove('ONE')
  await fleet.remove('one')
  expect(await faultOf(fleet.get('one'))).toMatchObject({ status: 404 })
  expect(registry.records.size).toBe(0)
  expect(events.at(-1)).toMatchObject({ type: 'compute.deleted', compute: { compute_id: 'one' } })
  await expect.poll(() => compute.openFeeds).toBe(0)
})

test('saved computes are registered after a restart, and connected', async () => {
  const compute = await StandIn.start()
  const first = await openFleet()
  await first.fleet.create(compute.input({ name: 'mine', user: 'anna', password: secret }))
  await first.fleet.close()
  await expect.poll(() => compute.openFeeds).toBe(0)
  const { fleet, until } = await openFleet({ registry: first.registry })
  expect(await fleet.list()).toMatchObject([{ compute_id: 'one', name: 'mine', user: 'anna' }])
  await until('one', { connected: true })
})

test('a compute of the service itself is added, waits, changes, and is removed; it is never saved', async () => {
  const compute = await StandIn.start()
  const { fleet, registry, events, until } = await openFleet()
  expect(await faultOf(fleet.get('vm'))).toMatchObject({ status: 404, message: /appliance VM/ })
  await fleet.remove('vm')
  const { protocol, host, port } = compute.input()
  const record = { protocol, host, port, compute_id: 'vm', name: null, user: null, password: null }
  fleet.registerEphemeral(record, 'the appliance VM is starting')
  expect(await fleet.get('vm')).toMatchObject({ connected: false, last_error: 'the appliance VM is starting' })
  expect(await faultOf(fleet.send('vm', ask()))).toMatchObject({ status: 409, message: /is starting/ })
  fleet.registerEphemeral(record)
  await until('vm', { connected: true, last_error: null })
  for (const change of [fleet.remove('vm'), fleet.update('vm', { name: 'x' })]) {
    expect(await faultOf(change)).toMatchObject({ status: 409 })
  }
  fleet.unregister('vm')
  expect(await fleet.list()).toEqual([])
  expect([registry.records.size, compute.asked.length]).toEqual([0, 2])
  expect(events.map(({ type }) => type).filter((type) => type !== 'compute.updated')).toEqual([
    ...['compute.created', 'compute.deleted'],
  ])
})

test('the compute local has its present state, also when the host fails', async () => {
  const capabilities = {
    version,
    platform: 'linux',
    node_types: ['pc'],
    packet_path: 'fast' as const,
    pc_engine: 'vpcs',
  }
  let asked = 0
  const { fleet } = await openFleet({
    local: {
      name: 'this',
      address: () => ({ protocol: 'http', host: '127.0.0.1', port: 3080 }),
      user: 'anna',
      agent: {
        host: {
          load: async () => ({ cpu_usage_percent: 1, memory_usage_percent: 2 }),
          async capabilities() {
            asked += 1
            if (asked === 1) throw new Error('the keeper is gone')
            return capabilities
          },
        },
      } as unknown as HostAgent,
      fetch: async () => new Response('from inside'),
    },
  })
  expect(await fleet.list()).toMatchObject([
    { compute_id: 'local', connected: false, cpu_usage_percent: null, last_error: 'the keeper is gone' },
  ])
  expect(await fleet.get('LOCAL')).toEqual({
    ...{ compute_id: 'local', name: 'this', protocol: 'http', host: '127.0.0.1', port: 3080, user: 'anna' },
    ...{
      connected: true,
      accepts_projects: true,
      weight: 1,
      labels: [],
      cpu_usage_percent: 1,
      memory_usage_percent: 2,
      last_error: null,
    },
    capabilities: { version, platform: 'linux', node_types: ['pc'] },
  })
  await fleet.list()
  expect(asked).toBe(2)
  expect(await textOf(await fleet.send('local', ask()))).toBe('from inside')
})

test('metrics have the number of computes in each state', async () => {
  const compute = await StandIn.start()
  const { fleet } = await openFleet({ timeouts: { retryMs: [60_000, 60_000] } })
  const [family] = fleet.metrics()
  expect(family?.samples.map(({ value }) => value)).toEqual([0, 0, 0])
  await fleet.create(compute.input())
  const port = await unusedPort()
  await fleet.create(compute.input({ compute_id: 'two', port }))
  await fleet.create(compute.input({ compute_id: 'three', port }))
  for (let n = 0; n < 2; n++) await faultOf(fleet.send('three', ask()))
  expect(fleet.metrics()[0]?.samples).toEqual([
    { labels: { state: 'connected' }, value: 1 },
    { labels: { state: 'disconnected' }, value: 1 },
    { labels: { state: 'refusing' }, value: 1 },
  ])
})

test('a compute that is drained stays connected', async () => {
  const compute = await StandIn.start()
  const { fleet, registry, events } = await openFleet()
  await fleet.create(compute.input())
  const before = compute.asked.length
  expect(await fleet.update('one', { compute_id: 'one', accepts_projects: false, weight: 2 })).toMatchObject({
    ...{ connected: true, accepts_projects: false, weight: 2 },
  })
  expect(registry.records.get('one')).toMatchObject({ accepts_projects: false, weight: 2 })
  expect(events.at(-1)).toMatchObject({ type: 'compute.updated', compute: { accepts_projects: false } })
  expect(compute.asked.slice(before)).toEqual([])
  expect(await fleet.update('one', { weight: 1, port: compute.port })).toMatchObject({ connected: false })
})
