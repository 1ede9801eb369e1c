import { expect, test } from 'vitest'
import { AnsweringEnd, type AnsweringOptions } from '../../../../src/compute/tunnel/answering.ts'
import type { TunnelEnd } from '../../../../src/compute/tunnel/link.ts'
import { type JoinGrant, listedTokens } from '../../../../src/fleet/pool/join-tokens.ts'
import type { KeptTunnel } from '../../../../src/fleet/pool/tunnels.ts'
import { textOf } from '../../../support/answer.ts'
import { openFleet, version } from '../../../support/fleet.ts'
import { MemoryJoinTokens } from '../../../support/join-tokens.ts'
import { MemoryRegistry } from '../../../support/memory-registry.ts'
import { Lane, request, until } from '../../../support/tunnel.ts'

const capabilities = { version, platform: 'linux', node_types: ['pc'] }

/** What a session asks of a compute, and then `answer`. */
const compute =
  (answer: (request: Request) => Promise<Response> = async () => new Response('x')): AnsweringOptions['fetch'] =>
  async (it) => {
    if (it.url.endsWith('/capabilities')) return Response.json(capabilities)
    if (!it.url.endsWith('/compute/notifications')) return answer(it)
    const event = { cpu_usage_percent: 3, memory_usage_percent: 40 }
    const ping = new TextEncoder().encode(`${JSON.stringify({ action: 'ping', event })}\n`)
    return new Response(new ReadableStream({ start: (controller) => controller.enqueue(ping) }))
  }

type OpenFleet = Awaited<ReturnType<typeof openFleet>>

/** A compute that joins; `end`: how that ended. */
function join(
  { fleet }: OpenFleet,
  who: object = {},
  { grant = { key: 'token' } as JoinGrant, fetch = compute(), address = '203.0.113.5' } = {},
) {
  let end: TunnelEnd | undefined
  const kept: unknown[] = []
  const down: Lane = new Lane(() => answering)
  const up: Lane = new Lane(() => asking)
  const asking = fleet.tunnels.accept(
    Object.assign(down, { keep: (it: unknown) => void kept.push(it) }),
    grant,
    address,
  )
  const answering: AnsweringEnd = new AnsweringEnd({
    wire: up,
    who: { version, compute_id: 'One', name: 'lab host', ...who },
    fetch,
    greeted() {},
    ended(it) {
      end = it
    },
  })
  return { answering, end: () => end, down, up, kept }
}

/** Resolves when it is registered and connected. */
async function joined(it: OpenFleet, id = 'one') {
  await until(() => it.fleet.tunnels.has(id))
  return it.until(id, { connected: true })
}

test('a compute that joins is registered and connected, and stays registered when it leaves', async () => {
  const it = await openFleet()
  const { answering } = join(it)
  await joined(it)
  const shown = await it.until('one', { cpu_usage_percent: 3 })
  expect(shown).toEqual({
    compute_id: 'One',
    name: 'lab host',
    protocol: 'tunnel',
    host: 'lab host',
    port: 0,
    user: null,
    connected: true,
    accepts_projects: true,
    weight: 1,
    labels: [],
    cpu_usage_percent: 3,
    memory_usage_percent: 40,
    capabilities,
    last_error: null,
  })
  expect(await textOf(await it.fleet.send('one', request('x')))).toBe('x')
  expect(it.fleet.originOf('one')).toBeUndefined()
  expect(it.fleet.registered().size).toBe(0)
  answering.close(1001, 'The compute is shutting down')
  const left = await it.until('one', { connected: false })
  expect(left).toMatchObject({ last_error: 'The compute is shutting down', cpu_usage_percent: null, capabilities })
  await expect(it.fleet.send('one', request('x'))).rejects.toMatchObject({ status: 409 })
  expect([...it.registry.records.values()]).toMatchObject([{ compute_id: 'One', protocol: 'tunnel', port: 0 }])
  const events = it.events.map(({ type }) => type)
  expect([events[0], events.includes('log.warning')]).toEqual(['compute.created', false])
  // It comes back as the same.
  join(it)
  await joined(it)
  await it.until('one', { connected: true, last_error: null })
  expect(it.registry.records.size).toBe(1)
})

