import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { version } from '../../../../runtime/node/os/system/version.ts'
import { fleetAgent } from '../../../../src/fleet/members/fleet-agent.ts'
import { faultOf, json, openFleet, StandIn } from '../../../support/fleet.ts'
import { TestService } from '../../../support/service.ts'

const protectedBy = { user: 'anna', password: 'Geheim-7f3a' }

test('a compute of a fleet has the interface of our own agent, until it is removed', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded', ...protectedBy })
  const { fleet } = await openFleet({ version })
  const port = Number(new URL(service.url).port)
  await fleet.create({ compute_id: 'one', protocol: 'http', host: '127.0.0.1', port, ...protectedBy })
  const agent = fleetAgent(fleet, 'ONE')

  const { project, created } = await agent.projects.create({ name: 'lab' })
  const { project_id } = project
  expect([created, (await agent.projects.create({ name: 'lab', project_id })).created]).toEqual([true, false])
  expect(await agent.projects.get(project_id)).toEqual(project)
  const over = new AbortController()
  const feed = (await agent.events.open({ projectId: project_id, signal: over.signal })).getReader()
  expect(await feed.read()).toMatchObject({ value: { kind: 'ping' } })

  const endless = new ReadableStream<Uint8Array>({
    pull: async (it) => {
      // As a body from elsewhere: meanwhile the answer can be read.
      await setImmediate()
      it.enqueue(new Uint8Array(64 << 10))
    },
  })
  expect(await faultOf(agent.images.write('iou', '../x', endless, { digests: [] }))).toMatchObject({ status: 403 })
  // The feed is open.
  await fleet.remove('one')
  expect(await faultOf(feed.read())).toMatchObject({ status: 504, message: expect.stringContaining('was removed') })
  expect(await faultOf(agent.host.interfaces())).toMatchObject({ status: 404 })
})

test('the agent answers with the data that the fleet has of a compute', async () => {
  const compute = await StandIn.start()
  const { fleet, until } = await openFleet({ timeouts: { failures: 1, retryMs: [60_000, 60_000] } })
  await fleet.create(compute.input(protectedBy))
  const agent = fleetAgent(fleet, 'one')
  const asked: unknown[] = []
  compute.answer = (req, res) => {
    asked.push([req.url, req.headers.authorization, req.headers['accept-encoding']])
    json(res, 200, [])
  }
  expect(await agent.host.interfaces()).toEqual([])
  expect(asked).toEqual([['/v2/compute/network/interfaces', `Basic ${btoa('anna:Geheim-7f3a')}`, 'identity']])

  compute.answer = (_, res) => {
    // So that the connections of what follows are new ones.
    res.setHeader('Connection', 'close')
    json(res, 401, { message: 'who are you?', status: 401 })
  }
  expect(await faultOf(agent.host.interfaces())).toMatchObject({
    status: 409,
    message: expect.stringContaining('refuses the user and password'),
  })

  // What reads is asked again when the connection ends; what changes something is not.
  let ends = 0
  compute.answer = (req) => {
    ends += 1
    req.socket.destroy()
  }
  expect(await faultOf(agent.host.interfaces())).toMatchObject({ status: 504 })
  expect(ends).toBe(3)
  expect(await faultOf(agent.projects.reserveUdpPort(randomUUID()))).toMatchObject({ status: 504 })
  expect(ends).toBe(4)

  await compute.stop()
  await until('one', { connected: false })
  expect(await faultOf(agent.host.interfaces())).toMatchObject({
    status: 503,
    headers: { 'Retry-After': expect.stringMatching(/^\d+$/) },
  })
})
