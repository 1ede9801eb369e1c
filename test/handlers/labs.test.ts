import { expect, inject, test } from 'vitest'
import type { ApplianceImport } from '../../src/model/lab/appliance.ts'
import type { LabDrawing } from '../../src/model/lab/drawing.ts'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabLink } from '../../src/model/lab/link.ts'
import type { LabNode } from '../../src/model/lab/node.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import type { LabSnapshot } from '../../src/model/lab/snapshot.ts'
import { CaptureReader } from '../../src/packets/capture-reader.ts'
import { body, del, post, put, send } from '../support/api.ts'
import { openFeed, openSocketFeed } from '../support/feed.ts'
import { requireLibpcap } from '../support/require.ts'
import { testWith } from '../support/test-with.ts'

const projects = '/v2/projects'
/** Names are unique in a service, and all files of tests ask one. */
const nameOf = (what: string) => `${what} ${crypto.randomUUID().slice(0, 8)}`

async function newLab(what = 'lab'): Promise<LabProject & { at: string }> {
  const answer = await post(projects, { name: nameOf(what) })
  if (answer.status !== 201) throw new Error(await answer.text())
  const project = await body<LabProject>(answer)
  return { ...project, at: `${projects}/${project.project_id}` }
}

const newNode = async (at: string, name: string, more: object = {}): Promise<LabNode> => {
  const answer = await post(`${at}/nodes`, { name, node_type: 'pc', ...more })
  if (answer.status !== 201) throw new Error(await answer.text())
  return body<LabNode>(answer)
}

const fault = async (answer: Promise<Response>) => {
  const it = await answer
  return [it.status, it.headers.get('x-patchbay-error')]
}

test('a lab is created, found by its id and its name in any case, renamed and deleted', async () => {
  const lab = await newLab()
  expect(lab).toMatchObject({ status: 'opened', scene_width: 2000, revision: expect.any(Number) })
  const byName = `${projects}/${encodeURIComponent(lab.name.toUpperCase())}`
  expect(await body(send(byName))).toMatchObject({ project_id: lab.project_id })
  expect(await fault(post(projects, { name: lab.name.toUpperCase() }))).toEqual([409, 'name-taken'])
  const name = nameOf('renamed')
  expect(await body(put(lab.at, { name, zoom: 50 }))).toMatchObject({ name, zoom: 50 })
  expect(await fault(send(byName))).toEqual([404, 'no-such-project'])
  const listed = async () => (await body<LabProject[]>(send(projects))).find((it) => it.project_id === lab.project_id)
  expect(await listed()).toMatchObject({ name, zoom: 50, status: 'opened', counts: { nodes: 0, links: 0 } })
  expect((await del(`${projects}/${encodeURIComponent(name)}`)).status).toBe(204)
  expect(await listed()).toBeUndefined()
  expect(await fault(send(lab.at))).toEqual([404, 'no-such-project'])
})

test('a lab is created with the id that is given, once', async () => {
  const project_id = crypto.randomUUID()
  const made = await post(projects, { name: nameOf('given'), project_id: project_id.toUpperCase() })
  expect([made.status, (await body<LabProject>(made)).project_id]).toEqual([201, project_id])
  expect(await fault(post(projects, { name: nameOf('given'), project_id }))).toEqual([409, 'project-exists'])
  expect(await fault(post(projects, { name: nameOf('given'), project_id: 'no id' }))).toEqual([400, 'invalid-request'])
  expect(await fault(post(projects, '{"name":'))).toEqual([400, 'invalid-request'])
  await del(`${projects}/${project_id}`)
})

test('a node that cannot be suspended keeps running, and is shown with its true status', async () => {
  const { at } = await newLab()
  const [pc, lan] = [await newNode(at, 'PC1'), await newNode(at, 'SW', { node_type: 'switch' })]
  const statusAfter = async (node: LabNode, action: string) =>
    (await body<LabNode>(post(`${at}/nodes/${node.node_id}/${action}`))).status
  expect(await statusAfter(pc, 'suspend')).toBe('stopped')
  expect(await statusAfter(pc, 'start')).toBe('started')
  expect([await statusAfter(pc, 'suspend'), await statusAfter(lan, 'suspend')]).toEqual(['suspended', 'started'])
  const kinds = await body<{ name: string; can_be_suspended: boolean }[]>(send('/v2/kinds'))
  const able = kinds.filter((it) => it.can_be_suspended).map(({ name }) => name)
  expect(able).toContain('pc')
  expect(able).not.toContain('switch')
  expect((await post(`${at}/nodes/suspend`)).status).toBe(204)
  const shown = await body<LabNode[]>(send(`${at}/nodes`))
  expect(shown.map(({ name, status }) => [name, status])).toEqual([
    ['PC1', 'suspended'],
    ['SW', 'started'],
  ])
})