test('a request that is under way when the compute leaves gets 504 at once', async () => {
  const it = await openFleet()
  let asked = () => {}
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve
  })
  const never = compute(() => {
    asked()
    return new Promise(() => {})
  })
  const { answering } = join(it, {}, { fetch: never })
  await joined(it)
  const answer = it.fleet.send('one', request('x'))
  await isAsked
  answering.close(1001, 'The compute is shutting down')
  await expect(answer).rejects.toMatchObject({
    status: 504,
    message: expect.stringContaining('The compute is shutting down'),
  })
})

test('the newest tunnel of a compute counts', async () => {
  const it = await openFleet()
  const first = join(it)
  await joined(it)
  const second = join(it, { compute_id: 'ONE' }, { fetch: compute(async () => new Response('second')) })
  await until(() => first.end() !== undefined)
  expect(first.end()).toEqual({ code: 4409, reason: 'The compute has joined again' })
  await it.until('one', { connected: true })
  expect(await textOf(await it.fleet.send('one', request('x')))).toBe('second')
  expect([second.end(), it.registry.records.size]).toEqual([undefined, 1])
})

test('a compute that is refused gets the reason', async () => {
  const registry = new MemoryRegistry()
  const joinTokens = new MemoryJoinTokens()
  joinTokens.owners.set('bound', 'two')
  const it = await openFleet({ registry, joinTokens })
  const address = { protocol: 'http', host: '127.0.0.1', port: 1 } as const
  await it.fleet.create({ compute_id: 'placed', ...address })
  const refused = async (who: object, grant: JoinGrant = { key: 'other' }) => {
    const { end } = join(it, who, { grant })
    await until(() => end() !== undefined)
    return end()
  }
  expect(await refused({ compute_id: 'placed' })).toEqual({
    ...{ code: 4403, reason: 'compute_id: placed is already registered, with an address' },
  })
  expect(await refused({ compute_id: 'local' })).toMatchObject({ code: 4403 })
  expect(await refused({}, { key: 'bound' })).toEqual({
    ...{ code: 4403, reason: 'The token belongs to another compute: each compute needs its own' },
  })
  expect(await refused({ compute_id: '../x' })).toMatchObject({ code: 4400 })
  registry.fault = new Error('no disk')
  expect(await refused({})).toEqual({ code: 4403, reason: 'The compute could not be registered' })
  expect((await it.fleet.list()).map(({ compute_id }) => compute_id)).toEqual(['placed'])
})

test('a compute that is refused because the fleet is full does not bind its token', async () => {
  const joinTokens = new MemoryJoinTokens()
  const it = await openFleet({ joinTokens, maxComputes: () => 1 })
  join(it, {}, { grant: { key: 'first' } })
  await joined(it)
  const second = join(it, { compute_id: 'two' }, { grant: { key: 'second' } })
  await until(() => second.end() !== undefined)
  expect(second.end()).toMatchObject({
    code: 4403,
    reason: expect.stringContaining('is limited to 1 compute and has 1'),
  })
  expect([...joinTokens.owners.keys()]).toEqual(['first'])
})

test('a fleet without a limit of its own has room for 1,000 computes', async () => {
  const record = { protocol: 'tunnel', host: '', port: 0, user: null, password: null } as const
  const records = Array.from({ length: 999 }, (_, at) => ({ ...record, compute_id: `c${at}`, name: `compute ${at}` }))
  const registry = new MemoryRegistry(records)
  const it = await openFleet({ registry })
  join(it)
  await joined(it)
  const one = join(it, { compute_id: 'two' }, { grant: { key: 'second' } })
  await until(() => one.end() !== undefined)
  expect(one.end()).toMatchObject({
    code: 4403,
    reason: expect.stringContaining('is limited to 1000 computes and has 1000'),
  })
})

test('the number of open websockets of a token without a HELLO is limited', async () => {
  const it = await openFleet()
  const closed: number[] = []
  const wire = { send() {}, close: (code: number) => void closed.push(code), drained: async () => {} }
  const silent = () => it.fleet.tunnels.accept(wire, { key: 'flood' })
  const ends = Array.from({ length: 10 }, silent)
  expect(closed).toEqual([1013, 1013])
  // Others join meanwhile, and one that has ended makes room.
  join(it)
  await joined(it)
  ends[0]?.closed()
  silent()
  expect(closed).toEqual([1013, 1013])
})

