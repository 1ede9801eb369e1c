import { expect, test } from 'vitest'
import type { Compute } from '../../../../src/model/compute.ts'
import { faultOf, json, openFleet, StandIn, version } from '../../../support/fleet.ts'
import { hangMs } from '../../../support/limits.ts'

const ask = { method: 'GET', path: '/v2/compute/x', headers: {}, body: null, signal: new AbortController().signal }
const never: [number, number] = [60_000, 60_000]

test('a compute that disconnects is shown so, and is connected again when it is back', async () => {
  const compute = await StandIn.start()
  const { fleet, until } = await openFleet()
  await fleet.create(compute.input())
  await until('one', { cpu_usage_percent: 3 })
  await compute.stop()
  expect(await until('one', { connected: false })).toMatchObject({
    ...{ cpu_usage_percent: null, memory_usage_percent: null, last_error: expect.any(String) },
    // What it can do is not forgotten with it.
    capabilities: { version },
  })
  await compute.listen()
  await until('one', { connected: true, last_error: null, cpu_usage_percent: 3 })
})

test('a silent compute does not count as connected', async () => {
  const compute = await StandIn.start()
  const { fleet, until } = await openFleet({ timeouts: { silenceMs: 80, retryMs: never } })
  await fleet.create(compute.input())
  expect(await until('one', { connected: false })).toMatchObject({ last_error: 'it sent nothing for 0.08 s' })
  await expect.poll(() => compute.openFeeds).toBe(0)
})

test.for([
  ['no JSON', '<html>'],
  ['a line without an end', `"${'x'.repeat(3 << 20)}`],
  ['no objects', '5'],
])('a feed of %s ends the connection', async ([, line]) => {
  const compute = await StandIn.start()
  const { fleet, until } = await openFleet({ timeouts: { retryMs: never } })
  await fleet.create(compute.input())
  await until('one', { cpu_usage_percent: 3 })
  compute.say(line)
  await until('one', { connected: false })
})

test('other events, and invalid loads, change nothing', async () => {
  const compute = await StandIn.start()
  const { fleet, until, events } = await openFleet()
  await fleet.create(compute.input())
  await until('one', { cpu_usage_percent: 3 })
  const before = events.length
  compute.say({ action: 'node.updated', event: { name: 'R1' } })
  compute.ping(-1, 400)
  compute.say({ action: 'ping', event: null })
  compute.ping(3, 40)
  compute.ping(4, 41)
  await until('one', { cpu_usage_percent: 4 })
  expect(events).toHaveLength(before + 1)
})

test('loads that come one after the other are shown once in a while, and the last one is', async () => {
  const compute = await StandIn.start()
  const { fleet, until, events } = await openFleet()
  await fleet.create(compute.input())
  await until('one', { cpu_usage_percent: 3 })
  const before = events.length
  const pings = Array.from({ length: 50 }, (_, index) => ({
    ...{ action: 'ping', event: { cpu_usage_percent: 50 - index, memory_usage_percent: 1 } },
  }))
  compute.say(pings.map((it) => JSON.stringify(it)).join('\n'))
  await until('one', { cpu_usage_percent: 1, memory_usage_percent: 1 })
  await expect.poll(() => events.at(-1)).toMatchObject({ compute: { cpu_usage_percent: 1 } })
  expect(events.length - before).toBeLessThan(5)
})

test('requests to a compute that failed repeatedly are refused at once, until one may try', async () => {
  const compute = await StandIn.start()
  const { fleet, until } = await openFleet({ timeouts: { retryMs: [1000, 1000] }, healthChecks: false })
  await fleet.create(compute.input())
  await compute.stop()
  for (let n = 0; n < 3; n++) {
    expect(await faultOf(fleet.send('one', ask))).toMatchObject({ status: 409, message: /ECONNREFUSED/ })
  }
  const refused = await faultOf(fleet.send('one', ask))
  expect(refused).toMatchObject({ status: 503, headers: { 'Retry-After': '1' }, message: /ECONNREFUSED/ })
  await compute.listen()
  compute.asked.length = 0
  await expect
    .poll(
      () =>
        fleet
          .send('one', ask)
          .then(({ status }) => status)
          .catch(() => 0),
      { timeout: hangMs },
    )
    .toBe(404)
  expect(compute.asked).toEqual(['GET /v2/compute/capabilities', 'GET /v2/compute/x'])
  await until('one', { connected: true })
})

