import { expect, onTestFinished, test } from 'vitest'
import type { LocalHostAgent } from '../../../src/host-agent.ts'
import { ApiError } from '../../../src/lib/errors/api-error.ts'
import { startAgent, startGateway, type TestGateway } from '../../support/gateway.ts'
import { lyingCompute } from '../../support/lying-compute.ts'

const projects = '/v2/compute/projects'

async function twoComputes(): Promise<TestGateway> {
  return startGateway(await Promise.all([startAgent(), startAgent()]))
}

async function createProject(gateway: TestGateway, wanted: Record<string, unknown> = {}): Promise<string> {
  return (await gateway.call<{ project_id: string }>('POST', projects, { name: 'lab', ...wanted })).project_id
}

const idsOf = async (agent: LocalHostAgent): Promise<string[]> =>
  (await agent.projects.list()).map(({ project_id }) => project_id)

test('projects are spread over the computes, and requests about a project go to its compute', async () => {
  const gateway = await twoComputes()
  const [a, b] = gateway.members
  const ids = await Promise.all(Array.from({ length: 8 }, () => createProject(gateway)))
  const [onA, onB] = [await idsOf(a?.agent as LocalHostAgent), await idsOf(b?.agent as LocalHostAgent)]
  expect(onA).toHaveLength(4)
  expect([...onA, ...onB].sort()).toEqual(ids.toSorted())
  const listed = await gateway.call<{ project_id: string }[]>('GET', projects)
  expect(listed.map(({ project_id }) => project_id).sort()).toEqual(ids.toSorted())
  for (const id of ids) expect(await gateway.call('GET', `${projects}/${id}`)).toMatchObject({ project_id: id })

  const id = ids[0] as string
  const node = await gateway.call('POST', `${projects}/${id}/pc/nodes`, { name: 'PC1' })
  expect(await gateway.call('GET', `/v1/projects/${id}/pc/vms/${node.node_id}`)).toMatchObject({ name: 'PC1' })
  await gateway.call('DELETE', `${projects}/${id}`)
  expect((await gateway.fetch('GET', `${projects}/${id}`)).status).toBe(404)
  expect(gateway.placements.has(id)).toBe(false)
})

test('a project is placed by room, by the request, and by its files', async () => {
  const gateway = await twoComputes()
  const [a, b] = gateway.members
  if (a === undefined || b === undefined) throw new Error('two were started')
  a.load = { cpu_usage_percent: 90, memory_usage_percent: 20 }
  const id = await createProject(gateway)
  expect(gateway.placements.get(id)).toBe('c1')
  expect(gateway.placements.get(await createProject(gateway, { compute_id: 'C0' }))).toBe('c0')

  await gateway.call('POST', `${projects}/${id}/close`)
  b.load = { cpu_usage_percent: 100, memory_usage_percent: 100 }
  await createProject(gateway, { project_id: id })
  expect(await idsOf(b.agent)).toEqual([id])
  const elsewhere = await gateway.fetch('POST', projects, { name: 'lab', project_id: id, compute_id: 'c0' })
  expect([elsewhere.status, await elsewhere.json()]).toMatchObject([409, { message: /is on the compute Compute 1/ }])

  b.acceptsProjects = false
  a.weight = 0.01
  expect(gateway.placements.get(await createProject(gateway))).toBe('c0')
  const drained = await gateway.fetch('POST', projects, { name: 'lab', compute_id: 'c1' })
  expect([drained.status, await drained.json()]).toMatchObject([409, { message: /accepts no new projects/ }])
  const unknown = await gateway.fetch('POST', projects, { name: 'lab', compute_id: 'c7' })
  expect([unknown.status, await unknown.json()]).toMatchObject([400, { message: /there is no compute c7/ }])
})

test('lists name a compute that does not answer, and its projects are 503, not 404', async () => {
  const gateway = await twoComputes()
  const [a, b] = gateway.members
  if (a === undefined || b === undefined) throw new Error('two were started')
  const [onA, onB] = [
    await createProject(gateway, { compute_id: 'c0' }),
    await createProject(gateway, { compute_id: 'c1' }),
  ]
  b.name = 'Büro, 2'
  b.isConnected = false
  const list = await gateway.fetch('GET', projects)
  expect(await list.json()).toMatchObject([{ project_id: onA }])
  expect(list.headers.get('X-Patchbay-Unreachable')).toBe('B%C3%BCro%2C%202')
  const gone = await gateway.fetch('GET', `${projects}/${onB}`)
  expect([gone.status, gone.headers.get('Retry-After')]).toEqual([503, '5'])
  const unknown = await gateway.fetch('GET', `${projects}/${crypto.randomUUID()}`)
  expect([unknown.status, await unknown.json()]).toMatchObject([404, { message: /; not connected: Büro, 2$/ }])
  expect(gateway.placements.get(await createProject(gateway))).toBe('c0')
  a.isConnected = false
  expect(await gateway.call('GET', projects)).toEqual([])
  expect((await gateway.fetch('POST', projects, { name: 'lab' })).status).toBe(503)
})