test('computes of the same name get different names, and one can be renamed, but not get another address', async () => {
  const it = await openFleet()
  join(it)
  await joined(it)
  join(it, { compute_id: '2d1f5ab0-1111-4222-8333-123456789abc' }, { grant: { key: 'other' } })
  const other = await joined(it, '2d1f5ab0-1111-4222-8333-123456789abc')
  expect(other.name).toBe('lab host (2d1f5ab0)')
  const renamed = await it.fleet.update('one', { name: 'attic', protocol: 'tunnel', host: 'lab host', port: 0 })
  expect(renamed).toMatchObject({ name: 'attic', protocol: 'tunnel' })
  await it.until('one', { connected: true })
  await expect(it.fleet.update('one', { protocol: 'http' })).rejects.toMatchObject({ status: 409 })
})

test('a compute that has joined is drained, and takes projects again', async () => {
  const it = await openFleet()
  join(it)
  await joined(it)
  await it.fleet.update('one', { accepts_projects: false, weight: 2, labels: ['site=berlin'] })
  expect(await it.fleet.update('one', { accepts_projects: true, weight: 1, labels: [] })).toMatchObject({
    ...{ accepts_projects: true, weight: 1, labels: [], connected: true },
  })
})

test('a compute that is deleted loses its tunnel', async () => {
  const it = await openFleet()
  const { end } = join(it)
  await joined(it)
  await it.fleet.remove('one')
  await until(() => end() !== undefined)
  expect(end()).toEqual({ code: 4410, reason: 'The compute was removed' })
  expect([it.registry.records.size, (await it.fleet.list()).length]).toEqual([0, 0])
})

test('after a restart a compute waits to join again', async () => {
  const registry = new MemoryRegistry()
  const before = await openFleet({ registry })
  join(before)
  await joined(before)
  await before.fleet.close()
  const after = await openFleet({ registry })
  expect(await after.fleet.get('one')).toMatchObject({ connected: false, last_error: 'it has not joined' })
  join(after)
  await joined(after)
})

test('a service without state between requests uses the open tunnel', async () => {
  const it = await openFleet({ healthChecks: false, tunnels: { watch: 'busy' } })
  join(it)
  await until(() => it.events.length > 0)
  await it.fleet.connect('one')
  expect(await textOf(await it.fleet.send('one', request('x')))).toBe('x')
})

test('tokens of the settings are for the first compute that uses them, or for the one they name', async () => {
  const bound = new Map<string, string>()
  const put = async (key: string, id: string) => void bound.set(key, id)
  const tokens = listedTokens(() => ['0123456789abcdef', 'attic:fedcba9876543210'], {
    get: (key) => bound.get(key),
    put,
  })
  const free = await tokens.check('0123456789abcdef')
  const key = free?.key ?? ''
  expect(free).toEqual({ key: expect.stringMatching(/^[0-9a-f]{64}$/) })
  expect(await tokens.check('fedcba9876543210')).toMatchObject({ compute_id: 'attic' })
  for (const wrong of ['', 'attic', 'attic:fedcba9876543210', '0123456789abcde']) {
    expect(await tokens.check(wrong)).toBeUndefined()
  }
  expect([await tokens.isOwned('ATTIC'), await tokens.isOwned('cellar')]).toEqual([true, false])
  expect(await tokens.bind(key, 'cellar')).toBe('cellar')
  expect(await tokens.bind(key, 'kitchen')).toBe('cellar')
  expect(await tokens.check('0123456789abcdef')).toEqual({ key, compute_id: 'cellar' })
  expect([await tokens.isOwned('cellar'), await tokens.grantOf('x')]).toEqual([true, undefined])
  expect(await tokens.bind('x', 'kitchen')).toBeUndefined()
})

test('a token belongs to the compute that used it first', async () => {
  const registry = new MemoryRegistry()
  const joinTokens = new MemoryJoinTokens()
  const before = await openFleet({ registry, joinTokens })
  const first = join(before)
  await joined(before)
  const refusal = { code: 4403, reason: 'The token belongs to another compute: each compute needs its own' }
  const second = join(before, { compute_id: 'two' })
  await until(() => second.end() !== undefined)
  expect([second.end(), first.end()]).toEqual([refusal, undefined])
  // Also when the first is not there, and after a restart.
  await before.fleet.close()
  const after = await openFleet({ registry, joinTokens })
  const third = join(after, { compute_id: 'two' }, { grant: { key: 'token' } })
  await until(() => third.end() !== undefined)
  expect(third.end()).toEqual(refusal)
  expect((await after.fleet.list()).map(({ compute_id }) => compute_id)).toEqual(['One'])
})