test('half a surrogate pair is refused in every name and text, and changes nothing', async () => {
  const { at } = await newLab()
  const [pc, other] = [await newNode(at, 'PC1'), await newNode(at, 'PC2')]
  const bad = 'x\ud800y'
  const link = await body<LabLink>(post(`${at}/links`, { nodes: ['PC1:eth0', 'PC2:eth0'] }))
  const drawing = await body<LabDrawing>(post(`${at}/drawings`, { svg: '<svg/>' }))
  const linkAt = `${at}/links/${link.link_id}`
  const refused: readonly (readonly [string, Promise<Response>])[] = [
    ['name', post(projects, { name: bad })],
    ['name', put(at, { name: bad })],
    ['variables[0].value', put(at, { variables: [{ name: 'a', value: bad }] })],
    ['name', post(`${at}/nodes`, { name: bad, node_type: 'pc' })],
    ['name', put(`${at}/nodes/${pc.node_id}`, { name: bad })],
    ['labels.site', put(`${at}/nodes/${pc.node_id}`, { labels: { site: bad } })],
    ['properties.startup_script', put(`${at}/nodes/${pc.node_id}`, { properties: { startup_script: bad } })],
    ['name', put(linkAt, { name: bad })],
    ['nodes[1].label.text', put(linkAt, { nodes: [link.nodes[0], { ...link.nodes[1], label: { text: bad } }] })],
    ['svg', post(`${at}/drawings`, { svg: bad })],
    ['svg', put(`${at}/drawings/${drawing.drawing_id}`, { svg: bad })],
    ['name', post(`${at}/snapshots`, { name: bad })],
    ['name', post('/v2/templates', { name: bad, template_type: 'pc' })],
    ['anything', post('/v2/templates', { name: nameOf('template'), template_type: 'pc', anything: bad })],
    ['name', post('/v2/compute/projects', { name: bad })],
    ['document', put(`${at}/topology`, { document: `lab: ${bad}` })],
  ]
  for (const [field, answer] of refused) {
    const { message } = await body<{ message: string }>(answer)
    expect([(await answer).status, message]).toEqual([
      400,
      `${field}: \\ud800 is half of a surrogate pair, which UTF-8 does not have: leave it out, or write both halves`,
    ])
  }
  const names = (await body<LabNode[]>(send(`${at}/nodes`))).map(({ name }) => name)
  expect(names).toEqual([pc.name, other.name])
})

test('nodes have names and ports, and are linked, moved, copied and deleted by them', async () => {
  const { at } = await newLab()
  const pcs = [await newNode(at, 'PC1'), await newNode(at, 'PC1')]
  expect(pcs.map(({ name }) => name)).toEqual(['PC1', 'PC2'])
  const link = await body<LabLink>(post(`${at}/links`, { nodes: ['PC1:e0', 'pc2:Ethernet0'] }))
  expect(link.nodes.map(({ node_id }) => node_id)).toEqual(pcs.map(({ node_id }) => node_id))
  expect(await fault(post(`${at}/links`, { nodes: ['PC1:e0', 'PC2:e0'] }))).toEqual([409, 'port-taken'])
  expect(await body(put(`${at}/links/${link.link_id}`, { suspend: true }))).toMatchObject({ suspend: true })
  const withLinks = await body<LabProject>(send(`${at}?links=yes`))
  expect(withLinks.counts).toMatchObject({ nodes: 2, links: 1, running: 0, worst_verdict: expect.any(String) })
  expect(await body(put(`${at}/nodes/PC1`, { x: 7, name: 'Left' }))).toMatchObject({ x: 7, name: 'Left' })
  const copy = await post(`${at}/nodes/Left/duplicate`, { x: 1, y: 2 })
  expect([copy.status, await copy.json()]).toMatchObject([201, { name: 'Left2', x: 1 }])
  expect((await del(`${at}/nodes/Left`)).status).toBe(204)
  expect(await body(send(`${at}/links`))).toEqual([])
  expect(await body(send(`${at}/stats`))).toMatchObject({ nodes: 2, links: 0 })
  await del(at)
})

