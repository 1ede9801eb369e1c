import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { endpoints } from '../../src/endpoints/endpoints.ts'
import { mapLimit } from '../../src/lib/async/map-limit.ts'
import type { Compute } from '../../src/model/compute.ts'
import type { Endpoint } from '../../src/server/http/endpoint.ts'
import { asAdmin, CountingWorker, type Counts } from '../support/counting-worker.ts'
import { json, StandIn } from '../support/fleet.ts'
import { createPc } from '../support/lab.ts'
import { hangMs } from '../support/limits.ts'
import { TestService } from '../support/service.ts'

const projects = '/v2/compute/projects'
const websocket = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
const upgrade = { ...websocket, 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' }

/** What an isolate asks from time to time, whatever the requests are. */
const regular: ReadonlySet<string> = new Set([
  ...['count', 'known', 'tokenList', 'look', 'directory told', 'directory count'],
])

type Calls = Readonly<Record<string, number>>
type Called = Partial<Record<'directory' | 'compute' | 'lab', Calls>>

/** The calls between two counts of one kind. */
const added = (before: Calls, after: Calls): Calls =>
  Object.fromEntries(
    Object.entries(after).flatMap(([name, count]) => {
      const more = count - (before[name] ?? 0)
      return more > 0 && !regular.has(name) ? [[name, more] as const] : []
    }),
  )

/** The calls between two counts, by the kind of object; without those that are made now and then. */
function between(before: Counts, after: Counts): Called {
  const kinds = { directory: 'calls', compute: 'computes', lab: 'projects' } as const
  const called: Called = {}
  for (const [kind, member] of Object.entries(kinds) as [keyof typeof kinds, (typeof kinds)[keyof typeof kinds]][]) {
    const more = added(before[member], after[member])
    if (Object.keys(more).length > 0) called[kind] = more
  }
  return called
}

type Values = Readonly<Record<string, string>>

/** A request by an endpoint. */
interface Sent {
  readonly endpoint: Endpoint
  readonly values: Values
}

/** The path of an endpoint; ids that are not given are those of nothing. */
const filled = (path: string, values: Values): string =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const known = values[name]
    if (known !== undefined) return known
    if (name === 'compute_id') return 'nobody'
    return name.endsWith('_id') ? '11111111-1111-4111-8111-111111111111' : '1'
  })

let worker: CountingWorker
/** Registered by its address. */
let near: TestService
/** Has joined by a tunnel. */
let far: TestService
let farId: string

beforeAll(async () => {
  worker = await CountingWorker.startForAll({ RATE_PER_S: '0' })
  ;[near, far] = await Promise.all([TestService.startForAll({ 'pc.engine': 'embedded' }), joining()])
  const address = { protocol: 'http', host: '127.0.0.1', port: Number(new URL(near.url).port) }
  await worker.call('POST', '/v2/computes', { compute_id: 'near', ...address })
  farId = await joinedId(far)
})

afterAll(async () => {
  await Promise.all([near, far].map((service) => service?.close()))
  await worker?.close()
})

/** A compute that joins. */
async function joining(): Promise<TestService> {
  const { token } = await worker.call('POST', '/v2/tokens', { name: 'lab', purpose: 'join' })
  const join = { 'join.url': worker.url.replace('http', 'ws'), 'join.token': token }
  return TestService.startForAll({ 'pc.engine': 'embedded', ...join })
}

/** The id of a compute, which is connected then. */
async function joinedId(service: TestService): Promise<string> {
  const id = (await readFile(join(service.data, 'compute-id'), 'utf8')).trim()
  const isConnected = async () =>
    (await worker.call<Compute[]>('GET', '/v2/computes')).some((it) => it.compute_id === id && it.connected)
  await vi.waitFor(async () => expect(await isConnected()).toBe(true), { timeout: hangMs, interval: 50 })
  return id
}

/** The paths of a pc that runs on that compute, and of its project. */
async function startedPc(compute_id: string): Promise<{ node: string; project: string }> {
  const { project_id } = await worker.call('POST', projects, { name: `at ${compute_id}`, compute_id })
  const node = await createPc(worker, `${projects}/${project_id}`, 1)
  await worker.call('POST', `${node}/start`, {})
  return { node, project: `${projects}/${project_id}` }
}

