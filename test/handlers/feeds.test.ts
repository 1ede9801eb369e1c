import { expect, test } from 'vitest'
import { body, del, newPc, newProject, post, put, send } from '../support/api.ts'
import { openFeed, openSocketFeed } from '../support/feed.ts'

const transports = [
  ['JSON lines', (path: string) => openFeed(path)],
  ['server-sent events', (path: string) => openFeed(path, { accept: 'text/event-stream' })],
  ['a websocket', (path: string) => openSocketFeed(path)],
] as const

for (const [name, open] of transports) {
  test(`a feed by ${name} begins with a ping, has its events in order, and ends with its project`, async () => {
    const project = await newProject()
    const feed = await open(`${project.v2}/notifications`)
    expect(await feed.line()).toEqual({
      action: 'ping',
      event: { cpu_usage_percent: expect.any(Number), memory_usage_percent: expect.any(Number) },
      seq: expect.any(Number),
    })
    const pc = await newPc(project)
    await put(pc.path, { name: 'renamed' })
    await post(`${pc.path}/start`)
    await del(pc.path)
    const lines = [await feed.next(), await feed.next(), await feed.next(), await feed.next(), await feed.next()]
    expect(lines.map(({ action }) => action)).toEqual([
      'node.created',
      'node.updated',
      'node.updated',
      'node.updated',
      'node.deleted',
    ])
    expect(lines.map(({ event }) => event.status)).toEqual(['stopped', 'stopped', 'started', 'stopped', 'stopped'])
    const numbers = lines.map(({ seq }) => seq ?? 0)
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
    await post(`${project.v1}/close`)
    expect(await feed.next()).toMatchObject({ action: 'project.closed' })
    expect(await feed.line()).toBeUndefined()
  })

  test(`a feed by ${name} that is opened again gets the missed events`, async () => {
    const project = await newProject()
    const first = await open(`${project.v2}/notifications`)
    const pc = await newPc(project)
    const { seq } = await first.next()
    first.close()
    await put(pc.path, { name: 'one' })
    await put(pc.path, { name: 'two' })
    const second = await open(`${project.v2}/notifications?since=${seq}`)
    expect(await second.next()).toMatchObject({ action: 'node.updated', event: { name: 'one' } })
    expect(await second.next()).toMatchObject({ action: 'node.updated', event: { name: 'two' } })
  })

  test(`a feed by ${name} gets resync when missed events are no longer stored`, async () => {
    const project = await newProject()
    const feed = await open(`${project.v2}/notifications?since=12`)
    const { action, seq } = await feed.next()
    expect(action).toBe('resync')
    await newPc(project)
    const created = await feed.next()
    expect(created.seq).toBeGreaterThan(seq ?? Number.NaN)
  })
}

test('a feed that was closed before its first event continues from its ping', async () => {
  const project = await newProject()
  const first = await openFeed(`${project.v2}/notifications`)
  const ping = await first.line()
  first.close()
  await newPc(project)
  const again = await openFeed(`${project.v2}/notifications?since=${ping?.seq}`)
  expect(await again.line()).toMatchObject({ action: 'ping', seq: ping?.seq })
  expect(await again.next()).toMatchObject({ action: 'node.created' })
})

test('v1 has its own event names, and no others', async () => {
  const project = await newProject()
  const feed = await openFeed(`${project.v1}/notifications`)
  const pc = await newPc(project)
  await post(`${pc.path}/start`)
  await post(`${pc.path}/stop`)
  expect(await feed.next()).toMatchObject({ action: 'vm.started', event: { vm_id: pc.id, status: 'started' } })
  expect(await feed.next()).toMatchObject({ action: 'vm.stopped', event: { vm_id: pc.id, status: 'stopped' } })
})

test('the header Last-Event-ID of an event source continues its feed', async () => {
  const project = await newProject()
  const feed = await openFeed(`${project.v2}/notifications`)
  const pc = await newPc(project)
  const { seq } = await feed.next()
  await put(pc.path, { name: 'missed' })
  const again = await openFeed(`${project.v2}/notifications`, {
    'last-event-id': String(seq),
    accept: 'text/event-stream',
  })
  expect(await again.next()).toMatchObject({ event: { name: 'missed' } })
})

test('the feed of the compute names the projects', async () => {
  const feed = await openSocketFeed('/v2/compute/notifications/ws')
  const project = await newProject()
  await newPc(project)
  for (;;) {
    const line = await feed.next()
    if (line.project_id === project.id) return expect(line.action).toBe('node.created')
  }
})

test('a feed is refused with the reason before it begins', async () => {
  expect((await send('/v2/compute/projects/7a2f0000-0000-0000-0000-000000000000/notifications')).status).toBe(404)
  const project = await newProject()
  const answer = await send(`${project.v2}/notifications?since=yesterday`)
  expect(answer.status).toBe(400)
  expect(await body(answer)).toEqual({ message: 'since: expected the seq of an event, got "yesterday"', status: 400 })
  expect((await send(`${project.v2}/notifications/ws`)).status).toBe(404)
})

test('closed feeds do not count for the limit', async () => {
  const project = await newProject()
  for (let times = 0; times < 100; times++) {
    const path = `${project.v2}/notifications`
    const feed = times % 2 === 0 ? await openFeed(path) : await openSocketFeed(path)
    expect(await feed.line()).toMatchObject({ action: 'ping' })
    feed.close()
  }
})