test('a project without a placement is found by asking the computes, also after it has moved', async () => {
  const gateway = await twoComputes()
  const [a, b] = gateway.members
  if (a === undefined || b === undefined) throw new Error('two were started')
  const id = crypto.randomUUID()
  await b.agent.projects.create({ project_id: id, name: 'lab' })
  expect(await gateway.call('GET', `${projects}/${id}`)).toMatchObject({ name: 'lab' })
  expect(gateway.placements.get(id)).toBe('c1')
  await b.agent.projects.remove(id)
  await a.agent.projects.create({ project_id: id, name: 'lab again' })
  expect(await gateway.call('GET', `${projects}/${id}`)).toMatchObject({ name: 'lab again' })
  expect(gateway.placements.get(id)).toBe('c0')
})

test('a new project skips a compute that does not answer, and not one that refuses', async () => {
  const agents = await Promise.all([startAgent(), startAgent()])
  let status = 503
  const broken = new Proxy(agents[0] as LocalHostAgent, {
    get: (agent, name: keyof LocalHostAgent) =>
      name === 'projects'
        ? {
            ...agent.projects,
            get: agent.projects.get.bind(agent.projects),
            create: () => Promise.reject(new ApiError(status, 'no')),
          }
        : agent[name],
  })
  const gateway = startGateway([broken, agents[1] as LocalHostAgent])
  const [a] = gateway.members
  if (a === undefined) throw new Error('it was started')
  a.weight = 100
  const id = await createProject(gateway)
  expect(gateway.placements.get(id)).toBe('c1')
  status = 507
  const refused = crypto.randomUUID()
  expect((await gateway.fetch('POST', projects, { name: 'lab', project_id: refused })).status).toBe(507)
  expect(gateway.placements.has(refused)).toBe(false)
  // Whether it was created is not known: it is asked for there again.
  status = 504
  expect((await gateway.fetch('POST', projects, { name: 'lab', project_id: refused })).status).toBe(504)
  expect(gateway.placements.get(refused)).toBe('c0')
})

test('two requests with one id make one project', async () => {
  const gateway = await twoComputes()
  const project_id = crypto.randomUUID()
  await Promise.all(Array.from({ length: 4 }, () => createProject(gateway, { project_id })))
  const all = await Promise.all(gateway.members.map(({ agent }) => idsOf(agent)))
  expect(all.flat()).toEqual([project_id])
})

test('an image goes to every compute, at the speed of the slowest, and is read from the first that has it', async () => {
  const gateway = await twoComputes()
  const content = crypto.getRandomValues(new Uint8Array(60_000))
  const image = '/v2/compute/machine-emulator/images/vios.qcow2'
  const uploaded = await gateway.fetch('POST', image, undefined, { body: content, duplex: 'half' } as RequestInit)
  expect(uploaded.status).toBe(204)
  for (const { agent } of gateway.members)
    expect(await agent.images.list('machine-emulator')).toMatchObject([{ filename: 'vios.qcow2' }])
  expect(await gateway.call('GET', '/v2/compute/machine-emulator/images')).toHaveLength(1)
  const read = await gateway.fetch('GET', image)
  expect(new Uint8Array(await read.arrayBuffer())).toEqual(content)
})

test('one feed has the events of all computes, and a resync when events are missing', async () => {
  const gateway = await twoComputes()
  const [a, b] = gateway.members
  if (a === undefined || b === undefined) throw new Error('two were started')
  const over = new AbortController()
  onTestFinished(() => over.abort())
  const lines = await feedOf(gateway, over.signal)
  expect(await lines()).toMatchObject({ action: 'ping' })
  const created = await Promise.all(['c0', 'c1'].map((compute_id) => createProject(gateway, { compute_id })))
  const nodes = await Promise.all(
    created.map((id) => gateway.call('POST', `${projects}/${id}/pc/nodes`, { name: 'PC1' })),
  )
  const heard = [await lines(), await lines()]
  expect(heard.map(({ project_id }) => project_id).sort()).toEqual(created.toSorted())
  expect(heard).toMatchObject([{ action: 'node.created' }, { action: 'node.created' }])
  const [first, second] = heard.map(({ seq }) => seq as number)
  expect(second).toBeGreaterThan(first ?? Number.POSITIVE_INFINITY)
  // One that goes is not missed; when it is back, what happened meanwhile is not known.
  b.isConnected = false
  gateway.changed()
  await new Promise(setImmediate)
  b.isConnected = true
  gateway.changed()
  expect(await lines()).toMatchObject({ action: 'resync' })
  const missed = await feedOf(gateway, over.signal, `?since=${first}`)
  expect(await missed()).toMatchObject({ action: 'ping' })
  expect(await missed()).toMatchObject({ action: 'resync' })
  expect(nodes).toHaveLength(2)
})