test('another token replaces no compute, connected or not', async () => {
  const joinTokens = new MemoryJoinTokens()
  const it = await openFleet({ joinTokens })
  const first = join(it)
  await joined(it)
  const attempt = async (grant: JoinGrant) => {
    const other = join(it, { compute_id: 'ONE' }, { grant, fetch: compute(async () => new Response('stolen')) })
    await until(() => other.end() !== undefined)
    return other.end()
  }
  const owned = { code: 4403, reason: expect.stringContaining('joins with another token') }
  expect(await attempt({ key: 'second' })).toEqual(owned)
  // An administrator made it for this compute, which is connected.
  const made = { key: 'made' }
  joinTokens.owners.set('made', 'one')
  const connected = { code: 4409, reason: 'The compute ONE is connected with another token' }
  expect(await attempt(made)).toEqual(connected)
  expect(await textOf(await it.fleet.send('one', request('x')))).toBe('x')
  expect([first.end(), joinTokens.owners.has('second')]).toEqual([undefined, false])

  first.answering.close(1001, 'The compute is shutting down')
  await it.until('one', { connected: false })
  expect(await attempt({ key: 'second' })).toEqual(owned)
  join(it, {}, { grant: made })
  await it.until('one', { connected: true })
})

test('with a revoked token neither a compute nor its tunnel is protected from another token', async () => {
  const joinTokens = new MemoryJoinTokens()
  const it = await openFleet({ joinTokens })
  const first = join(it)
  await joined(it)
  joinTokens.revoked.add('token')
  join(it, {}, { grant: { key: 'second' }, fetch: compute(async () => new Response('second')) })
  await until(() => first.end() !== undefined)
  expect(first.end()).toEqual({ code: 4409, reason: 'The compute has joined again' })
  await it.until('one', { connected: true })
  expect(await textOf(await it.fleet.send('one', request('x')))).toBe('second')
})

test('a compute that comes with another token, while that of its open tunnel cannot be checked, is told to try again', async () => {
  const joinTokens = new MemoryJoinTokens()
  const it = await openFleet({ joinTokens })
  const first = join(it)
  await joined(it)
  joinTokens.owners.set('made', 'one')
  joinTokens.unknowable.add('token')
  const second = join(it, {}, { grant: { key: 'made' } })
  await until(() => second.end() !== undefined)
  expect(second.end()).toEqual({
    ...{ code: 1013, reason: 'The token of the open connection of this compute could not be checked' },
  })
  expect(first.end()).toBeUndefined()
  expect(await textOf(await it.fleet.send('one', request('x')))).toBe('x')
})

test('a gateway continues its open tunnels after a hibernation', async () => {
  const registry = new MemoryRegistry()
  const asleep = await openFleet({ registry, healthChecks: false, tunnels: { watch: 'busy' } })
  const { down, up, kept } = join(asleep)
  await until(() => kept.length > 0)
  const joinTokens = new MemoryJoinTokens()
  joinTokens.owners.set('made', 'One')
  const awake = await openFleet({ registry, joinTokens, healthChecks: false, tunnels: { watch: 'busy' } })
  const end = awake.fleet.tunnels.resume(down, JSON.parse(JSON.stringify(kept[0])) as KeptTunnel)
  up.deliverTo(end)
  // It is still known with which token that was opened.
  const other = join(awake, {}, { grant: { key: 'made' } })
  await until(() => other.end() !== undefined)
  expect(other.end()).toMatchObject({ code: 4409 })
  expect(await textOf(await awake.fleet.send('one', request('x')))).toBe('x')
  expect(await awake.fleet.get('one')).toMatchObject({ connected: true })
  // From where it was opened is known, too: a candidate of links.
  expect(awake.fleet.tunnels.addressOf('ONE')).toBe('203.0.113.5')
  expect(awake.fleet.tunnels.addressOf('another')).toBeUndefined()
})
