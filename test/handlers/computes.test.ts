import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, inject, onTestFinished, test } from 'vitest'
import { base, body, del, newPc, newProject, notByWorker, post, put, send } from '../support/api.ts'
import { figure, parseExposition } from '../support/exposition.ts'
import { type Line, openFeed, openSocketFeed } from '../support/feed.ts'

const computes = '/v2/computes'
const bytesOf = (text: string) => new TextEncoder().encode(text)

/** A compute of the same version as the service, that answers everything else by `answer`; its input. */
async function newCompute(answer: RequestListener, more: object = {}) {
  const server = createServer((req, res) => {
    if (req.url === '/v2/compute/capabilities') {
      res.setHeader('Content-Type', 'application/json')
      res.end(JSON.stringify({ version: '0.0.0-test', platform: 'linux', node_types: ['pc', 'iou'] }))
    } else if (req.url === '/v2/compute/notifications') {
      const event = { cpu_usage_percent: 1, memory_usage_percent: 2 }
      res.writeHead(200, { 'Content-Type': 'application/json' })
      res.write(`${JSON.stringify({ action: 'ping', event })}\n`)
    } else answer(req, res)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const compute_id = crypto.randomUUID()
  onTestFinished(async () => {
    await del(`${computes}/${compute_id}`)
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  const input = { compute_id, protocol: 'http', host: '127.0.0.1', port, ...more }
  return { compute_id, port, input, path: `${computes}/${compute_id}` }
}

const unanswered: RequestListener = (_, res) => void res.writeHead(404).end()

async function read(req: IncomingMessage): Promise<string> {
  let text = ''
  for await (const bytes of req) text += String(bytes)
  return text
}

/** A feed that lost events says so: `resync`, or a warning with the number of events. */
const hasLost = (line: Line | undefined) => line?.action === 'resync' || line?.event.dropped !== undefined

/** What three feeds tell of a compute that comes and goes and of a pc; undefined when one lost events. */
async function heardByAll(): Promise<Line[][] | undefined> {
  const feeds = [
    await openFeed('/v2/notifications'),
    await openFeed('/v2/notifications', { accept: 'text/event-stream' }),
    await openSocketFeed('/v2/notifications/ws'),
  ]
  for (const feed of feeds) expect(await feed.line()).toMatchObject({ action: 'ping' })
  const { input, path, compute_id } = await newCompute(unanswered, { user: 'anna', password: 'geheim' })
  const last = `pc-${compute_id}`
  // Read at once: other tests fill the queue of a feed that nobody reads.
  const read = async (feed: (typeof feeds)[number]) => {
    const lines: Line[] = []
    while (lines.at(-1)?.event?.name !== last && !hasLost(lines.at(-1))) lines.push(await feed.next())
    return lines
  }
  const reading = Promise.all(feeds.map(read))
  await post(computes, input)
  await put(path, { name: 'renamed' })
  await del(path)
  const project = await newProject()
  await newPc(project, { name: last })
  const heard = await reading
  if (heard.some((lines) => hasLost(lines.at(-1)))) return undefined
  return heard.map((lines) =>
    lines.filter((it) => [it.project_id, it.event.compute_id].some(isOneOf(project.id, compute_id))),
  )
}

const isOneOf =
  (...wanted: string[]) =>
  (it: unknown) =>
    wanted.includes(String(it))

test('the feed of the service has events of projects and of computes, by every transport', async () => {
  const heard = (await heardByAll()) ?? (await heardByAll()) ?? (await heardByAll())
  expect(heard).toHaveLength(3)
  for (const found of heard ?? []) {
    const actions = found.map(({ action }) => action)
    expect(actions.at(-1)).toBe('node.created')
    expect(actions.at(-2)).toBe('compute.deleted')
    expect(found.at(-2)).toMatchObject({ event: { name: 'renamed', user: 'anna' } })
    expect(found.at(-2)?.seq).toBeUndefined()
    expect(JSON.stringify(found)).not.toContain('geheim')
  }
  const plain = await send('/v2/notifications/ws')
  expect(plain.status).toBe(404)
})

test('a compute is registered, read, listed, changed and deleted', async () => {
  const { input, path, port, compute_id } = await newCompute(unanswered, { user: 'anna', password: 'geheim' })
  const answer = await post(computes, input)
  expect([answer.status, answer.headers.get('x-route')]).toEqual([201, computes])
  const shown = await body(answer)
  expect(shown).toEqual({
    compute_id,
    name: `http://anna@127.0.0.1:${port}`,
    protocol: 'http',
    host: '127.0.0.1',
    port,
    user: 'anna',
    connected: true,
    accepts_projects: true,
    weight: 1,
    labels: [],
    cpu_usage_percent: shown.cpu_usage_percent,
    memory_usage_percent: shown.memory_usage_percent,
    // Clients of this service call a pc vpcs.
    capabilities: { version: '0.0.0-test', platform: 'linux', node_types: ['vpcs', 'iou'] },
    last_error: null,
  })
  expect((await post(computes, { ...input, name: 'ignored' })).status).toBe(201)
  expect(await body(send(path.toUpperCase().replace(computes.toUpperCase(), computes)))).toMatchObject({ compute_id })
  expect(await body<unknown[]>(send(computes))).toContainEqual(expect.objectContaining({ compute_id, user: 'anna' }))
  const changed = await put(path, { name: `lab ${port}`, compute_id: 'other' })
  expect([changed.status, await body(changed)]).toEqual([
    200,
    expect.objectContaining({ name: `lab ${port}`, compute_id }),
  ])
  const taken = await post(computes, { ...input, compute_id: crypto.randomUUID(), name: `lab ${port}` })
  expect(taken.status).toBe(409)
  const all = await (await send(computes)).text()
  expect(all).not.toContain('geheim')
  expect((await del(path)).status).toBe(204)
  expect((await del(path)).status).toBe(204)
  expect((await send(path)).status).toBe(404)
  expect((await put(path, {})).status).toBe(404)
})

const good = { protocol: 'http', host: '127.0.0.1', port: 1 }
test.for([
  [{}, /^protocol: missing/],
  [{ ...good, protocol: 'ftp' }, /^protocol: expected "http" or "https"/],
  [{ ...good, port: 0 }, /^port: expected an integer from 1 to 65535/],
  [{ ...good, port: '80' }, /^port: /],
  [{ ...good, host: '' }, /^host: expected a host name/],
  [{ ...good, host: '..' }, /^host: expected a host name/],
  [{ ...good, host: 'anna@lab' }, /^host: expected a host name/],
  [{ ...good, host: 'lab/x' }, /^host: expected a host name/],
  [{ ...good, host: '300.1.1.1' }, /^host: expected a host name/],
  [{ ...good, host: '169.254.169.254' }, /^host: .*no compute can have it/],
  [{ ...good, host: '[fe80::1]' }, /^host: .*no compute can have it/],
  [{ ...good, host: '2852039166' }, /^host: .*no compute can have it/],
  [{ ...good, compute_id: 'a/b' }, /^compute_id: expected a string of 1 to 100 letters/],
  [{ ...good, compute_id: '..' }, /^compute_id: /],
  [{ ...good, compute_id: 'x'.repeat(101) }, /^compute_id: /],
  [{ ...good, name: 'a\nb' }, /^name: /],
  [{ ...good, user: 'a:b' }, /^user: .*without ":"/],
  [{ ...good, password: ['geheim'] }, /^password: expected .*, got another value$/],
  [{ ...good, colour: 'red' }, /^colour: unknown field/],
] as const)('%j is refused', async ([input, message]) => {
  const answer = await post(computes, input)
  expect([answer.status, (await body<{ message: string }>(answer)).message]).toEqual([
    400,
    expect.stringMatching(message),
  ])
})

test.for(['local', 'vm', 'Endpoint'])('the id %s is reserved', async (compute_id) => {
  expect((await post(computes, { ...good, compute_id })).status).toBe(409)
})

notByWorker('the service is a compute of its own', async () => {
  expect(await body(send(`${computes}/local`))).toMatchObject({
    compute_id: 'local',
    name: 'this',
    connected: true,
    cpu_usage_percent: expect.any(Number),
    memory_usage_percent: expect.any(Number),
    capabilities: { version: expect.any(String), node_types: expect.arrayContaining(['vpcs']) },
    last_error: null,
  })
  expect((await body<{ compute_id: string }[]>(send(computes)))[0]).toMatchObject({ compute_id: 'local' })
  expect((await put(`${computes}/local`, { name: 'x' })).status).toBe(409)
  expect((await del(`${computes}/local`)).status).toBe(409)
  const project = await newProject()
  const list = await send(`${computes}/local/projects/${project.id}/files`)
  expect([list.status, list.headers.get('x-route')]).toEqual([200, `${computes}/{compute_id}/{emulator}/{action}`])
  // An alias works in what is handed on, and a status is that of the compute.
  const pc = await post(`${computes}/local/projects/${project.id}/vpcs/nodes`, { name: 'PC' })
  expect([pc.status, await body(pc)]).toEqual([201, expect.objectContaining({ name: 'PC' })])
  const missing = await send(`${computes}/local/machine-emulator/images/nothing.img`)
  expect([missing.status, await body(missing)]).toEqual([
    ...[
      409,
      {
        message: expect.stringContaining('nothing.img'),
        status: 409,
        image: 'nothing.img',
        exception: 'ImageMissingError',
      },
    ],
  ])
  expect((await send(`${computes}/local/nowhere/at/all`)).status).toBe(404)
  const path = `${computes}/local/projects/${project.id}/files/a%20b/c.txt`
  expect((await send(path, { method: 'POST', body: bytesOf('text') })).status).toBe(200)
  expect(await (await send(`${project.v2}/files/a%20b/c.txt`)).text()).toBe('text')
  const feed = await openFeed(`${computes}/local/projects/${project.id}/notifications`)
  expect(await feed.line()).toMatchObject({ action: 'ping' })
  await del(project.v2)
  expect(await feed.next()).toMatchObject({ action: 'project.closed' })
})

test('a request is handed on with its query and body, and its answer is returned unchanged', async () => {
  const { path, input } = await newCompute((req, res) => {
    void read(req).then((text) => {
      res.writeHead(201, { 'Content-Type': 'application/json', 'Set-Cookie': 'a=b', ETag: '"1"' })
      res.end(JSON.stringify({ asked: `${req.method} ${req.url}`, text, client: req.headers.authorization ?? null }))
    })
  })
  expect((await post(computes, input)).status).toBe(201)
  const answer = await send(`${path}/iou/images/a%2Fb?md5sum=1&x=%20`, { method: 'PUT', body: bytesOf('bytes') })
  expect([answer.status, await body(answer)]).toEqual([
    ...[201, { asked: 'PUT /v2/compute/iou/images/a%2Fb?md5sum=1&x=%20', text: 'bytes', client: null }],
  ])
  expect([answer.headers.get('etag'), answer.headers.get('set-cookie')]).toEqual(['"1"', null])
  expect((await send(`${path}/iou/x`, { method: 'DELETE' })).status).toBe(405)
})

test('the images of a compute are sorted by name', async () => {
  const lists: Record<string, unknown> = {
    '/v2/compute/iou/images': [{ filename: 'b' }, { filename: 'B' }, { filename: 'a', filesize: 1 }],
    '/v2/compute/docker/images': [{ image: 'z' }, { image: 'y' }],
    '/v2/compute/pc/images': { message: 'none' },
  }
  const { path, input } = await newCompute((req, res) => {
    const list = lists[req.url ?? '']
    res.writeHead(list === undefined ? 404 : 200, { 'Content-Type': 'application/json' })
    res.end(JSON.stringify(list ?? { message: 'There is nothing', status: 404 }))
  })
  await post(computes, input)
  expect(await body(send(`${path}/iou/images`))).toEqual([
    { filename: 'B' },
    { filename: 'a', filesize: 1 },
    { filename: 'b' },
  ])
  expect(await body(send(`${path}/docker/images`))).toEqual([{ image: 'y' }, { image: 'z' }])
  expect((await send(`${path}/pc/images`)).status).toBe(502)
  const nothing = await send(`${path}/other/images`)
  expect([nothing.status, await body(nothing)]).toEqual([404, { message: 'There is nothing', status: 404 }])
})

notByWorker('ports, and where a compute can be asked directly', async () => {
  expect(await body(send(`${computes}/local/ports`))).toMatchObject({
    ...{ console_port_range: [expect.any(Number), expect.any(Number)], udp_ports: expect.any(Array) },
  })
  const place = await body(send(`${computes}/endpoint/local/vpcs/nodes/a%2Fb?x=1`))
  expect(place).toEqual({ endpoint: 'http://127.0.0.1:3080/v2/compute/pc/nodes/a%2Fb' })
  expect((await send(`${computes}/endpoint/nobody/pc/nodes`)).status).toBe(404)
  const { input, path, compute_id } = await newCompute(unanswered, { host: '::', protocol: 'https', port: 1 })
  expect(await body(post(computes, input))).toMatchObject({ host: '::', connected: false })
  expect(await body(send(`${computes}/endpoint/${compute_id}/iou/images/x`))).toEqual({
    endpoint: 'https://[::1]:1/v2/compute/iou/images/x',
  })
  expect((await send(`${path}/ports`)).status).toBe(409)
})

test('a compute that cannot be reached is reported', async () => {
  for (const path of ['nobody/ports', 'nobody/iou/images', 'nobody/a/b']) {
    expect((await send(`${computes}/${path}`)).status).toBe(404)
  }
  const { input, path } = await newCompute((_, res) => void res.writeHead(401).end())
  await post(computes, input)
  expect((await send(`${path}/a/b`)).status).toBe(409)
  const socket = new WebSocket(`${base.replace('http', 'ws')}${computes}/local/notifications/ws`)
  const refused = new Promise<boolean>((resolve) => {
    socket.onerror = () => resolve(true)
    socket.onopen = () => resolve(false)
  })
  // At a gateway `local` is the gateway itself.
  expect(await refused).toBe(!inject('isRealWorker'))
  socket.close()
})

test('paths of one segment are handed on, too, also by a gateway to itself as the compute local', async () => {
  const at = (path: string) => `${computes}/local/${path}`
  expect(await body(send(at('version')))).toEqual(await body(send('/v2/compute/version')))
  expect(await body(send(at('capabilities?view=full')))).toEqual(await body(send('/v2/compute/capabilities?view=full')))
  const made = await post(at('projects'), { name: 'by way of local' })
  expect(made.status).toBe(201)
  const { project_id } = await body<{ project_id: string }>(made)
  const listed = await body<{ project_id: string }[]>(send(at('projects')))
  expect(listed.map((it) => it.project_id)).toContain(project_id)
  expect((await send(at(`projects/${project_id}`))).status).toBe(200)
  expect((await put(at(`projects/${project_id}`), { name: 'renamed' })).status).toBe(200)
  // What a client comes in with is given by the service itself only.
  expect((await post(at('tickets'), {})).status).toBe(404)
  expect((await send(at('nowhere'))).status).toBe(404)
  await del(`/v2/compute/projects/${project_id}`)
  const { path, input } = await newCompute((req, res) => {
    res.writeHead(200, { 'Content-Type': 'application/json' })
    res.end(JSON.stringify({ asked: `${req.method} ${req.url}` }))
  })
  await post(computes, input)
  expect(await body(send(`${path}/projects?status=all`))).toEqual({ asked: 'GET /v2/compute/projects?status=all' })
  expect(await body(post(`${path}/projects`, { name: 'x' }))).toEqual({ asked: 'POST /v2/compute/projects' })
})

notByWorker('computes are counted by state', async () => {
  const { input } = await newCompute(unanswered)
  await post(computes, input)
  const families = parseExposition(await (await send('/metrics')).text())
  expect(figure(families, 'patchbay_computes', { state: 'connected' })).toBeGreaterThanOrEqual(2)
  expect(families.get('patchbay_computes')?.samples).toHaveLength(3)
})
