import { expect, inject, test } from 'vitest'
import { body, newPc, newProject, post, put, send } from '../support/api.ts'
import { openFeed } from '../support/feed.ts'

const projects = '/v2/compute/projects'

test('a project has all members with view=full', async () => {
  const { id, v1, v2 } = await newProject({ name: 'lab', variables: [{ name: 'AS', value: '1' }] })
  const full = { ...(await body(send(v1))), status: 'open', variables: [{ name: 'AS', value: '1' }] }
  expect(await body(send(`${v2}?view=full`))).toEqual(full)
  // The list of a gateway also names the compute of each.
  expect(await body<object[]>(send(`${projects}?view=full`))).toContainEqual(expect.objectContaining(full))
  expect(await body(put(`${v2}?view=full`, { name: 'other' }))).toEqual({ ...full, name: 'other' })
  expect(Object.keys(await body(send(v2))).sort()).toEqual(['name', 'project_id', 'variables'])
  const again = await post(`${projects}?view=full`, { project_id: id, name: 'ignored' })
  expect([again.status, await again.json()]).toEqual([200, { ...full, name: 'other' }])
  expect((await post(`${projects}?view=full`, { name: 'new' })).status).toBe(201)
  expect((await send(`${v2}?view=half`)).status).toBe(400)
})

test('v2 accepts the members of a project that v1 accepts', async () => {
  const { v1, v2 } = await newProject({ name: 'lab', temporary: true })
  expect(await body(send(v1))).toMatchObject({ temporary: true })
  expect(await body(put(`${v2}?view=full`, { temporary: false }))).toMatchObject({ name: 'lab', temporary: false })
})

test('an action answers with the node with view=full', async () => {
  const { id, path } = await newPc(await newProject())
  const rows = [
    ['start', 'started'],
    ['suspend', 'suspended'],
    ['resume', 'started'],
    ['reload', 'started'],
    ['stop', 'stopped'],
  ] as const
  for (const [action, status] of rows) {
    const answer = await post(`${path}/${action}?view=full`)
    expect([action, answer.status]).toEqual([action, 200])
    expect(await answer.json()).toMatchObject({ node_id: id, status })
  }
})

test('v1 has no view', async () => {
  const project = await newProject()
  const { id } = await newPc(project)
  expect((await post(`${project.v1}/pc/vms/${id}/stop?view=full`)).status).toBe(204)
})

test('a create with a known id is refused with existing=refuse, else the status says that the node existed', async () => {
  const project = await newProject()
  const { id, path } = await newPc(project)
  const create = (query: string) => post(`${project.v2}/pc/nodes${query}`, { name: 'again', node_id: id })
  expect((await create('?existing=refuse')).status).toBe(409)
  expect(await body(send(path))).toMatchObject({ name: 'PC' })
  expect((await create('')).status).toBe(201)
  const known = await create('?existing=update&view=full')
  expect([known.status, await known.json()]).toEqual([200, expect.objectContaining({ node_id: id, name: 'again' })])
  expect((await post(`${project.v2}/pc/nodes?view=full&existing=refuse`, { name: 'new' })).status).toBe(201)
})

test('a feed has all members of events with view=full', async () => {
  const project = await newProject()
  const [full, usual] = await Promise.all(
    ['?view=full', ''].map((query) => openFeed(`${project.v2}/notifications${query}`)),
  )
  const { path } = await newPc(project)
  await post(`${path}/start`)
  await put(project.v2, { name: 'other' })
  const actions = ['node.created', 'node.updated', 'project.updated']
  const lines = []
  for (const action of actions) {
    const line = await full?.next()
    expect(line).toMatchObject({ action })
    lines.push(line)
    expect(await usual?.next()).not.toHaveProperty('change')
  }
  expect(lines.map((line) => line?.change)).toEqual([undefined, 'started', undefined])
  expect(lines[2]?.event).toEqual(await body(send(`${project.v2}?view=full`)))
})

test('kinds have their aliases, and their own names with view=full', async () => {
  const types = async (query: string) =>
    (await body<{ node_types: string[] }>(send(`/v2/compute/capabilities${query}`))).node_types
  expect(await types('')).toContain('vpcs')
  expect(await types('?view=full')).toContain('pc')
})

test('the load and the metrics are available as JSON', async () => {
  const percent = expect.any(Number)
  expect(await body(send('/v2/compute/load'))).toMatchObject({
    cpu_usage_percent: percent,
    memory_usage_percent: percent,
  })
  const families = await body<{ name: string }[]>(send('/v2/compute/metrics'))
  // A gateway has its own figures only.
  if (!inject('isWorker')) expect(families.map(({ name }) => name)).toContain('patchbay_projects_open')
})

test('the headers of a capture name the port and the node', async () => {
  const { path } = await newPc(await newProject(), { name: 'Pö €' })
  const port = `${path}/adapters/0/ports/0`
  const { udp_port } = await body<{ udp_port: number }>(post(`${path.replace(/\/pc\/.*/, '')}/ports/udp`))
  await post(`${port}/nio`, { type: 'nio_udp', lport: udp_port, rhost: '127.0.0.1', rport: 9 })
  const answer = await post(`${port}/capture/stream`)
  expect(decodeURIComponent(answer.headers.get('x-interface-name') ?? '')).toBe('Pö € 0/0')
  expect(decodeURIComponent(answer.headers.get('x-comment') ?? '')).toContain('Adapter 0, port 0 of the pc Pö')
  await answer.body?.cancel()
})
