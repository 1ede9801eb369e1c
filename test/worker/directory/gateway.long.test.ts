import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Compute } from '../../../src/model/compute.ts'
import { basic, bearer } from '../../support/auth-app.ts'
import { figure, parseExposition } from '../../support/exposition.ts'
import { json, listening } from '../../support/fleet.ts'
import { hangMs } from '../../support/limits.ts'
import { refusedJoiner } from '../../support/refused-joiner.ts'
import { TestService } from '../../support/service.ts'
import { adminToken, WorkerGateway } from '../../support/worker-gateway.ts'

const embedded = { 'pc.engine': 'embedded' }
const secret = 'Geheim-7f3a-of-the-compute'
const projects = '/v2/compute/projects'

const inputOf = (service: TestService, id: string) => ({
  ...{ compute_id: id, name: `Compute ${id}`, protocol: 'http', host: '127.0.0.1' },
  ...{ port: Number(new URL(service.url).port), user: 'anna', password: secret },
})

/** A project with one pc that runs; its path. */
async function lab(gateway: WorkerGateway): Promise<{ id: string; node: string }> {
  const { project_id: id } = await gateway.call<{ project_id: string }>('POST', projects, { name: 'lab' })
  const made = await gateway.call('POST', `/v1/projects/${id}/pc/vms`, { name: 'PC1' })
  await gateway.call('POST', `/v1/projects/${id}/pc/vms/${made.vm_id ?? made.node_id}/start`, {})
  return { id, node: `${projects}/${id}/pc/nodes/${made.vm_id ?? made.node_id}` }
}