test('a copy of a lab has the files of the lab and of its nodes', async () => {
  const { at, project_id } = await newLab()
  const node = await newNode(at, 'PC1')
  const lan = await newNode(at, 'SW', { node_type: 'switch' })
  await post(`${at}/files/README.txt`, 'read me')
  await post(`${at}/files/notes/é/plan.txt`, 'a plan')
  await post(`${at}/files/project-files/tmp/scratch`, 'transient')
  for (const { node_id } of [node, lan]) await post(`${at}/nodes/${node_id}/files/own.txt`, `of ${node_id}`)
  const copy = await body<LabProject>(post(`${at}/duplicate`, { name: nameOf('copy') }))
  const copyAt = `${projects}/${copy.project_id}`
  await post(`${copyAt}/open`)
  const textOf = async (path: string) => (await send(`${copyAt}/${path}`)).text()
  expect([await textOf('files/README.txt'), await textOf('files/notes/é/plan.txt')]).toEqual(['read me', 'a plan'])
  expect(await textOf('nodes/PC1/files/own.txt')).toBe(`of ${node.node_id}`)
  expect(await textOf('nodes/SW/files/own.txt')).toBe(`of ${lan.node_id}`)
  expect((await send(`${copyAt}/files/project-files/tmp/scratch`)).status).toBe(404)
  const files = await body<{ path: string }[]>(send(`/v2/compute/projects/${copy.project_id}/files`))
  expect(files.filter(({ path }) => path.includes(node.node_id) || path.includes(project_id))).toEqual([])
  for (const it of [at, copyAt]) await del(it)
})

test('a name with a slash is refused for a new project and for a rename', async () => {
  const { at } = await newLab()
  const [name, message] = [`${nameOf('up')}/down`, 'name: the name of a project cannot contain / or \\']
  for (const answer of [
    await post(projects, { name }),
    await put(at, { name }),
    await post(`${at}/duplicate`, { name }),
    await post('/v2/compute/projects', { name }),
  ])
    expect([answer.status, (await body<{ message: string }>(answer)).message]).toEqual([403, message])
  await del(at)
})

test('the message about a missing file has its whole path', async () => {
  const { at } = await newLab()
  const path = `${'configurations-of-the-core/'.repeat(8)}router.cfg`
  const { message } = await body<{ message: string }>(send(`${at}/files/${path}`))
  expect(message).toContain(`there is no file "${path}"`)
  await del(at)
})

test('a locked node or drawing is not deleted until it is unlocked', async () => {
  const { at } = await newLab()
  await newNode(at, 'PC1', { locked: true })
  const { drawing_id } = await body<LabDrawing>(post(`${at}/drawings`, { svg: '<svg/>', locked: true }))
  const locked = [`${at}/nodes/PC1`, `${at}/drawings/${drawing_id}`]
  for (const path of locked) {
    expect(await fault(del(path))).toEqual([409, 'locked'])
    expect(await body(put(path, { locked: false }))).toMatchObject({ locked: false })
    expect((await del(path)).status).toBe(204)
  }
  await del(at)
})

test('all nodes are started and stopped by one request, and are shown as they are', async () => {
  const { at } = await newLab()
  await newNode(at, 'PC1')
  await newNode(at, 'PC2')
  const states = async () => (await body<LabNode[]>(send(`${at}/nodes`))).map(({ status }) => status)
  expect((await post(`${at}/nodes/start`)).status).toBe(204)
  expect(await states()).toEqual(['started', 'started'])
  expect(await body(post(`${at}/nodes/PC2/stop`))).toMatchObject({ status: 'stopped' })
  expect(await states()).toEqual(['started', 'stopped'])
  await del(at)
})

