import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabLink } from '../../src/model/lab/link.ts'
import type { LabNode } from '../../src/model/lab/node.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import { json, listening, StandIn } from '../support/fleet.ts'
import { linkOf, portOf } from '../support/gateway-lab.ts'
import { answered, labOver, linked, nodesOf, types } from '../support/lab-over-computes.ts'
import { hangMs } from '../support/limits.ts'
import { type Ask, staysUnseen } from '../support/others-project.ts'
import { portRanges } from '../support/ports.ts'
import { TestService } from '../support/service.ts'
import { adminToken, WorkerGateway } from '../support/worker-gateway.ts'

const embedded = { 'pc.engine': 'embedded' }
const headers = { authorization: `Bearer ${adminToken}` }
const projects = '/v2/projects'

let gateway: WorkerGateway
/** Registered by their addresses. */
let a: TestService
let b: TestService
/** Has joined by a tunnel. */
let far: TestService
let farId: string

beforeAll(async () => {
  gateway = await WorkerGateway.startForAll(await mkdtemp(join(tmpdir(), 'patchbay-')), { RATE_PER_S: '0' })
  const { token } = await gateway.call('POST', '/v2/tokens', { name: 'far', purpose: 'join' })
  const joined = { 'join.url': gateway.url.replace('http', 'ws'), 'join.token': token }
  ;[a, b, far] = await Promise.all([
    TestService.startForAll(embedded),
    TestService.startForAll(embedded),
    TestService.startForAll({ ...embedded, ...joined }),
  ])
  for (const [compute_id, service] of [['a', a] as const, ['b', b] as const])
    await gateway.call('POST', '/v2/computes', {
      compute_id,
      protocol: 'http',
      host: '127.0.0.1',
      port: portOf(service),
    })
  farId = (await readFile(join(far.data, 'compute-id'), 'utf8')).trim()
  await gateway.untilConnected(farId)
})

afterAll(async () => {
  await Promise.all([a, b, far].map((service) => service?.close()))
  await gateway?.stop()
  if (gateway !== undefined) await rm(gateway.data, { recursive: true, force: true })
})

/** The port of a server that hands everything on to a service, but says another boot id. */
async function behind(service: TestService, boot: { readonly id: string }): Promise<number> {
  const server = createServer((req, res) => {
    const { method, headers, url = '' } = req
    const asked = request(service.url + url, { method, headers }, (answer) => {
      if (!/\/capabilities(\?|$)/.test(url))
        return void answer.pipe(res.writeHead(answer.statusCode ?? 502, answer.headers))
      const told = text(answer).then((body) => JSON.stringify({ ...JSON.parse(body), boot_id: boot.id }))
      const failed = () => res.destroy()
      told.then((body) => res.writeHead(200, { 'Content-Type': 'application/json' }).end(body), failed)
    })
    asked.on('error', () => res.destroy())
    req.pipe(asked)
  })
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return listening(server)
}

const seen = async (name: string) =>
  (await gateway.call<LabProject[]>('GET', projects)).find((project) => project.name === name)

