import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { json, openFleet, StandIn, version } from '../../../support/fleet.ts'

const busy = { cpu_usage_percent: 7, memory_usage_percent: 8 }
const timeouts = { failures: 2, lookAgainMs: 20, retryMs: [60_000, 60_000] } as const
const [greeting, load] = ['GET /v2/compute/capabilities', 'GET /v2/compute/load']

async function standIn(answer: StandIn['answer'] = (_, res) => json(res, 200, busy)): Promise<StandIn> {
  const compute = await StandIn.start()
  compute.answer = answer
  return compute
}

test('most checks only read the load of a compute; without an answer its version is read', async () => {
  const compute = await standIn()
  const { fleet } = await openFleet({ healthChecks: 'on-demand', timeouts })
  await fleet.create(compute.input())
  await fleet.check()
  expect(compute.asked).toEqual([greeting, load, load])
  expect(await fleet.get('one')).toMatchObject({ connected: true, ...busy })
  compute.answer = (_, res) => json(res, 404, { message: 'none', status: 404 })
  compute.capabilities = (_, res) => json(res, 200, { version, node_types: ['iou'] })
  await fleet.check()
  expect(compute.asked.slice(3)).toEqual([load, greeting, load])
  expect(await fleet.get('one')).toMatchObject({ connected: true, capabilities: { node_types: ['iou'] } })
  compute.capabilities = (_, res) => json(res, 401, {})
  await fleet.check()
  expect(await fleet.get('one')).toMatchObject({ connected: false, last_error: expect.stringContaining('password') })
})

test('one failed check does not disconnect a compute, two do', async () => {
  const compute = await standIn()
  const { fleet, events } = await openFleet({ healthChecks: 'on-demand', timeouts })
  await fleet.create(compute.input())
  const overloaded: StandIn['answer'] = (_, res) => json(res, 503, { message: 'overloaded', status: 503 })
  const { answer, capabilities } = compute
  compute.answer = overloaded
  compute.capabilities = (req, res) => {
    Object.assign(compute, { answer, capabilities })
    overloaded(req, res)
  }
  await fleet.check()
  expect(await fleet.get('one')).toMatchObject({ connected: true, last_error: null })
  expect(fleet.shouldRetryConnect('one')).toBe(false)
  const shown = events.flatMap((event) => (event.type === 'compute.updated' ? [event.compute.connected] : []))
  expect(shown).toEqual([false, true])

  await compute.stop()
  await fleet.check('one')
  expect(await fleet.get('one')).toMatchObject({
    connected: false,
    last_error: expect.stringContaining('ECONNREFUSED'),
  })
  expect(fleet.shouldRetryConnect('one')).toBe(false)
})

test('a check of many computes ends in time, and the next one continues with the others', async () => {
  // Within two thirds of it a busy host, too, asks the first six.
  const lookMs = 3000
  const held: (() => void)[] = []
  let isHeld = false
  let sixth = () => {}
  const sixAsked = new Promise<void>((resolve) => (sixth = resolve))
  const asked: string[] = []
  const compute = await standIn((req: IncomingMessage, res: ServerResponse) => {
    asked.push(atob(req.headers.authorization?.slice('Basic '.length) ?? '').replace(':', ''))
    if (!isHeld) return json(res, 200, busy)
    if (held.push(() => json(res, 200, busy)) === 6) sixth()
  })
  const { fleet } = await openFleet({ healthChecks: 'on-demand', timeouts: { ...timeouts, lookMs } })
  const names = Array.from({ length: 12 }, (_, index) => `c${index}`)
  for (const compute_id of names) await fleet.create(compute.input({ compute_id, user: compute_id }))
  asked.length = 0
  isHeld = true
  const look = fleet.check()
  await sixAsked
  const until = Date.now() + lookMs
  while (Date.now() <= until) await new Promise((resolve) => setTimeout(resolve, until - Date.now() + 1))
  isHeld = false
  for (const answer of held) answer()
  await look
  expect(asked.toSorted()).toEqual(names.slice(0, 6).toSorted())
  asked.length = 0
  await fleet.check()
  expect(asked.slice(0, 6).toSorted()).toEqual(names.slice(6).toSorted())
})