test('each kind of request calls the objects that it is about, and no shared one', async () => {
  const [byAddress, byTunnel] = [await startedPc('near'), await startedPc(farId)]
  const lab = await worker.call('POST', '/v2/projects', { name: 'lab' })
  const labPath = `/v2/projects/${lab.project_id}`

  const calls = async (method: string, path: string, headers = asAdmin as object, status = 200, body = '') => {
    const before = await worker.counts()
    expect([path, await worker.status(method, path, { ...headers }, body)]).toEqual([path, status])
    return between(before, await worker.counts())
  }
  const opened = { ...asAdmin, ...upgrade }
  const wrong = { authorization: 'Bearer wrong' }
  const ask = { compute: { fetch: 1 } }

  // Who has no credentials calls nothing, whatever is asked for.
  for (const path of [byAddress.node, byTunnel.node, labPath, projects, '/v2/notifications', '/v2/computes']) {
    expect([path, await calls('GET', path, {}, 401)]).toEqual([path, {}])
    expect([path, await calls('GET', path, wrong, 401)]).toEqual([path, {}])
  }
  expect(await calls('GET', '/v2/computes/join', { ...wrong, ...upgrade }, 401)).toEqual({})

  // What is about a project goes to its compute, and through the object of a compute that has joined.
  expect(await calls('GET', byAddress.node)).toEqual({})
  expect(await calls('GET', byTunnel.node)).toEqual(ask)
  expect(await calls('GET', `${byAddress.node}/console/ws`, opened, 101)).toEqual({})
  expect(await calls('GET', `${byTunnel.node}/console/ws`, opened, 101)).toEqual(ask)
  const file = { ...asAdmin, 'content-length': '0' }
  expect(await calls('POST', `${byAddress.project}/files/notes.txt`, file)).toEqual({})
  expect(await calls('POST', `${byTunnel.project}/files/notes.txt`, file)).toEqual(ask)
  expect(await calls('GET', `${byTunnel.project}/notifications/ws`, opened, 101)).toEqual(ask)
  expect(await calls('GET', `${byAddress.project}/notifications/ws`, opened, 101)).toEqual({})

  // So does what is about a compute. Its object makes the digests of images.
  const uploadsBefore = (await worker.counts()).ofComputes['directory imageUploaded'] ?? 0
  for (const [compute, called] of [
    ['near', {}],
    [farId, ask],
  ] as const) {
    const image = `/v2/computes/${compute}/machine-emulator/images/${compute}.img`
    const kept = { ...asAdmin, 'content-length': '5' }
    expect([compute, await calls('POST', image, kept, 204, 'image')]).toEqual([compute, ask])
    expect([compute, await calls('GET', image)]).toEqual([compute, called])
    expect([compute, await calls('GET', `/v2/computes/${compute}/capabilities`)]).toEqual([compute, called])
    const note = `/v2/computes/${compute}/projects/none/files/notes.txt`
    expect([compute, await calls('POST', note, file, 400)]).toEqual([compute, called])
  }
  expect((await worker.counts()).ofComputes['directory imageUploaded']).toBe(uploadsBefore + 2)
  expect(await calls('GET', '/v2/computes/none-is-called-so/capabilities', asAdmin, 404)).toEqual({
    directory: { hasCompute: 1, fetch: 1 },
  })

  // A lab has its own.
  expect(await calls('GET', labPath)).toEqual({ lab: { fetch: 1 } })
  expect(await calls('GET', `${labPath}/nodes`)).toEqual({ lab: { fetch: 1 } })
  expect(await calls('GET', `${labPath}/notifications/ws`, opened, 101)).toEqual({ lab: { fetch: 1 } })
  const drawing = { svg: '<svg xmlns="http://www.w3.org/2000/svg"/>', x: 0, y: 0, z: 0 }
  const [unedited] = [await worker.counts(), await worker.call('POST', `${labPath}/drawings`, drawing)]
  const edited = await worker.counts()
  expect(between(unedited, edited)).toEqual({ lab: { fetch: 1 } })
  // The list of labs shows when a lab was edited.
  expect([[], ['directory putLab']]).toContainEqual(Object.keys(added(unedited.ofLabs, edited.ofLabs)))

  // Only what is about all of them is the directory's.
  expect(await calls('GET', '/v2/computes')).toEqual({ directory: { fetch: 1 } })
  expect(await calls('GET', projects)).toEqual({ directory: { fetch: 1 } })
  expect(await calls('GET', '/v2/notifications/ws', opened, 101)).toEqual({ directory: { fetch: 1 } })
})

