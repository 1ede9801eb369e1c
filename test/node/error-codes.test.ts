import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { beforeAll, expect, test } from 'vitest'
import { errorCodes } from '../../src/lib/errors/error-codes.ts'
import { json, StandIn } from '../support/fleet.ts'
import { startGateway } from '../support/gateway.ts'
import { portRanges } from '../support/ports.ts'
import { TestService } from '../support/service.ts'

const projects = '/v2/compute/projects'
const nothing = '00000000-0000-4000-8000-000000000000'

/** A lab on a real service: a pc that runs, with a NIO, and one that is stopped. */
class Lab {
  readonly service: TestService
  readonly project: string
  readonly started: string
  readonly stopped: string
  readonly console: number

  private constructor(
    service: TestService,
    ids: { project: string; started: string; stopped: string; console: number },
  ) {
    this.service = service
    this.project = ids.project
    this.started = ids.started
    this.stopped = ids.stopped
    this.console = ids.console
  }

  static async start(): Promise<Lab> {
    const ranges = portRanges()
    const [first] = ranges.console_port_range as [number, number]
    const service = await TestService.startForAll({
      ...ranges,
      console_port_range: [first, first + 3],
      'pc.engine': 'embedded',
      'limits.json_kb': 4,
      'limits.body_timeout_ms': 200,
    })
    const { project_id } = await service.call<{ project_id: string }>('POST', projects, { name: 'lab' })
    const project = `${projects}/${project_id}`
    const [one, two] = [
      await service.call<{ node_id: string; console: number }>('POST', `${project}/pc/nodes`, { name: 'PC1' }),
      await service.call<{ node_id: string }>('POST', `${project}/pc/nodes`, { name: 'PC2' }),
    ]
    const started = `${project}/pc/nodes/${one.node_id}`
    await service.call('POST', `${started}/start`)
    return new Lab(service, { project, started, stopped: `${project}/pc/nodes/${two.node_id}`, console: one.console })
  }

