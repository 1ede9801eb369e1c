import { randomBytes, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { version } from '../../../runtime/node/system/version.ts'
import { agentOf } from '../../../src/client/agent-of.ts'
import type { FeedItem } from '../../../src/model/event.ts'
import { faultOf, json, openFleet, StandIn } from '../../support/fleet.ts'
import { TestService } from '../../support/service.ts'

const protectedBy = { user: 'anna', password: 'Geheim-7f3a' }

/** Reads until the text has come; rejects when the stream ends before. */
async function readTo(reader: ReadableStreamDefaultReader<Uint8Array>, text: string): Promise<void> {
  const decoder = new TextDecoder()
  for (let seen = ''; !seen.includes(text); ) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`the end came before ${text}: ${seen}`)
    seen += decoder.decode(value, { stream: true })
  }
}

test('a compute of a fleet is a host agent like our own, until it is taken away', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded', ...protectedBy })
  const { fleet } = await openFleet({ version })
  const port = Number(new URL(service.url).port)
  await fleet.create({ compute_id: 'one', protocol: 'http', host: '127.0.0.1', port, ...protectedBy })
  const agent = agentOf(fleet, 'ONE')

  const { project, created } = await agent.projects.create({ name: 'lab' })
  const { project_id } = project
  expect([created, (await agent.projects.create({ name: 'lab', project_id })).created]).toEqual([true, false])
  expect(await agent.projects.get(project_id)).toEqual(project)
  const over = new AbortController()
  const feed = (await agent.events.open({ projectId: project_id, signal: over.signal })).getReader()
  expect(await feed.read()).toMatchObject({ value: { kind: 'ping' } })

  const { node } = await agent.nodes.create(project_id, 'pc', { name: 'PC1' }, { existing: 'refuse' })
  const ref = { project_id, kind: 'pc', node_id: node.node_id } as const
  expect(await faultOf(agent.nodes.console(ref, over.signal))).toMatchObject({ status: 409 })
  expect(await agent.nodes.start(ref)).toMatchObject({ status: 'started' })
  const changes: unknown[] = []
  while (changes.at(-1) !== 'started') {
    const { value } = (await feed.read()) as { value: FeedItem }
    if (value.kind === 'event' && 'change' in value.event.payload) changes.push(value.event.payload.change)
  }
  const { readable, writable } = await agent.nodes.console(ref, over.signal)
  const [screen, keyboard] = [readable.getReader(), writable.getWriter()]
  await keyboard.write(new TextEncoder().encode('show ip\n'))
  await readTo(screen, 'MTU')

  const bytes = randomBytes(3 << 20)
  await agent.files.write(project_id, 'a/b', new Blob([bytes]).stream(), { parents: true })
  const { content, size } = await agent.files.read(project_id, 'a/b')
  expect(Buffer.from(await new Response(content).arrayBuffer()).equals(bytes)).toBe(true)
  expect(size).toBe(bytes.length)
  const endless = new ReadableStream<Uint8Array>({ pull: (it) => it.enqueue(new Uint8Array(64 << 10)) })
  expect(await faultOf(agent.images.write('iou', '../x', endless, { digests: [] }))).toMatchObject({ status: 403 })
  const router = { project_id, kind: 'dynamips', node_id: randomUUID() } as const
  expect(await faultOf(agent.nodes.action(router, 'autoIdlePc', {}))).toMatchObject({ status: 404 })

  // The feed and the console are open.
  const ended = expect(readTo(screen, 'never')).rejects.toThrow('the console ended')
  await fleet.remove('one')
  await ended
  expect(await faultOf(feed.read())).toMatchObject({ status: 504, message: expect.stringContaining('was removed') })
  expect(await faultOf(agent.host.version())).toMatchObject({ status: 404 })
  expect(() => agentOf(fleet, 'one')).toThrow('there is no compute one')
})

test('what the fleet knows of a compute is what the agent answers', async () => {
  const compute = await StandIn.start()
  const { fleet, until } = await openFleet({ timeouts: { failures: 1, retryMs: [60_000, 60_000] } })
  await fleet.create(compute.input(protectedBy))
  const agent = agentOf(fleet, 'one')
  const asked: unknown[] = []
  compute.answer = (req, res) => {
    asked.push([req.url, req.headers.authorization, req.headers['accept-encoding']])
    json(res, 200, { version: '1.4.2', local: true })
  }
  expect(await agent.host.version()).toMatchObject({ version: '1.4.2' })
  expect(asked).toEqual([['/v2/compute/version', `Basic ${btoa('anna:Geheim-7f3a')}`, 'identity']])

  compute.answer = (_, res) => {
    // So that the connections of what follows are new ones.
    res.setHeader('Connection', 'close')
    json(res, 401, { message: 'who are you?', status: 401 })
  }
  expect(await faultOf(agent.host.version())).toMatchObject({
    status: 409,
    message: expect.stringContaining('refuses the user and password'),
  })

  // What reads is asked again when the connection ends; what changes something is not.
  let ends = 0
  compute.answer = (req) => {
    ends += 1
    req.socket.destroy()
  }
  expect(await faultOf(agent.host.version())).toMatchObject({ status: 504 })
  expect(ends).toBe(3)
  expect(await faultOf(agent.projects.close(randomUUID()))).toMatchObject({ status: 504 })
  expect(ends).toBe(4)

  await compute.stop()
  await until('one', { connected: false })
  expect(await faultOf(agent.host.version())).toMatchObject({
    status: 503,
    headers: { 'Retry-After': expect.stringMatching(/^\d+$/) },
  })
  const ref = { project_id: randomUUID(), kind: 'pc', node_id: randomUUID() } as const
  expect(await faultOf(agent.nodes.console(ref, new AbortController().signal))).toMatchObject({ status: 503 })
})