test('credentials for some projects keep the data of these from the directory, too', async () => {
  const [own, far, others] = [await startedPc('near'), await startedPc(farId), await startedPc('near')]
  const ids = [own, far].map(({ project }) => project.slice(project.lastIndexOf('/') + 1))
  const scope = { name: 'class', role: 'operate', projects: ids }
  const { token } = await worker.call('POST', '/v2/tokens', scope)
  const as = { authorization: `Bearer ${token}` }
  const calls = async (path: string, status: number, headers: object = as) => {
    const before = await worker.counts()
    expect([path, await worker.status('GET', path, { ...headers })]).toEqual([path, status])
    return between(before, await worker.counts())
  }
  for (const { node } of [own, far]) await worker.call('GET', node)
  expect(await calls(own.node, 200)).toEqual({})
  expect(await calls(far.node, 200)).toEqual({ compute: { fetch: 1 } })
  expect(await calls(`${own.node}/console/ws`, 101, { ...as, ...upgrade })).toEqual({})
  // Whether there is another one is not told.
  expect((await calls(others.node, 404)).directory?.fetch).toBe(1)
  // A feed ends with them.
  const feed = `${own.project}/notifications/ws`
  expect((await calls(feed, 101, { ...as, ...upgrade })).directory?.fetch).toBe(1)
})

test('every endpoint calls the objects that it is about, and the directory only for requests about all', async () => {
  const projectAt = async (compute_id: string) =>
    String((await worker.call('POST', projects, { name: `at ${compute_id}`, compute_id })).project_id)
  const [here, there] = [await projectAt('near'), await projectAt(farId)]
  for (const id of [here, there]) await worker.call('GET', `${projects}/${id}`)
  for (const id of ['near', farId]) await worker.call('GET', `/v2/computes/${id}/capabilities`)

  const wrong: unknown[] = []
  const send = ({ endpoint: { method, path, bodyKind, websocket }, values }: Sent): Promise<number> => {
    const at = filled(path, values)
    const body = method === 'GET' || method === 'DELETE' ? '' : bodyKind === 'raw' ? 'x' : '{}'
    const length = body === '' ? {} : { 'content-length': String(body.length) }
    const opens = websocket === true && at.endsWith('ws') ? upgrade : {}
    return worker.status(method, at, { ...asAdmin, ...length, ...opens }, body)
  }
  const ask = async (sent: Sent, expected: readonly Called[]) => {
    const before = await worker.counts()
    const status = await send(sent)
    const called = between(before, await worker.counts())
    if (expected.some((it) => isDeepStrictEqual(it, called))) return
    wrong.push([sent.endpoint.method, filled(sent.endpoint.path, sent.values), status, called])
  }
  const [none, ofCompute, ofLab] = [{}, { compute: { fetch: 1 } }, { lab: { fetch: 1 } }]
  const groups = new Map<Called, Sent[]>()
  const note = (called: Called, endpoint: Endpoint, values: Values = {}) =>
    groups.set(called, [...(groups.get(called) ?? []), { endpoint, values }])
  const ofAll = { directory: { fetch: 1 } }
  for (const endpoint of endpoints) {
    const { owner, path } = endpoint
    if (endpoint.joins === true || endpoint.endsProject === true) continue
    if (owner === 'project') {
      // The endpoints of all kinds are made alike: those of pcs, and what is no node's, are asked for at both.
      if (path.includes('/pc/') || !path.includes('{node_id}')) note(none, endpoint, { project_id: here })
      note(ofCompute, endpoint, { project_id: there })
    } else if (endpoint.forwardPath !== undefined) {
      note(none, endpoint, { compute_id: 'near', emulator: 'projects', action: here })
      note(ofCompute, endpoint, { compute_id: farId, emulator: 'projects', action: there })
    } else if (endpoint.createsLab === true || path.startsWith('/v2/projects/{project_id}')) {
      // Its object is asked, also for one that is not there.
      note(ofLab, endpoint)
    } else if (endpoint.public === true || ['/v2/compute/tickets', '/v2/session', '/mcp'].includes(path)) {
      note(none, endpoint)
    } else note(ofAll, endpoint)
  }
  for (const [called, all] of groups) {
    const before = await worker.counts()
    await mapLimit(all, send)
    const times = (calls: Calls) => Object.fromEntries(Object.keys(calls).map((name) => [name, all.length]))
    const wanted = Object.fromEntries(Object.entries(called).map(([kind, calls]) => [kind, times(calls)]))
    if (isDeepStrictEqual(between(before, await worker.counts()), wanted)) continue
    // One by one: which was it?
    for (const sent of all) await ask(sent, [called])
    wrong.push(['together', Object.keys(called), all.length])
  }
  // What ends a project forgets where it was.
  const forgotten = (called: object) => [called, { ...called, directory: { forget: 1 } }]
  const ends = endpoints.filter(({ endsProject }) => endsProject)
  expect(ends.length).toBeGreaterThan(2)
  for (const endpoint of ends)
    for (const [compute, called] of [['near', none] as const, [farId, ofCompute] as const]) {
      const project_id = await projectAt(compute)
      await worker.call('GET', `${projects}/${project_id}`)
      const asked = compute === 'near' ? [called] : [1, 2].map((fetch) => ({ compute: { fetch } }))
      await ask({ endpoint, values: { project_id } }, asked.flatMap(forgotten))
    }
  expect(wrong).toEqual([])
})

