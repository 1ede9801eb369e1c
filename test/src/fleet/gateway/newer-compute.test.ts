import { expect, onTestFinished, test } from 'vitest'
import { json, openFleet, StandIn, version } from '../../../support/fleet.ts'
import { startFleetGateway } from '../../../support/gateway.ts'

const id = '10000000-0000-4000-8000-000000000000'
const project = { project_id: id, name: 'lab', path: '/x', location: '/', temporary: false, variables: null }
const node = {
  ...{ node_id: id, project_id: id, name: 'PC1', node_directory: '/x', status: 'migrating', console: 5001 },
  ...{
    command_line: '',
    status_reason: null,
    console_type: 'hologram',
    startup_script: null,
    startup_script_path: null,
  },
  ...{ mac_address: '00:50:79:66:68:00', engine: 'quantum' },
}
const nio = { type: 'nio_quantum', entangled_with: 'x' }

/** A gateway before a stand-in for a compute of a version that is still to come. */
async function bed() {
  const compute = await StandIn.start()
  const at = `/v2/compute/projects/${id}`
  const answers: Record<string, unknown> = {
    [at]: { ...project, status: 'archived' },
    [`${at}/pc/nodes`]: [node],
    [`${at}/pc/nodes/${id}`]: node,
    [`${at}/pc/nodes/${id}/start`]: node,
    [`${at}/pc/nodes/${id}/adapters/0/ports/0/nio`]: { ...nio, state: { status: 'entangled' } },
  }
  compute.capabilities = (_, res) => {
    const own = { version, platform: 'plan9', node_types: ['pc', 'quantum'], packet_path: 'warp', pc_engine: 'quantum' }
    json(res, 200, own)
  }
  const feed = compute.feed
  compute.ping = (cpu_usage_percent, memory_usage_percent) =>
    compute.say({ action: 'ping', event: { cpu_usage_percent, memory_usage_percent }, seq: 0 })
  compute.answer = (req, res) => {
    if (req.url?.startsWith('/v2/compute/notifications')) return feed(req, res)
    if (req.url?.startsWith('/v2/compute/capabilities')) return compute.capabilities(req, res)
    const answer = answers[req.url?.split('?')[0] ?? '']
    json(res, answer === undefined ? 404 : 200, answer ?? { message: 'There is nothing', status: 404 })
  }
  const { fleet } = await openFleet()
  await fleet.create(compute.input())
  const { app } = startFleetGateway(fleet)
  const over = new AbortController()
  onTestFinished(() => over.abort())
  const ask = (method: string, path: string) =>
    app.fetch(new Request(`http://localhost${path}`, { method, signal: over.signal }))
  return { compute, ask, at }
}

test('unknown values of a newer compute pass an older gateway', async () => {
  const { ask, at } = await bed()
  const read = async (method: string, path: string) => {
    const answer = await ask(method, path)
    return [answer.status, await answer.json()]
  }
  expect(await read('GET', `${at}/pc/nodes/${id}`)).toMatchObject([
    200,
    { status: 'migrating', console_type: 'hologram' },
  ])
  expect(await read('GET', `${at}/pc/nodes`)).toMatchObject([200, [{ status: 'migrating' }]])
  expect(await read('POST', `${at}/pc/nodes/${id}/start`)).toMatchObject([200, { status: 'migrating' }])
  expect(await read('GET', at)).toMatchObject([200, { name: 'lab' }])
  expect(await read('GET', '/v2/compute/capabilities')).toMatchObject([200, { node_types: ['pc', 'quantum'] }])
  expect(await read('GET', `${at}/pc/nodes/${id}/adapters/0/ports/0/nio`)).toMatchObject([200, { type: 'nio_quantum' }])
})

test('an event that only a newer compute has is handed on, and the feed goes on', async () => {
  const { compute, ask } = await bed()
  const feed = await ask('GET', '/v2/compute/notifications')
  const reader = feed.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const shows = async (what: string) => {
    while (!text.includes(what)) {
      const { done, value } = (await reader?.read()) ?? { done: true }
      if (done) throw new Error(`the feed ended after ${text}`)
      text += value
    }
  }
  await shows('ping')
  await expect.poll(() => compute.openFeeds).toBeGreaterThan(1)
  compute.say({ action: 'node.migrated', event: { to: 'c2' }, seq: 1, project_id: id })
  compute.say({ action: 'node.created', event: { node_id: id, project_id: id, qubits: 5 }, seq: 2, project_id: id })
  compute.say({ action: 'compute.upgraded', event: { version: '9' }, seq: 3 })
  compute.say({ action: 'log.info', event: { message: 'and on' }, seq: 4, project_id: id })
  await shows('and on')
  const lines = text
    .split('\n')
    .filter((line) => line.includes(id))
    .map((line) => JSON.parse(line) as object)
  expect(lines).toMatchObject([
    { action: 'node.migrated', event: { to: 'c2' }, project_id: id },
    { action: 'node.created', event: { qubits: 5 }, project_id: id },
    { action: 'log.info', event: { message: 'and on' }, project_id: id },
  ])
})
