import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { portOf } from '../support/gateway-lab.ts'
import { hangMs } from '../support/limits.ts'
import { TestService } from '../support/service.ts'
import { WorkerGateway } from '../support/worker-gateway.ts'

/** What is asked: a service, a gateway on Node or a Worker. */
interface Asked {
  readonly url: string
  fetch(method: string, path: string, body?: unknown): Promise<Response>
}

const clients = { clients: 'gns3' }
const ofNode = (service: TestService): Asked => ({
  url: service.url,
  fetch: (method, path, body) =>
    service.fetch(path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) }),
})

const services: TestService[] = []
let worker: WorkerGateway
let plain: Asked
let gateway: Asked

beforeAll(async () => {
  worker = await WorkerGateway.startForAll(await mkdtemp(join(tmpdir(), 'patchbay-')), {
    ...{ RATE_PER_S: '0', CLIENTS: 'gns3' },
  })
  // The computes of gateways have neutral words.
  const [service, fleet, a, b] = await Promise.all([
    TestService.startForAll({ 'pc.engine': 'embedded', ...clients }),
    TestService.startForAll({ gateway: true, 'rate_limit.per_s': 0, ...clients }),
    TestService.startForAll({ 'pc.engine': 'embedded' }),
    TestService.startForAll({ 'pc.engine': 'embedded' }),
  ])
  services.push(service, fleet, a, b)
  ;[plain, gateway] = [ofNode(service), ofNode(fleet)]
  for (const [at, compute] of [[worker, a] as const, [gateway, b] as const]) {
    const input = { compute_id: 'one', protocol: 'http', host: '127.0.0.1', port: portOf(compute) }
    expect((await at.fetch('POST', '/v2/computes', input)).status).toBe(201)
  }
})

afterAll(async () => {
  await Promise.all(services.map((service) => service.close()))
  await worker?.stop()
  if (worker !== undefined) await rm(worker.data, { recursive: true, force: true })
})

/** Members whose values are of the service that is asked. */
const ofPlace = new Set(['local', 'console', 'console_host', 'compute_id', 'node_directory', 'path', 'command_line'])

/** The same text for what differs by service alone: ids by the order in which they appear, and places. */
function comparable(value: unknown, ids: Map<string, string>): unknown {
  if (Array.isArray(value)) return value.map((it) => comparable(it, ids))
  if (typeof value === 'string')
    return value.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => {
      if (!ids.has(id)) ids.set(id, `id ${ids.size}`)
      return ids.get(id) as string
    })
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, it]) => [key, ofPlace.has(key) ? `a ${typeof it}` : comparable(it, ids)]),
  )
}

/** What clients of release 2.2 ask, and what they were answered. */
async function conversation(asked: Asked): Promise<unknown[]> {
  const said: unknown[] = []
  const ids = new Map<string, string>()
  const ask = async (method: string, path: string, body?: unknown): Promise<Record<string, unknown>> => {
    const answer = await asked.fetch(method, path, body)
    const text = await answer.text()
    const json = text === '' ? {} : JSON.parse(text)
    said.push(comparable([method, path, answer.status, json], ids))
    return json
  }
  await ask('GET', '/v2/version')
  await ask('GET', '/v2/templates')
  await ask('GET', '/v2/appliances')
  const { project_id } = await ask('POST', '/v2/projects', { name: 'lab', grid_size: 100, nature: 'tame' })
  const project = `/v2/projects/${project_id}`
  await ask('POST', '/v2/projects', { name: 'lab' })
  const pcs: Record<string, unknown>[] = []
  for (const x of [-100, 100])
    pcs.push(await ask('POST', `${project}/templates/19021f99-e36f-394d-b4a1-8aaa902ab9cc`, { x, y: 20 }))
  const ends = pcs.map(({ node_id }) => ({ node_id, adapter_number: 0, port_number: 0 }))
  const { link_id } = await ask('POST', `${project}/links`, { nodes: ends })
  const node = `${project}/nodes/${pcs[0]?.node_id}`
  await ask('PUT', node, { ...pcs[0], x: 7, properties: { base_script_file: 'vpcs_base_config.txt' } })
  await ask('POST', `${node}/start`, {})
  await ask('GET', `${project}/nodes`)
  await ask('PUT', `${project}/links/${link_id}`, { filters: { delay: [10, 0] }, suspend: false })
  await ask('GET', `${project}/links/${link_id}/available_filters`)
  await ask('POST', `${project}/drawings`, { svg: '<svg width="1" height="1"></svg>', x: 1, y: 1, z: 1 })
  await ask('POST', `${project}/nodes`, { name: 'M', node_type: 'none_such', compute_id: 'one', properties: {} })
  await ask('GET', `${project}/nodes/${crypto.randomUUID()}`)
  await ask('GET', `/v2/compute/projects/${project_id}/vpcs/nodes/${pcs[1]?.node_id}`)
  await ask('POST', `${project}/nodes/stop`, {})
  await ask('POST', `${project}/close`, {})
  await ask('GET', project)
  await ask('DELETE', project)
  await ask('GET', project)
  return said
}

it('answers clients of GNS3 at a gateway and in a Worker as a plain service does', async () => {
  const expected = await conversation(plain)
  expect(JSON.stringify(expected)).toContain('"node_type":"vpcs"')
  expect(await conversation(gateway)).toEqual(expected)
  expect(await conversation(worker)).toEqual(expected)
})

it('has a project on a compute changed in a Worker, also where its isolate asks the compute itself', async () => {
  const { project_id } = await worker.call('POST', '/v2/compute/projects', { name: 'handed on' })
  const project = `/v2/compute/projects/${project_id}`
  // From here on the isolate knows where the project is.
  expect((await worker.fetch('GET', project)).status).toBe(200)
  const made = await worker.fetch('POST', `${project}/vpcs/nodes`, { name: 'PC1' })
  expect([made.status, await made.json()]).toMatchObject([201, { name: 'PC1', project_id }])
  await worker.fetch('DELETE', project)
})

it(
  'has the events of a project in the words of that release',
  async () => {
    for (const asked of [gateway, worker]) {
      const { project_id } = await (await asked.fetch('POST', '/v2/projects', { name: 'heard' })).json()
      const project = `/v2/projects/${project_id}`
      const feed = await asked.fetch('GET', `${project}/notifications`)
      const { node_id } = await (
        await asked.fetch('POST', `${project}/nodes`, { name: 'PC1', node_type: 'vpcs', compute_id: 'one' })
      ).json()
      let text = ''
      for await (const piece of feed.body as ReadableStream<Uint8Array>) {
        text += new TextDecoder().decode(piece)
        if (text.includes('node.created')) break
      }
      const created = text.split('\n').find((line) => line.includes('node.created'))
      expect(JSON.parse(created ?? '')).toMatchObject({ action: 'node.created', event: { node_id, node_type: 'vpcs' } })
      await asked.fetch('DELETE', project)
    }
  },
  hangMs,
)