describe('a lab of a Worker', () => {
  it('has its nodes on the requested computes, and frames pass over a link between computes', async () => {
    const path = await labOver(gateway, ['a', 'b'])
    await linked(gateway, path, 'PC1', 'PC2')
    await gateway.call('POST', `${path}/nodes/start`)
    await types(gateway, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered, headers })
    await gateway.call('DELETE', path)
  })

  it('links nodes of two computes of one host that have the same range of UDP ports', async () => {
    const udp_port_range = portRanges({ udp: 8 }).udp_port_range
    const [c, d] = await Promise.all([1, 2].map(() => TestService.start({ ...embedded, udp_port_range })))
    for (const [compute_id, service] of Object.entries({ c, d }))
      await gateway.call('POST', '/v2/computes', {
        ...{ compute_id, protocol: 'http', host: '127.0.0.1', port: portOf(service as TestService) },
        accepts_projects: false,
      })
    const path = await labOver(gateway, ['c', 'd'])
    await linked(gateway, path, 'PC1', 'PC2')
    await gateway.call('POST', `${path}/nodes/start`)
    await types(gateway, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered, headers })
    await gateway.call('DELETE', path)
    for (const compute_id of ['c', 'd']) await gateway.call('DELETE', `/v2/computes/${compute_id}`)
  })

  it('has the ports of its nodes patched on the compute interface, also on two computes', async () => {
    const path = await labOver(gateway, ['a', 'b'])
    const [one, two] = await nodesOf(gateway, path)
    const ends = [one, two].map((node) => `${path.replace('/v2/', '/v2/compute/')}/pc/nodes/${node?.node_id}`)
    await gateway.call('POST', '/v2/links', linkOf(...(ends as [string, string])))
    await gateway.call('POST', `${path}/nodes/start`)
    await types(gateway, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered, headers })
    await gateway.call('DELETE', path)
  })

  it('runs on a compute that has joined by a tunnel, with its consoles and files', async () => {
    const path = await labOver(gateway, [farId, farId])
    await linked(gateway, path, 'PC1', 'PC2')
    await gateway.call('POST', `${path}/nodes/start`)
    await types(gateway, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered, headers })
    const file = `${path}/nodes/PC1/files/notes.txt`
    expect((await gateway.fetch('POST', file, undefined, { body: 'kept' })).status).toBe(200)
    expect(await (await gateway.fetch('GET', file)).text()).toBe('kept')
    await gateway.call('DELETE', path)
  })

  it('is unchanged after an end of the program, which the platform may cause at any time', async () => {
    const path = await labOver(gateway, ['a', 'b'])
    const link = await linked(gateway, path, 'PC1', 'PC2')
    await gateway.call('POST', `${path}/nodes/PC1/start`)
    const { name, revision } = await gateway.call<LabProject>('GET', path)
    await gateway.restart()
    const again = await gateway.call<LabProject>('GET', `${projects}/${encodeURIComponent(name)}`)
    expect(again).toMatchObject({ name, revision, status: 'opened' })
    expect((await nodesOf(gateway, path)).map(({ status }) => status)).toEqual(['started', 'stopped'])
    expect((await gateway.call<LabLink[]>('GET', `${path}/links`)).map(({ link_id }) => link_id)).toEqual([
      link.link_id,
    ])
    await gateway.call('DELETE', path)
  })

  it('is available to clients that see it in the list, also while its compute still creates it', async () => {
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const late = await StandIn.start()
    const make: StandIn['answer'] = (req, res) =>
      void Promise.all([text(req), held]).then(([body]) => {
        const { project_id, name } = JSON.parse(body)
        const location = '/var/lib/patchbay/projects'
        const path = `${location}/${project_id}`
        json(res, 201, { project_id, name, path, location, temporary: false, variables: null })
      })
    late.answer = (req, res) => (req.method === 'POST' ? make(req, res) : json(res, 200, []))
    const { version } = await gateway.call<{ version: string }>('GET', '/v2/compute/version')
    late.capabilities = (_, res) => json(res, 200, { version, platform: 'linux', node_types: ['pc'] })
    await gateway.call('POST', '/v2/computes', late.input({ compute_id: 'late', name: 'late' }))
    onTestFinished(async () => void (await gateway.fetch('DELETE', '/v2/computes/late')))
    const name = `late ${crypto.randomUUID().slice(0, 8)}`
    const making = gateway.call<LabProject>('POST', projects, { name, compute_id: 'late' })
    await expect.poll(() => seen(name), { timeout: hangMs }).toBeDefined()
    const listed = await seen(name)
    const counted = gateway.call('GET', `${projects}/${listed?.project_id}/stats`)
    await Promise.race([counted, seen(name)])
    release()
    expect(await counted).toMatchObject({ nodes: 0, links: 0 })
    expect(await making).toMatchObject({ project_id: listed?.project_id })
  })

  it('gives a name to one of two clients that request it', async () => {
    const name = `wanted ${crypto.randomUUID().slice(0, 8)}`
    const answers = await Promise.all([1, 2, 3].map(() => gateway.fetch('POST', projects, { name })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
    await gateway.call('DELETE', `${projects}/${encodeURIComponent(name)}`)
  })

  it('loses no node with a compute: its nodes are shown with the reason, and are unchanged when it is back', async () => {
    const path = await labOver(gateway, ['a', 'b'])
    await gateway.call('POST', `${path}/nodes/start`)
    const port = portOf(b)
    await b.kill('SIGKILL')
    const shown = async () => (await nodesOf(gateway, path)).map((node) => [node.name, node.status_reason !== null])
    await expect.poll(shown, { timeout: hangMs }).toEqual([
      ['PC1', false],
      ['PC2', true],
    ])
    await b.restart(port)
    await expect.poll(shown, { timeout: 2 * hangMs }).toEqual([
      ['PC1', false],
      ['PC2', false],
    ])
    expect((await nodesOf(gateway, path)).map(({ status }) => status)).toEqual(['started', 'started'])
    // 503 until its object has noted that the compute is there.
    await expect.poll(async () => (await gateway.fetch('DELETE', path)).status, { timeout: hangMs }).toBe(204)
  })

  it('has its jobs in the list of the service, and its revision in that of labs', async () => {
    const path = await labOver(gateway, ['a', farId])
    const { job_id, project_id } = await gateway.call<LabJob>('POST', `${path}/jobs`, { action: 'start' })
    const ended = async () => (await gateway.call<LabJob>('GET', `/v2/jobs/${job_id}`)).status
    await expect.poll(ended, { timeout: hangMs }).toBe('done')
    const listed = async () => (await gateway.call<LabJob[]>('GET', '/v2/jobs')).filter((it) => it.job_id === job_id)
    expect(await listed()).toMatchObject([{ project_id, action: 'start', done: 2 }])
    await gateway.call('PUT', `${path}/nodes/PC1`, { x: 70 })
    const { revision } = await gateway.call<LabProject>('GET', path)
    const inList = async () =>
      (await gateway.call<LabProject[]>('GET', projects)).find((it) => it.project_id === project_id)?.revision
    await expect.poll(inList, { timeout: hangMs }).toBe(revision)
    const { token } = await gateway.call('POST', '/v2/tokens', { name: 'other', role: 'operate', projects: ['x-*'] })
    const asOther = { headers: { authorization: `Bearer ${token}` } }
    expect(await (await gateway.fetch('GET', '/v2/jobs', undefined, asOther)).json()).toEqual([])
    for (const method of ['GET', 'DELETE'])
      expect((await gateway.fetch(method, `/v2/jobs/${job_id}`, undefined, asOther)).status).toBe(404)
    await gateway.call('DELETE', `/v2/jobs/${job_id}`)
    expect(await listed()).toEqual([])
    expect((await gateway.fetch('GET', `/v2/jobs/${job_id}`)).status).toBe(404)
    await gateway.call('DELETE', path)
  })

  it('with auto_start has the nodes started that ran on a compute before a reboot', async () => {
    const service = await TestService.start(embedded)
    const boot = { id: 'the first' }
    const input = { compute_id: 'rebooted', protocol: 'http', host: '127.0.0.1', port: await behind(service, boot) }
    await gateway.call('POST', '/v2/computes', input)
    const path = await labOver(gateway, ['rebooted', 'rebooted'])
    await gateway.call('PUT', path, { auto_start: true })
    for (const name of ['PC1', 'PC2']) await gateway.call('POST', `${path}/nodes/${name}/start`)
    await gateway.call('POST', `${path}/nodes/PC2/stop`)
    const port = portOf(service)
    boot.id = 'the second'
    await service.end()
    await service.restart(port)
    const statuses = async () => (await nodesOf(gateway, path)).map(({ status }) => status)
    await expect.poll(statuses, { timeout: 2 * hangMs }).toEqual(['started', 'stopped'])
    await gateway.call('DELETE', path)
    await gateway.call('DELETE', '/v2/computes/rebooted')
  })

  it('is reported in the feed of the service, as soon as it exists', async () => {
    const feed = await gateway.fetch('GET', '/v2/notifications')
    const name = `told ${crypto.randomUUID().slice(0, 8)}`
    const path = `${projects}/${encodeURIComponent(name)}`
    const made = gateway.call('POST', projects, { name })
    let text = ''
    for await (const piece of feed.body as unknown as AsyncIterable<Uint8Array>) {
      const before = text
      text += new TextDecoder().decode(piece)
      if (text.includes('project.created') && !before.includes('project.created')) {
        expect((await gateway.fetch('GET', path)).status).toBe(200)
        await made
        await gateway.call('DELETE', path)
      }
      if (text.includes('project.deleted')) break
    }
    expect(text).toMatch(/project\.created.*project\.deleted/s)
  })
})