test('a closed lab keeps its nodes and links, and refuses changes of them', async () => {
  const { at, name } = await newLab()
  await newNode(at, 'PC1')
  expect((await post(`${at}/close`)).status).toBe(204)
  expect(await body(send(at))).toMatchObject({ status: 'closed' })
  const listed = (await body<LabProject[]>(send(projects))).find((it) => it.name === name)
  expect(listed).toMatchObject({ status: 'closed' })
  expect((await body<LabNode[]>(send(`${at}/nodes`))).map((node) => node.name)).toEqual(['PC1'])
  expect(await fault(post(`${at}/nodes`, { name: 'PC2', node_type: 'pc' }))).toEqual([404, 'project-closed'])
  expect((await post(`${at}/open`)).status).toBe(201)
  expect((await newNode(at, 'PC2')).name).toBe('PC2')
  await del(at)
})

test('a project that only a compute has is listed, and becomes a lab when it is opened', async () => {
  const older = await post('/v2/compute/projects', { name: nameOf('older') })
  const { project_id } = await body<{ project_id: string }>(older)
  const listed = (await body<LabProject[]>(send(projects))).find((it) => it.project_id === project_id)
  expect(listed).toMatchObject({ status: 'closed' })
  expect(await body(send(`${projects}/${project_id}`))).toEqual(listed)
  expect(await fault(put(`${projects}/${project_id}`, { zoom: 50 }))).toEqual([409, 'conflict'])
  // A new one of its id would hide what it has.
  const anew = { name: nameOf('anew'), project_id, compute_id: older.headers.get('x-patchbay-compute') ?? 'local' }
  expect(await fault(post(projects, anew))).toEqual([409, 'project-exists'])
  expect((await post(`${projects}/${project_id}/open`)).status).toBe(201)
  await newNode(`${projects}/${project_id}`, 'PC1')
  await del(`${projects}/${project_id}`)
})

test('a project that only a compute has can be deleted, as it is listed', async () => {
  const { project_id } = await body<{ project_id: string }>(post('/v2/compute/projects', { name: nameOf('theirs') }))
  const at = `${projects}/${project_id}`
  expect((await del(at)).status).toBe(204)
  const ids = (await body<LabProject[]>(send(projects))).map((it) => it.project_id)
  expect(ids).not.toContain(project_id)
  expect((await send(`/v2/compute/projects/${project_id}`)).status).toBe(404)
  expect(await fault(del(at))).toEqual([404, 'no-such-project'])
})

test('drawings are kept', async () => {
  const { at } = await newLab()
  const drawing = await body<LabDrawing>(post(`${at}/drawings`, { svg: '<svg/>', x: 3 }))
  expect(await body(put(`${at}/drawings/${drawing.drawing_id}`, { y: 4 }))).toMatchObject({ x: 3, y: 4 })
  expect(await body<LabDrawing[]>(send(`${at}/drawings`))).toHaveLength(1)
  expect((await del(`${at}/drawings/${drawing.drawing_id}`)).status).toBe(204)
  await del(at)
})

test('templates of users are available for every lab', async () => {
  const { at } = await newLab()
  const name = nameOf('Web')
  await post('/v2/templates', { name, template_type: 'pc', startup_script: 'ip 10.0.0.9/24' })
  const unchanged = await put(`/v2/templates/${encodeURIComponent(name)}`, { name: null, symbol: null, usage: null })
  expect(await body(unchanged)).toMatchObject({ name, symbol: 'pc', usage: '' })
  const second = await body<{ name: string; template_id: string }>(post('/v2/templates', { name, template_type: 'pc' }))
  expect(second.name).toBe(`${name}-2`)
  await del(`/v2/templates/${second.template_id}`)
  const made = await body<LabNode>(post(`${at}/templates/${encodeURIComponent(name)}`, { x: 1, y: 2 }))
  expect(made).toMatchObject({ x: 1, properties: { startup_script: 'ip 10.0.0.9/24' } })
  expect((await del(`/v2/templates/${encodeURIComponent(name)}`)).status).toBe(204)
  expect(await fault(post(`${at}/templates/${encodeURIComponent(name)}`, { x: 1, y: 2 }))).toEqual([
    404,
    'no-such-template',
  ])
  const symbol = crypto.randomUUID()
  expect((await post(`/v2/symbols/${symbol}/raw`, '<svg width="12" height="7"></svg>')).status).toBe(204)
  expect(await body(send(`/v2/symbols/${symbol}/dimensions`))).toEqual({ width: 12, height: 7 })
  await del(at)
})