test('a request whose object ends meanwhile is answered with 503 and Retry-After, also where it was to search for a project', async () => {
  const { project_id } = await worker.call('POST', projects, { name: 'lab', compute_id: 'near' })
  const path = `${projects}/${project_id}`
  await worker.call('GET', path)
  // The isolate still takes it to be there.
  await near.fetch(path, { method: 'DELETE' })
  await worker.ending(true)
  for (const at of [path, '/v2/computes']) {
    const { status, headers, body } = await fetch(worker.url + at, { headers: asAdmin })
    await body?.cancel()
    const said = ['content-type', 'retry-after', 'x-patchbay-error'].map((name) => headers.get(name))
    expect([at, status, ...said]).toEqual([at, 503, 'application/json', '1', 'unavailable'])
  }
  await worker.ending(false)
  expect([await worker.status('GET', '/v2/computes', asAdmin), await worker.status('GET', path, asAdmin)]).toEqual([
    200, 404,
  ])
})

test('each of two computes sends its traffic through its own object, and none through the directory', async () => {
  const another = await joining()
  onTestFinished(() => another.close())
  const [one, other] = [farId, await joinedId(another)]
  const [first, second] = [await startedPc(one), await startedPc(other)]
  const before = await worker.counts()
  for (let round = 0; round < 5; round++) {
    expect(await worker.status('GET', first.node, asAdmin)).toBe(200)
    const empty = { ...asAdmin, 'content-length': '0' }
    expect(await worker.status('POST', `${first.project}/files/notes-${round}.txt`, empty)).toBe(200)
    expect(await worker.status('GET', `${second.node}/console/ws`, { ...asAdmin, ...upgrade })).toBe(101)
  }
  const after = await worker.counts()
  expect(added(before.byCompute, after.byCompute)).toEqual({ [one]: 10, [other]: 5 })
  expect(between(before, after)).toEqual({ compute: { fetch: 15 } })
  expect(added(before.ofComputes, after.ofComputes)).toEqual({})
})