  ask = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    this.service.fetch(path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
}

let lab: Lab
let gateway: TestService
/** It wants to know who asks, knows an issuer of statements that cannot be reached, and its disk is full. */
let guarded: TestService
beforeAll(async () => {
  ;[lab, gateway, guarded] = await Promise.all([
    Lab.start(),
    TestService.startForAll({ gateway: true }),
    TestService.startForAll({
      token: 'secret-token',
      min_free_space_mb: 10 ** 9,
      'cloudflare_access.team_domain': 'team.invalid',
      'cloudflare_access.audience': 'a',
    }),
  ])
  return () => Promise.all([lab.service, gateway, guarded].map((it) => it.close()))
})

/** The head of the answer to bytes that are no whole request. */
async function answerTo(bytes: string): Promise<Response> {
  const { hostname, port } = new URL(lab.service.url)
  const socket = connect(Number(port), hostname)
  socket.write(bytes)
  let text = ''
  socket.on('data', (data) => {
    text += data
  })
  await once(socket, 'close')
  const [, status] = /^HTTP\/1\.1 (\d+)/.exec(text) ?? []
  const [, code = ''] = /x-patchbay-error: (\S+)/i.exec(text) ?? []
  return new Response(text, { status: Number(status), headers: { 'x-patchbay-error': code } })
}

type Send = (method: string, path: string, body?: object) => Promise<Response>

/** An organization of its own on the gateway, in front of stand-ins for computes. */
async function organization(computes: readonly StandIn[] = [], limits: object = {}): Promise<Send> {
  const organization_id = `o-${randomUUID()}`
  await gateway.call('POST', '/v2/organizations', { organization_id, ...limits })
  const headers = { 'x-patchbay-organization': organization_id }
  const send: Send = (method, path, body) =>
    gateway.fetch(path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
  for (const compute of computes) expect((await send('POST', '/v2/computes', compute.input())).status).toBe(201)
  return send
}

const standIn = async (answer: StandIn['answer'] = () => {}): Promise<StandIn> => {
  const compute = await StandIn.start()
  const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string }
  compute.capabilities = (_, res) => json(res, 200, { version, platform: 'linux', node_types: ['pc'] })
  compute.answer = answer
  return compute
}

const duplicateInto = (node: string) => ({ destination_node_id: node.split('/').at(-1) })

/** A request for every code. */
const requests: Readonly<Record<keyof typeof errorCodes, () => Promise<Response>>> = {
  'invalid-request': () => lab.ask('GET', `${projects}/none`),
  'is-lab-file': () => lab.ask('POST', '/v2/imports', { text: 'lab: two\nnodes: {}\n' }),
  'is-appliance': () => lab.ask('POST', '/v2/imports', { text: '{"appliance_id": "1", "name": "Firewall"}' }),
  unauthorized: () => guarded.fetch(projects),
  forbidden: () => lab.ask('GET', projects, undefined, { origin: 'https://elsewhere.example' }),
  'not-trusted': () => {
    const script = { config: { text: '!id' } }
    return lab.ask('PUT', '/v2/projects/untrusted/topology', {
      document: JSON.stringify({ lab: 'untrusted', nodes: { A: { kind: 'pc', ...script } } }),
    })
  },
  'not-found': () => lab.ask('GET', `${lab.started}/console/ws`),
  'no-such-path': () => lab.ask('GET', '/v3/compute/projects'),
  'no-such-project': () => lab.ask('GET', `${projects}/${nothing}`),
  async 'project-closed'() {
    const { project_id } = await lab.service.call('POST', projects, { name: 'closed' })
    await lab.service.call('POST', `${projects}/${project_id}/close`)
    return lab.ask('GET', `${projects}/${project_id}/pc/nodes`)
  },
  'no-such-node': () => lab.ask('GET', `${lab.project}/pc/nodes/${nothing}`),
  'no-such-link': async () => {
    await lab.ask('POST', '/v2/projects', { name: 'linkless' })
    return lab.ask('GET', `/v2/projects/linkless/links/${nothing}`)
  },
  async locked() {
    const { project_id } = await lab.service.call('POST', '/v2/projects', { name: 'locked' })
    await lab.service.call('POST', `/v2/projects/${project_id}/nodes`, {
      name: 'S1',
      node_type: 'switch',
      locked: true,
    })
    return lab.ask('DELETE', `/v2/projects/${project_id}/nodes/S1`)
  },
  'no-such-template': () => lab.ask('GET', '/v2/templates/none'),
  'name-taken': async () => {
    await lab.ask('POST', '/v2/projects', { name: 'twice' })
    return lab.ask('POST', '/v2/projects', { name: 'Twice' })
  },
  'no-such-port': () => lab.ask('GET', `${lab.started}/adapters/0/ports/7/nio`),
  'ports-do-not-fit': async () => {
    await lab.ask('POST', '/v2/projects', { name: 'loop' })
    await lab.ask('POST', '/v2/projects/loop/nodes', { name: 'S1', node_type: 'switch' })
    return lab.ask('POST', '/v2/projects/loop/links', { nodes: ['S1:e0', 'S1:e0'] })
  },
  'nothing-attached': () => lab.ask('GET', `${lab.started}/adapters/0/ports/0/nio`),
  'no-such-compute': () => lab.ask('GET', '/v2/computes/none'),
  'no-such-organization': () => gateway.fetch('/v2/organizations/none'),
  async 'limit-reached'() {
    const send = await organization([], { max_computes: 1 })
    const add = (name: string) => send('POST', '/v2/computes', { name, protocol: 'http', host: '127.0.0.1', port: 1 })
    await add('one')
    return add('two')
  },
  'no-such-file': () => lab.ask('GET', `${lab.project}/files/none`),
  'no-such-image': () => lab.ask('DELETE', '/v2/compute/iou/images/none.bin'),
  'method-not-allowed': () => lab.ask('PATCH', projects),
  'timed-out': () => answerTo(`POST ${projects} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{`),
  conflict: () => lab.ask('POST', '/v2/computes', { compute_id: 'local', protocol: 'http', host: '::1', port: 1 }),
  'image-missing': () => lab.ask('POST', `${lab.project}/iou/nodes`, { name: 'R1', path: 'none.bin' }),
  'port-taken': () => lab.ask('PUT', lab.stopped, { console: lab.console }),
  async 'no-port-left'() {
    const { project_id } = await lab.service.call('POST', projects, { name: 'many' })
    let answer: Response
    do answer = await lab.ask('POST', `${projects}/${project_id}/pc/nodes`, { name: 'PC' })
    while (answer.ok)
    await lab.service.call('DELETE', `${projects}/${project_id}`)
    return answer
  },
  'project-exists': () => lab.ask('POST', '/v1/projects', { project_id: lab.project.split('/').at(-1) }),
  'node-exists': () =>
    lab.ask('POST', `${lab.project}/pc/nodes?existing=refuse`, {
      name: 'PC1',
      node_id: lab.started.split('/').at(-1),
    }),
  async 'made-otherwise'() {
    await lab.service.call('POST', '/v2/projects', { name: 'made-by-hand' })
    return lab.ask('PUT', '/v2/projects/made-by-hand/topology', { document: '{"lab": "made-by-hand", "nodes": {}}' })
  },
  'node-running': () => lab.ask('POST', `${lab.stopped}/duplicate`, duplicateInto(lab.started)),
  'node-stopped': () => lab.ask('POST', `${lab.stopped}/console/reset`),
  'not-in-time': () => lab.ask('POST', `${lab.started}/console/expect`, { expect: 'nothing like it', within_s: 0 }),
  async 'ambiguous-compute'() {
    const send = await organization()
    const compute = await standIn()
    // Without names both have that of their address.
    const register = async (compute_id: string) =>
      (await (await send('POST', '/v2/computes', compute.input({ compute_id }))).json()) as { name: string }
    await register('one')
    const { name } = await register('other')
    return send('POST', '/v2/projects', { name: 'lab', compute_id: name })
  },
  'label-missing': () => lab.ask('POST', '/v2/projects', { name: 'labelled', placement: { labels: ['site=nowhere'] } }),
  async 'compute-refuses'() {
    const compute = await standIn()
    compute.capabilities = (_, res) => json(res, 200, { version: '99.0.0', platform: 'linux', node_types: [] })
    return lab.ask('POST', '/v2/computes', compute.input())
  },
  'changed-meanwhile': async () => {
    const { service } = lab
    await service.call('POST', '/v2/projects', { name: 'configured' })
    await service.call('POST', '/v2/projects/configured/nodes', { name: 'PC1', node_type: 'pc' })
    const headers = { 'if-match': '"older"' }
    const at = '/v2/projects/configured'
    const answer = await service.fetch(`${at}/nodes/PC1/config`, { method: 'PUT', body: 'ip dhcp', headers })
    await service.call('DELETE', at)
    return answer
  },
  'too-large': () => lab.ask('POST', projects, { name: 'x'.repeat(5000) }),
  'unsupported-media-type': () =>
    lab.service.fetch(projects, {
      method: 'POST',
      body: '{"name": "lab"}',
      headers: { 'content-type': 'text/plain', origin: lab.service.url, 'sec-fetch-site': 'same-origin' },
    }),
  async 'range-not-satisfiable'() {
    const image = '/v2/compute/machine-emulator/images/small.img'
    await lab.service.fetch(image, { method: 'POST', body: 'small' })
    return lab.ask('GET', image, undefined, { range: 'bytes=999-' })
  },
  async 'too-many-requests'() {
    const service = await TestService.start({ token: 'secret-token', 'limits.wrong_logins': 1 })
    const wrong = () => service.fetch(projects, { headers: { authorization: 'Bearer guess' } })
    let answer = await wrong()
    while (answer.status === 401) answer = await wrong()
    return answer
  },
  'headers-too-large': () => lab.ask('GET', projects, undefined, { 'x-much': 'x'.repeat(40_000) }),
  'internal-error': () => {
    const broken = { projects: { list: () => Promise.reject(new TypeError('expected in this test')) } }
    return startGateway([broken as never]).fetch('GET', projects)
  },
  async 'not-supported'() {
    const older = await standIn((_, res) => json(res, 404, { message: 'There is nothing', status: 404 }))
    return (await organization([older]))('GET', '/v2/compute/iou/images')
  },
  async 'compute-failed'() {
    const send = await organization([await standIn((_, res) => json(res, 200, { what: 'ever' }))])
    return send('GET', projects)
  },
  async unavailable() {
    const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const statement = `${encoded({ alg: 'RS256', kid: 'k' })}.${encoded({ exp: 2 ** 32 })}.c2lnbmF0dXJl`
    return guarded.fetch(projects, { headers: { 'cf-access-jwt-assertion': statement } })
  },
  async 'compute-unreachable'() {
    const compute = await standIn()
    const send = await organization([compute])
    await compute.stop()
    return send('POST', projects, { name: 'lab' })
  },
  async 'compute-lost'() {
    const compute = await standIn((_, res) => void res.destroy())
    return (await organization([compute]))('POST', projects, { name: 'lab' })
  },
  'disk-full': () => {
    const headers = { authorization: 'Bearer secret-token' }
    return guarded.fetch(projects, { method: 'POST', headers, body: '{"name": "lab"}' })
  },
}

test.for(Object.entries(requests))('a request causes an error with the code %s', async ([code, ask]) => {
  const answer = await ask()
  expect(answer.headers.get('x-patchbay-error')).toBe(code)
  const [statuses] = errorCodes[code as keyof typeof errorCodes]
  expect(statuses).toContain(answer.status)
})

test('the codes are in the OpenAPI document and in the table of the documents', async () => {
  const document = await lab.service.call<Document>('GET', '/openapi.json')
  const header = document.components.headers['X-Patchbay-Error']
  expect(header?.schema.examples).toEqual(Object.keys(errorCodes))
  const table = await readFile('docs/errors.md', 'utf8')
  for (const [code, [statuses, meaning]] of Object.entries(errorCodes)) {
    expect(table).toContain(`| \`${code}\` | ${statuses.join(', ')} | ${meaning} |`)
  }
})

interface Document {
  readonly components: { readonly headers: Record<string, { readonly schema: { readonly examples: string[] } }> }
}