it('a token for some projects sees nothing of others', async () => {
  const names = [`Secret ${crypto.randomUUID().slice(0, 8)}`]
  const { project_id } = await gateway.call<LabProject>('POST', projects, { name: names[0], compute_id: 'a' })
  const nodes: LabNode[] = []
  for (const number of [1, 2]) {
    names.push(`Hidden-${number}`)
    nodes.push(
      await gateway.call('POST', `${projects}/${project_id}/nodes`, { name: `Hidden-${number}`, node_type: 'pc' }),
    )
  }
  const link = await linked(gateway, `${projects}/${project_id}`, 'Hidden-1', 'Hidden-2')
  const input = { name: 'student', role: 'operate', projects: ['class-*'] }
  const { token } = await gateway.call('POST', '/v2/tokens', input)
  const askAs =
    (secret: unknown): Ask =>
    (method, path, { body, headers: more } = {}) => {
      const ask = () =>
        gateway.fetch(method, path, undefined, {
          ...(body !== undefined && { body }),
          headers: { ...more, authorization: `Bearer ${secret}` },
        })
      // workerd ends a connection after a request whose body it did not read.
      return ask().catch(ask)
    }
  const asked = askAs(token)
  const [node_id = ''] = nodes.map((node) => node.node_id)
  await staysUnseen({ project_id, node_id, link_id: link.link_id, names }, { asked, admin: askAs(adminToken) })
  expect((await asked('POST', projects, { body: '{"name":"class-1"}' })).status).toBe(201)
  const body = JSON.stringify({ document: 'lab: class-2\nnodes: {}\n' })
  expect((await asked('PUT', `${projects}/class-2/topology`, { body })).status).toBe(200)
  expect((await (await asked('GET', projects)).json()).map(({ name }: LabProject) => name)).toEqual([
    'class-1',
    'class-2',
  ])
})