/** Everything that workerd has on disk. */
async function stored(gateway: WorkerGateway): Promise<string> {
  const entries = await readdir(gateway.data, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return (await Promise.all(files.map((file) => readFile(file, 'latin1')))).join('\n')
}

test('labs run on a compute behind the Worker, which keeps its state when it is evicted, and its secrets sealed', async () => {
  const [gateway, service] = await Promise.all([
    WorkerGateway.start(),
    TestService.start({ ...embedded, user: 'anna', password: secret }),
  ])
  const shown = await gateway.call<Compute>('POST', '/v2/computes', inputOf(service, 'one'))
  expect(shown).toMatchObject({ connected: true, user: 'anna', cpu_usage_percent: expect.any(Number) })
  const figures = parseExposition(await (await gateway.fetch('GET', '/metrics')).text())
  expect(figure(figures, 'patchbay_computes', { state: 'connected' })).toBe(1)
  const feed = await gateway.open('/v2/compute/notifications/ws')
  const lines = (await gateway.fetch('GET', '/v2/compute/notifications')).body?.pipeThrough(new TextDecoderStream())
  const { id, node } = await lab(gateway)
  await feed.shows('"node.updated"')
  let told = ''
  for await (const piece of lines ?? []) {
    told += piece
    if (told.includes('node.created')) break
  }
  const console = await gateway.open(`${node}/console/ws`)
  console.send('help\r')
  await console.shows('ping')
  await console.close()
  const { ticket } = await gateway.call('POST', '/v2/compute/tickets')
  const byTicket = await gateway.open(`${node}/console/ws?ticket=${ticket}`, {})
  byTicket.send('help\r')
  await byTicket.shows('ping')

  const image = randomBytes(3 * 2 ** 20)
  const images = '/v2/compute/machine-emulator/images'
  const body = new Blob([image]).stream()
  const upload = await gateway.fetch('POST', `${images}/big.img`, undefined, { body, duplex: 'half' } as RequestInit)
  expect(upload.status).toBe(204)
  const back = await (await gateway.fetch('GET', `${images}/big.img`)).arrayBuffer()
  expect(Buffer.from(back).equals(image)).toBe(true)
  expect(await (await gateway.fetch('GET', '/docs')).text()).toContain('rapidoc')

  await gateway.restart()
  expect(await gateway.call('GET', node)).toMatchObject({ name: 'PC1', status: 'started' })
  const all = await gateway.call<Compute[]>('GET', '/v2/computes')
  expect(all).toMatchObject([{ compute_id: 'one', connected: true, capabilities: { platform: 'linux' } }])
  expect(JSON.stringify([shown, all])).not.toContain(secret)
  const disk = await stored(gateway)
  expect(disk).toContain('Compute one')
  for (const hidden of [secret, Buffer.from(secret).toString('base64')]) expect(disk).not.toContain(hidden)

  await service.kill('SIGKILL')
  expect((await gateway.fetch('GET', node)).status).toBe(503)
  const gone = await gateway.fetch('GET', `${projects}/${id}`)
  expect([gone.status, gone.headers.get('retry-after')]).toEqual([503, '5'])
  const list = await gateway.fetch('GET', projects)
  expect([await list.json(), list.headers.get('x-patchbay-unreachable')]).toEqual([[], 'Compute%20one'])
  await service.restart(Number(new URL(service.url).port))
  // Who registers it again has it tried at once.
  await gateway.call('POST', '/v2/computes', inputOf(service, 'one'))
  expect(await gateway.call('GET', projects)).toMatchObject([{ project_id: id }])
})

test('a compute joins by a tunnel, and returns when the Worker was evicted', async () => {
  const gateway = await WorkerGateway.start()
  const { token, token_id } = await gateway.call('POST', '/v2/tokens', { name: 'behind NAT', purpose: 'join' })
  const service = await TestService.start({
    ...embedded,
    ...{ 'join.url': gateway.url.replace('http', 'ws'), 'join.token': token },
  })
  const id = (await readFile(join(service.data, 'compute-id'), 'utf8')).trim()
  expect(await gateway.untilConnected(id)).toMatchObject({ protocol: 'tunnel', last_error: null })
  // The token is its own from now on.
  expect(await gateway.call('GET', '/v2/tokens')).toMatchObject([{ token_id, compute_id: id }])
  const other = await gateway.call('POST', '/v2/tokens', { name: 'another', purpose: 'join' })
  const takenBy = async () => [
    await refusedJoiner(gateway.url, token as string, 'thief'),
    await refusedJoiner(gateway.url, other.token as string, id),
  ]
  const refusals = [expect.stringContaining('belongs to another'), expect.stringContaining('joins with another token')]
  expect(await takenBy()).toEqual(refusals)
  const { node } = await lab(gateway)
  const typeHelp = async () => {
    const console = await gateway.open(`${node}/console/ws`)
    console.send('help\r')
    await console.shows('ping')
    return console
  }
  await typeHelp()
  const feed = await gateway.open('/v2/compute/notifications/ws')
  await feed.shows('"ping"')
  await gateway.restart()
  expect(await takenBy()).toEqual(refusals)
  expect(await gateway.untilConnected(id)).toMatchObject({ protocol: 'tunnel', last_error: null })
  expect(await gateway.call('GET', node)).toMatchObject({ status: 'started' })
  await (await typeHelp()).close()

  await service.kill('SIGKILL')
  const gone = await gateway.fetch('GET', node)
  expect([gone.status, gone.headers.get('retry-after')]).toEqual([503, '5'])
  await service.restart()
  await gateway.untilConnected(id)
  expect(await gateway.call('GET', node)).toMatchObject({ status: 'started' })
})

test('a request without credentials gets an error that names them, and a token has the rights of its role', async () => {
  const gateway = await WorkerGateway.start({ RATE_PER_S: '2' })
  const status = async (authorization: string, method: string, path: string, body?: unknown) =>
    (await gateway.fetch(method, path, body, { headers: { authorization } })).status
  const { token: user, token_id } = await gateway.call('POST', '/v2/tokens', { name: 'ben', role: 'operate' })
  expect(await stored(gateway)).not.toContain(user)
  expect(await status('', 'GET', projects)).toBe(401)
  expect(await status(bearer('wrong'), 'GET', projects)).toBe(401)
  expect(await status(basic('admin', adminToken), 'GET', '/v2/tokens')).toBe(200)
  expect(await status(basic('anybody', user as string), 'GET', projects)).toBe(200)
  expect(await status(bearer(user as string), 'GET', '/v2/tokens')).toBe(403)
  await gateway.restart()
  expect(await status(bearer(user as string), 'GET', projects)).toBe(200)
  const many = await Promise.all(Array.from({ length: 12 }, () => status(bearer(user as string), 'GET', projects)))
  expect(new Set(many)).toEqual(new Set([200, 429]))
  expect(await status(bearer(adminToken), 'DELETE', `/v2/tokens/${token_id}`)).toBe(204)
  // First its isolate lets it wait, as it sent too many.
  await expect.poll(() => status(bearer(user as string), 'GET', projects)).toBe(401)
})

test('without its secrets the Worker says which are needed', async () => {
  const gateway = await WorkerGateway.start({ FLEET_KEY: 'short' })
  const answer = await gateway.fetch('GET', projects)
  expect([answer.status, await answer.json()]).toMatchObject([503, { message: expect.stringContaining('FLEET_KEY') }])
})

test('clients have aliases of kinds with ALIASES', async () => {
  const wrong = await WorkerGateway.start({ ALIASES: 'vpcs' })
  expect(await (await wrong.fetch('GET', projects)).json()).toMatchObject({
    message: expect.stringMatching(/^ALIASES/),
  })
  const gateway = await WorkerGateway.start({ ALIASES: 'vpcs=pc, virtual=hypervisor' })
  const id = crypto.randomUUID()
  for (const [word, ours] of [['vpcs', 'pc'] as const, ['virtual', 'hypervisor'] as const]) {
    const answer = await gateway.fetch('GET', `${projects}/${id}/${word}/nodes`)
    expect([answer.status, answer.headers.get('x-route')]).toEqual([404, `${projects}/{project_id}/${ours}/nodes`])
  }
})

test('a list of fifty computes sends six requests at a time', async () => {
  let [open, most] = [0, 0]
  const server = createServer((req, res) => {
    const path = req.url ?? ''
    if (path.startsWith('/v2/compute/capabilities'))
      return json(res, 200, { version: '0.1.0', platform: 'linux', node_types: [] })
    if (!path.startsWith(projects)) return json(res, 200, { cpu_usage_percent: 1, memory_usage_percent: 1 })
    open += 1
    most = Math.max(most, open)
    setTimeout(() => {
      open -= 1
      json(res, 200, [])
    }, 20)
  })
  onTestFinished(() => void server.close().closeAllConnections())
  const port = await listening(server)
  const gateway = await WorkerGateway.start({ RATE_PER_S: '0' })
  const address = { protocol: 'http', host: '127.0.0.1', port }
  for (let number = 0; number < 50; number++) {
    const input = { ...address, compute_id: `c${number}`, name: `Compute ${number}` }
    expect(await gateway.call('POST', '/v2/computes', input)).toMatchObject({ connected: true })
  }
  // A compute that takes longer than a second holds up no others, and its own object reads its projects once: another list shows it.
  const mostOfList = async () => {
    most = open
    const answer = await gateway.fetch('GET', projects)
    expect([await answer.json(), answer.headers.get('x-patchbay-unreachable')]).toEqual([[], null])
    return most
  }
  await expect.poll(mostOfList, { timeout: hangMs }).toBe(6)
})

test('requests about a project go directly to its compute, and follow it when it has moved', async () => {
  const credentials = { user: 'anna', password: secret }
  const [gateway, a, b] = await Promise.all([
    WorkerGateway.start(),
    TestService.start({ ...embedded, ...credentials }),
    TestService.start({ ...embedded, ...credentials }),
  ])
  await gateway.call('POST', '/v2/computes', inputOf(a, 'a'))
  await gateway.call('POST', '/v2/computes', inputOf(b, 'b'))
  const input = { name: 'lab', compute_id: 'a' }
  const { project_id } = await gateway.call('POST', projects, input)
  const project = `${projects}/${project_id}`
  /** The program that answered: ids of requests begin with a word of its own. */
  const answered = async (method: string, path: string, body?: unknown) => {
    const answer = await gateway.fetch(method, path, body)
    await answer.body?.cancel()
    return { status: answer.status, by: answer.headers.get('x-request-id')?.split('-')[0] }
  }
  const object = (await answered('GET', '/v2/compute/version')).by
  const isolate = await answered('GET', project)
  expect(isolate.status).toBe(200)
  expect(isolate.by).not.toBe(object)
  expect(await answered('GET', `/v1/projects/${project_id}`)).toEqual(isolate)
  // What is refused is refused there, too.
  expect((await gateway.fetch('GET', project, undefined, { headers: { authorization: 'Bearer no' } })).status).toBe(401)

  const direct = { authorization: basic('anna', secret) }
  await a.fetch(project, { method: 'DELETE', headers: direct })
  await b.fetch(projects, { method: 'POST', headers: direct, body: JSON.stringify({ name: 'moved', project_id }) })
  expect(await gateway.call('GET', project)).toMatchObject({ name: 'moved' })
  expect(await answered('GET', project)).toEqual({ status: 200, by: object })

  const { project_id: other } = await gateway.call('POST', projects, input)
  expect((await answered('GET', `${projects}/${other}`)).by).toBe(isolate.by)
  expect(await answered('DELETE', `${projects}/${other}`)).toEqual({ status: 204, by: isolate.by })
  expect(await answered('GET', `${projects}/${other}`)).toEqual({ status: 404, by: object })

  // What isolates have answered they tell with what they ask every few seconds; what they left to the object it counts itself.
  const counted = async (method: string, status: string, route = `${projects}/{project_id}`) => {
    const families = parseExposition(await (await gateway.fetch('GET', '/metrics')).text())
    return figure(families, 'patchbay_http_requests_total', { method, route, status })
  }
  const ofCompute = '/v2/computes/{compute_id}/{emulator}/{action}'
  expect((await answered('GET', `/v2/computes/b/projects/${other}`)).status).toBe(404)
  await vi.waitFor(
    async () => {
      await answered('GET', `/v1/projects/${project_id}`)
      const counts = [await counted('DELETE', '2xx'), await counted('GET', '2xx'), await counted('GET', '4xx')]
      expect([...counts, await counted('GET', '4xx', ofCompute)]).toEqual([1, 4, 1, 1])
    },
    { timeout: hangMs, interval: 500 },
  )
})