test('a compute that only answers its feed does not delay the events of others', async () => {
  const load = { cpu_usage_percent: 1, memory_usage_percent: 1 }
  const silent = await lyingCompute((req, res) => {
    if (req.url?.startsWith('/v2/compute/notifications'))
      res.write(`${JSON.stringify({ action: 'ping', event: load, seq: 1 })}\n`)
  })
  const agent = await startAgent()
  // It was made past the gateway, which has to look for it when it hears of it; its own compute takes its time, too.
  const unplaced = crypto.randomUUID()
  let answer = () => {}
  const answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  const projectsOf = new Proxy(agent.projects, {
    get: (all, name: keyof LocalHostAgent['projects']) =>
      name === 'get'
        ? async (id: string) => {
            if (id === unplaced) await answered
            return all.get(id)
          }
        : all[name]?.bind(all),
  })
  const gateway = startGateway([{ ...agent, projects: projectsOf }, silent.agent as LocalHostAgent])
  const over = new AbortController()
  onTestFinished(() => over.abort())
  const placed = await createProject(gateway, { compute_id: 'c0' })
  const lines = await feedOf(gateway, over.signal)
  const nextEvent = async () => {
    for (;;) {
      const line = await lines()
      if (line.action !== 'ping') return line
    }
  }
  await agent.projects.create({ project_id: unplaced, name: 'made past the gateway', temporary: false })
  await agent.projects.update(unplaced, { name: 'renamed' })
  await expect.poll(() => silent.requests.filter(({ url }) => url?.includes(unplaced))).toHaveLength(1)
  await gateway.call('PUT', `${projects}/${placed}`, { name: 'in time' })
  expect(await nextEvent()).toMatchObject({ project_id: placed, event: { name: 'in time' } })
  answer()
  expect(await nextEvent()).toMatchObject({ project_id: unplaced, event: { name: 'renamed' } })
})

test('one request links two ports of two computes, or leaves nothing', async () => {
  const gateway = await twoComputes()
  const ends = await Promise.all(
    ['c0', 'c1'].map(async (compute_id) => {
      const project_id = await createProject(gateway, { compute_id })
      const { node_id } = await gateway.call('POST', `${projects}/${project_id}/pc/nodes`, { name: 'PC1' })
      return { project_id, node_type: 'pc', node_id, adapter_number: 0, port_number: 0 }
    }),
  )
  const [a, b] = ends
  const wrong = await gateway.fetch('POST', '/v2/links', { nodes: [a, { ...b, port_number: 7 }] })
  expect(wrong.status).toBe(404)
  const nio = `${projects}/${a?.project_id}/pc/nodes/${a?.node_id}/adapters/0/ports/0/nio`
  expect((await gateway.fetch('GET', nio)).status).toBe(404)
  expect((await gateway.members[1]?.agent.host.ports())?.udp_ports).toEqual([])
  const link = await gateway.call<{ nodes: { nio: { lport: number; rport: number } }[] }>('POST', '/v2/links', {
    nodes: ends,
  })
  expect(link.nodes[0]?.nio.rport).toBe(link.nodes[1]?.nio.lport)
  expect(link.nodes[1]?.nio.rport).toBe(link.nodes[0]?.nio.lport)
  expect((await gateway.fetch('POST', '/v2/links', { nodes: ends })).status).toBe(409)
  expect((await gateway.fetch('POST', '/v2/links', { nodes: [a, a] })).status).toBe(400)
})

type Line = Record<string, unknown>

async function feedOf(gateway: TestGateway, signal: AbortSignal, query = ''): Promise<() => Promise<Line>> {
  const { body } = await gateway.fetch('GET', `/v2/compute/notifications${query}`, undefined, { signal })
  const reader = (body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let rest = ''
  return async () => {
    while (!rest.includes('\n')) rest += decoder.decode((await reader.read()).value)
    const [line = '', ...more] = rest.split('\n')
    rest = more.join('\n')
    return JSON.parse(line) as Line
  }
}