test('what is not about one lab is answered, also where each lab has a process of its own', async () => {
  const { at } = await newLab()
  await newNode(at, 'PC1')
  const job = await body<LabJob>(post(`${at}/jobs`, { action: 'start' }))
  expect(await body(send('/v2/jobs'))).toContainEqual(expect.objectContaining({ job_id: job.job_id }))
  expect(await body(send(`/v2/jobs/${job.job_id}`))).toMatchObject({ project_id: job.project_id })
  expect((await del(`/v2/jobs/${job.job_id}`)).status).toBe(204)
  const appliance = { name: nameOf('Firewall'), category: 'firewall', qemu: { ram: 64, arch: 'x86_64' }, images: [] }
  const made = await post('/v2/templates/import', { text: JSON.stringify({ ...appliance, versions: [] }) })
  expect(made.status).toBe(201)
  const { template } = await body<ApplianceImport>(made)
  expect((await del(`/v2/templates/${template.template_id}`)).status).toBe(204)
  // There is no disk with projects of others.
  expect((await post(`${projects}/load`, { path: '/other.gns3' })).status).toBe(501)
  await del(at)
})

for (const [transport, open] of [
  ['JSON lines', openFeed],
  ['a websocket', openSocketFeed],
] as const) {
  test(`the feed of a lab by ${transport} has its edits and the events of its computes, and ends with the lab`, async () => {
    const { at } = await newLab()
    const feed = await open(`${at}/notifications`)
    expect(await feed.line()).toMatchObject({ action: 'ping' })
    await newNode(at, 'PC1')
    await put(`${at}/nodes/PC1`, { x: 9 })
    await post(`${at}/presence`, { selection: ['PC1'] })
    await post(`${at}/nodes/PC1/start`)
    const seen: string[] = []
    const until = async (wanted: (line: { action: string; event: Record<string, unknown> }) => boolean) => {
      for (;;) {
        const line = await feed.next()
        seen.push(line.action)
        if (wanted(line)) return
      }
    }
    await until(({ action }) => action === 'node.created')
    await until(({ action, event }) => action === 'node.updated' && event.x === 9)
    await until(({ action }) => action === 'presence')
    await until(({ action, event }) => action === 'node.updated' && event.status === 'started')
    await del(at)
    await until(({ action }) => action === 'project.deleted')
    expect(await feed.line()).toBeUndefined()
  })
}

for (const [transport, open] of [
  ['JSON lines', openFeed],
  ['a websocket', openSocketFeed],
] as const) {
  test(`a feed of a lab by ${transport} goes on while the lab is closed, and has its opening, starts and restores`, async () => {
    const { at } = await newLab()
    await newNode(at, 'PC1')
    const taken = await body<LabSnapshot>(post(`${at}/snapshots`, { name: 'before' }))
    const feed = await open(`${at}/notifications`)
    expect(await feed.line()).toMatchObject({ action: 'ping' })
    const until = async (action: string, event: object) => {
      for (;;) {
        const line = await feed.next()
        if (line.action === action && (action !== 'node.updated' || line.event.status === 'started'))
          return expect(line.event).toMatchObject(event)
      }
    }
    await post(`${at}/close`)
    await until('project.closed', { status: 'closed' })
    const late = await open(`${at}/notifications`)
    expect(await late.line()).toMatchObject({ action: 'ping' })
    const name = nameOf('renamed')
    await put(at, { name })
    await until('project.updated', { name, status: 'closed' })
    await post(`${at}/open`)
    await until('project.opened', { status: 'opened' })
    await post(`${at}/nodes/PC1/start`)
    await until('node.updated', { name: 'PC1' })
    await post(`${at}/snapshots/${taken.snapshot_id}/restore`)
    const { snapshot_id } = taken
    await until('snapshot.restored', { snapshot_id, name: 'before' })
    await post(`${at}/close`)
    await until('project.closed', { status: 'closed' })
    await del(at)
    await until('project.deleted', { name })
    expect(await feed.line()).toBeUndefined()
    for (;;) if ((await late.line()) === undefined) break
  })
}