test('a service with periodic checks has states and loads, and keeps them during hibernation', async () => {
  const compute = await StandIn.start()
  compute.answer = (req, res) =>
    req.url === '/v2/compute/load'
      ? json(res, 200, { cpu_usage_percent: 7, memory_usage_percent: 8 })
      : json(res, 204, {})
  const rounds = { healthChecks: 'on-demand', timeouts: { failures: 1, retryMs: [60_000, 60_000] } } as const
  const { fleet, registry, until } = await openFleet(rounds)
  await fleet.create(compute.input())
  await until('one', { connected: true, cpu_usage_percent: 7, memory_usage_percent: 8 })
  expect([compute.openFeeds, fleet.shouldRetryConnect('one')]).toEqual([0, false])
  const shown = await fleet.list()

  const unknown = await openFleet({ ...rounds, registry })
  expect(await unknown.fleet.get('one')).toMatchObject({ connected: false, last_error: null })
  expect(unknown.fleet.shouldRetryConnect('one')).toBe(true)
  unknown.fleet.restoreStates([{ ...(shown[0] as Compute), port: 1 }], 0)
  expect(await unknown.fleet.get('one')).toMatchObject({ connected: false })
  unknown.fleet.restoreStates(shown, 0)
  expect(await unknown.fleet.list()).toEqual(shown)

  await compute.stop()
  await fleet.check()
  expect(await fleet.get('one')).toMatchObject({ connected: false, cpu_usage_percent: null })
  expect(fleet.shouldRetryConnect('one')).toBe(false)
  expect(await faultOf(fleet.send('one', ask))).toMatchObject({ status: 503, headers: { 'Retry-After': /^[3-6]\d$/ } })
  unknown.fleet.restoreStates(await fleet.list(), 0)
  expect(await faultOf(unknown.fleet.send('one', ask))).toMatchObject({ status: 503 })
  await compute.listen()
  await fleet.check()
  expect(await fleet.get('one')).toMatchObject({ connected: true, last_error: null })
})

test('only one request tries; those beside it are refused', async () => {
  const compute = await StandIn.start()
  await compute.stop()
  const { fleet } = await openFleet({ timeouts: { retryMs: [1, 1] }, healthChecks: false })
  await fleet.create(compute.input())
  for (let n = 0; n < 2; n++) await faultOf(fleet.send('one', ask))
  let answer = () => {}
  const asked = new Promise<void>((resolve) => {
    compute.capabilities = (_, res) => {
      answer = () => json(res, 200, { version, node_types: [] })
      resolve()
    }
  })
  await compute.listen()
  let tries = fleet.send('one', ask)
  // The wait after the last failure may not be over yet.
  for (;;) {
    const first = await Promise.race([asked, tries.catch((error: { status: number }) => error.status)])
    if (first === undefined) break
    tries = fleet.send('one', ask)
  }
  expect(await faultOf(fleet.send('one', ask))).toMatchObject({ status: 503 })
  answer()
  expect((await tries).status).toBe(404)
})

test('registering or changing a compute starts an attempt at once', async () => {
  const compute = await StandIn.start()
  await compute.stop()
  const { fleet, until } = await openFleet({ timeouts: { retryMs: never } })
  await fleet.create(compute.input())
  for (let n = 0; n < 2; n++) await faultOf(fleet.send('one', ask))
  expect(await faultOf(fleet.send('one', ask))).toMatchObject({ status: 503 })
  await compute.listen()
  expect(await fleet.create(compute.input())).toMatchObject({ connected: true })
  await compute.stop()
  await until('one', { connected: false })
  await compute.listen()
  await fleet.update('one', { name: 'again' })
  await until('one', { connected: true })
})

test('changes of a compute while it was disconnected are noticed', async () => {
  const compute = await StandIn.start()
  const { fleet, until } = await openFleet()
  await fleet.create(compute.input())
  await compute.stop()
  await until('one', { connected: false })
  compute.capabilities = (_, res) => json(res, 401, {})
  await compute.listen()
  await until('one', { last_error: 'it refuses the user and password' })
  expect(await faultOf(fleet.send('one', ask))).toMatchObject({ message: /user and password/ })
})

test('a feed that ends repeatedly is opened again only after a pause', async () => {
  const compute = await StandIn.start()
  let feeds = 0
  compute.feed = (_, res) => {
    feeds += 1
    res.end()
  }
  const began = Date.now()
  const { fleet } = await openFleet({ timeouts: { retryMs: [40, 1000], steadyMs: 60_000 } })
  await fleet.create(compute.input())
  await expect.poll(() => feeds).toBeGreaterThan(4)
  // Each wait is at least half of the second one.
  expect(Date.now() - began).toBeGreaterThanOrEqual((feeds - 1) * 20)
})