it('a token for labs by name has their events in feeds over all projects, and those of no others', async () => {
  const input = { name: 'listener', role: 'operate', projects: ['heard-*'] }
  const { token } = await gateway.call('POST', '/v2/tokens', input)
  const paths = ['/v2/notifications/ws', '/v2/compute/notifications/ws']
  const feeds = await Promise.all(paths.map((path) => gateway.open(path, { authorization: `Bearer ${token}` })))
  for (const feed of feeds) await feed.shows('"ping"')
  for (const name of ['unheard', 'heard-1']) {
    const { project_id } = await gateway.call<LabProject>('POST', projects, { name })
    await gateway.call('POST', `${projects}/${project_id}/nodes`, { name: `PC-of-${name}`, node_type: 'pc' })
  }
  for (const feed of feeds) {
    let text = ''
    await expect.poll(() => (text += feed.takeText())).toMatch(/node\.created.*PC-of-heard-1/)
    expect(text).not.toContain('unheard')
  }
  for (const name of ['unheard', 'heard-1']) await gateway.call('DELETE', `${projects}/${name}`)
})

it('a token for some projects imports nothing under the id of a project on another compute', async () => {
  const { project_id } = await gateway.call('POST', '/v2/compute/projects', { name: 'theirs', compute_id: 'a' })
  const { token } = await gateway.call('POST', '/v2/tokens', { name: 'i', role: 'operate', projects: ['import-*'] })
  const as = { authorization: `Bearer ${token}` }
  await gateway.call('POST', projects, { name: 'import-1', compute_id: 'b' })
  const archive = await (await gateway.fetch('GET', `${projects}/import-1/export`)).arrayBuffer()
  for (const compute_id of ['a', farId])
    await gateway.call('PUT', `/v2/computes/${compute_id}`, { accepts_projects: false })
  const into = (id: unknown) =>
    gateway.fetch('POST', `${projects}/${id}/import?name=import-2`, undefined, { body: archive, headers: as })
  const refused = await into(project_id)
  expect([refused.status, refused.headers.get('x-patchbay-error')]).toEqual([409, 'project-exists'])
  expect((await gateway.fetch('GET', `/v2/computes/a/projects/${project_id}`, undefined, { headers: as })).status).toBe(
    403,
  )
  expect((await into(crypto.randomUUID())).status).toBe(201)
  for (const compute_id of ['a', farId])
    await gateway.call('PUT', `/v2/computes/${compute_id}`, { accepts_projects: true })
  for (const name of ['import-1', 'import-2']) await gateway.call('DELETE', `${projects}/${name}`)
  await gateway.call('DELETE', `/v2/compute/projects/${project_id}`)
})