test('files and configurations of nodes are written and read at their computes', async () => {
  const { at } = await newLab()
  await newNode(at, 'PC1')
  expect((await post(`${at}/nodes/PC1/files/notes/a%20b.txt`, 'kept')).status).toBe(200)
  expect(await (await send(`${at}/nodes/PC1/files/notes/a%20b.txt`)).text()).toBe('kept')
  expect(await body(send(`${at}/nodes/PC1/files`))).toContainEqual({ path: 'notes/a b.txt', size: 4 })
  expect((await send(`${at}/nodes/nobody/files`)).status).toBe(404)
  expect((await post(`${at}/nodes/PC1/files/..%2fPC2%2fnotes`, 'not there')).status).toBe(403)
  const written = await send(`${at}/nodes/PC1/config`, { method: 'PUT', body: 'ip 10.0.0.1/24\n' })
  const read = await send(`${at}/nodes/PC1/config`)
  expect([written.status, await read.text()]).toEqual([204, 'ip 10.0.0.1/24\n'])
  expect(read.headers.get('etag')).toBe(written.headers.get('etag'))
  await del(at)
})

test('a node whose kind has no console says so', async () => {
  const { at } = await newLab()
  await newNode(at, 'SW', { node_type: 'switch' })
  for (const answer of [
    await send(`${at}/nodes/SW/console/log`),
    await post(`${at}/nodes/SW/console/expect`, { expect: 'x', within_s: 1 }),
  ]) {
    const { message } = await body<{ message: string }>(answer)
    expect([answer.status, message]).toEqual([409, expect.stringContaining('SW is a switch node')])
  }
  await del(at)
})

testWith(requireLibpcap())('filters of a link are checked by the computes of its nodes, without effect', async () => {
  const { at } = await newLab()
  const places = inject('computes') < 2 ? ['local', 'local'] : ['c0', 'c1']
  for (const [index, compute_id] of places.entries()) await newNode(at, `PC${index + 1}`, { compute_id })
  const link = await body<LabLink>(post(`${at}/links`, { nodes: ['PC1:e0', 'PC2:e0'] }))
  const check = (filters: object) => post(`${at}/links/${link.link_id}/check_filters`, filters)
  expect((await check({ bpf: ['tcp port 80'] })).status).toBe(204)
  const refused = await check({ bpf: ['tcp prot 80'] })
  expect([refused.status, (await body<{ message: string }>(refused)).message]).toEqual([
    400,
    expect.stringMatching(/^filters\.bpf: .* at character 5 \(near "prot"\)/),
  ])
  expect(await body(send(`${at}/links/${link.link_id}`))).toMatchObject({ filters: {} })
  expect(await fault(post(`${at}/links/${crypto.randomUUID()}/check_filters`, {}))).toEqual([404, 'no-such-link'])
  await del(at)
})

test('a lab has nodes on each compute that is named, and asks the one that has a node', async () => {
  if (inject('computes') < 2) return
  const { at, project_id } = await newLab()
  for (const compute_id of ['c0', 'c1']) {
    const node = await newNode(at, `on-${compute_id}`, { compute_id })
    expect(node.compute_id).toBe(compute_id)
    expect((await send(`/v2/compute/projects/${project_id}/pc/nodes/${node.node_id}`)).status).toBe(200)
  }
  const link = await post(`${at}/links`, { nodes: ['on-c0:e0', 'on-c1:e0'] })
  expect(link.status).toBe(201)
  await del(at)
})

test('links of a lab are watched as one capture, each under its name', async () => {
  const { at } = await newLab()
  expect((await post(`${at}/capture/stream`)).status).toBe(409)
  for (const name of ['PC1', 'PC2'])
    await newNode(at, name, { properties: { startup_script: 'ip 10.0.0.1/24\nping 10.0.0.2 -c 1\n' } })
  const { link_id } = await body<LabLink>(post(`${at}/links`, { name: 'first', nodes: ['PC1:e0', 'PC2:e0'] }))
  expect(await fault(post(`${at}/capture/stream`, { links: [crypto.randomUUID()] }))).toEqual([404, 'no-such-link'])
  expect((await post(`${at}/capture/stream`, { links: [] })).status).toBe(400)
  const answer = await post(`${at}/capture/stream`, { links: [link_id] })
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/x-pcapng'])
  await post(`${at}/nodes/start`)
  const reader = new CaptureReader()
  for await (const piece of answer.body as ReadableStream<Uint8Array>) if (reader.push(piece).length > 0) break
  expect(reader.interfaces).toMatchObject([{ name: 'first', linkType: 1 }])
})