test('requests that come together have the state of a compute and the list of tokens refreshed once', async () => {
  const { node } = await startedPc('near')
  const user = { name: 'alice', role: 'read', purpose: 'user' }
  const { token } = await worker.call<{ token: string }>('POST', '/v2/tokens', user)
  const clients = [asAdmin, { authorization: `Bearer ${token}` }]
  // What was read is used for five seconds, and for five more while it is read again. The first time, it may have been read by an
  // earlier test: after the second, it is read less than a second ago.
  for (let time = 0; time < 2; time++) {
    for (const headers of clients) expect(await worker.status('GET', node, headers)).toBe(200)
    await new Promise((resolve) => setTimeout(resolve, 5500))
  }
  const before = await worker.counts()
  const began = performance.now()
  const asking = Array.from({ length: 40 }, (_, index) => worker.status('GET', node, clients[index % 2]))
  expect(new Set(await Promise.all(asking))).toEqual(new Set([200]))
  const after = await worker.counts()
  const of = (name: 'calls' | 'computes', method: string) => (after[name][method] ?? 0) - (before[name][method] ?? 0)
  // At most one a second, of the first and the last request too: a slow machine takes more than one second.
  const most = 2 + Math.ceil((performance.now() - began) / 1000)
  for (const count of [of('computes', 'known'), of('calls', 'tokenList')]) {
    expect(count).toBeGreaterThan(0)
    expect(count).toBeLessThanOrEqual(most)
  }
})

test('the directory makes no health checks: in an idle minute it is called only for reports', async () => {
  const worker = await CountingWorker.start({ RATE_PER_S: '0' })
  const { version } = await worker.call<{ version: string }>('GET', '/v2/compute/version')
  const compute = await StandIn.start()
  const load = { cpu_usage_percent: 5, memory_usage_percent: 5 }
  compute.capabilities = (_, res) => json(res, 200, { version, platform: 'linux', node_types: ['pc'] })
  compute.answer = (_, res) => json(res, 200, load)
  const ids = Array.from({ length: 20 }, (_, index) => `c${index}`)
  for (const compute_id of ids)
    await worker.call('POST', '/v2/computes', compute.input({ compute_id, name: `Compute ${compute_id}` }))
  await worker.alarms(ids, 1)
  /** The calls to and from the directory while each compute is checked as often as in a minute. */
  const inAMinute = async () => {
    const before = await worker.counts()
    const asked = compute.asked.length
    await worker.alarms(ids, 4)
    expect(compute.asked.length - asked).toBeGreaterThanOrEqual(4 * ids.length)
    const { calls, ofComputes, ofDirectory, projects: ofProjects } = await worker.counts()
    const more = (all: Calls, earlier: Calls) =>
      Object.entries(all).reduce((sum, [name, times]) => sum + times - (earlier[name] ?? 0), 0)
    expect([more(calls, before.calls), more(ofProjects, before.projects)]).toEqual([0, 0])
    expect(more(ofDirectory, before.ofDirectory)).toBe(0)
    return more(ofComputes, before.ofComputes)
  }
  expect(await inAMinute()).toBe(0)
  load.cpu_usage_percent = 50
  expect(await inAMinute()).toBe(ids.length)
  const all = await worker.call<Compute[]>('GET', '/v2/computes')
  expect(all.map(({ cpu_usage_percent }) => cpu_usage_percent)).toEqual(ids.map(() => 50))
})

test('a change of a compute that leaves its connection as it is has its state reported again, each time', async () => {
  const worker = await CountingWorker.start({ RATE_PER_S: '0' })
  const { version } = await worker.call<{ version: string }>('GET', '/v2/compute/version')
  const compute = await StandIn.start()
  compute.capabilities = (_, res) => json(res, 200, { version, platform: 'linux', node_types: ['pc'] })
  compute.answer = (_, res) => json(res, 200, { cpu_usage_percent: 5, memory_usage_percent: 5 })
  await worker.call('POST', '/v2/computes', compute.input({ compute_id: 'one', name: 'One' }))
  await worker.alarms(['one'], 1)
  const told = async () => (await worker.counts()).ofComputes['directory told'] ?? 0
  const before = await told()
  // The directory drops the state of the former record, and would show a compute as lost that it knows only by the record.
  for (const [count, input] of [{ labels: ['site=berlin'] }, { accepts_projects: false }].entries()) {
    await worker.call('PUT', '/v2/computes/one', input)
    await expect.poll(told, { timeout: hangMs }).toBe(before + count + 1)
  }
  expect(await worker.call<Compute[]>('GET', '/v2/computes')).toMatchObject([
    { connected: true, labels: ['site=berlin'], accepts_projects: false },
  ])
})
