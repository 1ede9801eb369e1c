import { expect } from 'vitest'
import { endpoints } from '../../src/endpoints/endpoints.ts'
import { mapLimit } from '../../src/lib/async/map-limit.ts'
import type { Compute } from '../../src/model/compute.ts'
import type { LabLink } from '../../src/model/lab/link.ts'
import type { LabNode } from '../../src/model/lab/node.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import type { Endpoint } from '../../src/server/http/endpoint.ts'
import { succeeded } from './calls.ts'
import { oneRequestEach } from './one-request-each.ts'
import { TestService } from './service.ts'

/** Requests that are under way at the same time. */
const together = 8

/** Sends a request of one client to the gateway of the test. */
export type Ask = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Response>

/** A client of the gateway at that address. */
export const askAs =
  (url: () => string, token: string): Ask =>
  (method, path, body, headers = {}) =>
    fetch(url() + path, {
      ...{ method, dispatcher: oneRequestEach },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      headers: { ...headers, authorization: `Bearer ${token}` },
    })

/** A request that must succeed; its JSON answer. */
export async function call<T = Record<string, string>>(
  ask: Ask,
  method: string,
  path: string,
  body?: unknown,
): Promise<T> {
  return succeeded(method, path, await ask(method, path, body))
}

/** The header by which the administrator of the deployment acts in an organization. */
export const within = (organization: string) => ({ 'x-patchbay-organization': organization })

/** What a test has put into an organization. */
export interface Filled {
  readonly name: string
  /** With a token of the organization that may do everything there. */
  readonly ask: Ask
  readonly token: string
  readonly project_id: string
  readonly node_id: string
  readonly link_id: string
  readonly token_id: string
  readonly compute_id: string
  readonly job_id: string
  readonly template_id: string
  /** Names and ids that appear in nothing else. */
  readonly markers: readonly string[]
}

/** Makes an organization of the deployment, and gives it a token. */
export async function makeOrganization(admin: Ask, name: string, limits: object = {}): Promise<string> {
  await call(admin, 'POST', '/v2/organizations', { organization_id: name, ...limits })
  const made = await admin('POST', '/v2/tokens', { name: `${name}-admin`, role: 'admin' }, within(name))
  return (await succeeded<{ token: string }>('POST', '/v2/tokens', made)).token
}

/** Has a new compute join an organization; resolves when it is connected. */
export async function joinCompute(url: string, ask: Ask, name: string): Promise<{ service: TestService; id: string }> {
  const { token } = await call<{ token: string }>(ask, 'POST', '/v2/tokens', { name: `${name}-join`, purpose: 'join' })
  const before = new Set((await call<Compute[]>(ask, 'GET', '/v2/computes')).map(({ compute_id }) => compute_id))
  const service = await TestService.start({ 'pc.engine': 'embedded', 'join.url': url, 'join.token': token })
  let id = ''
  await expect
    .poll(
      async () => {
        const all = await call<Compute[]>(ask, 'GET', '/v2/computes')
        const found = all.find(({ compute_id, connected }) => connected && !before.has(compute_id))
        id = found?.compute_id ?? ''
        return found !== undefined
      },
      { interval: 50 },
    )
    .toBe(true)
  return { service, id }
}

/** Fills an organization with a lab on its compute, a template, tokens and a job, under names that begin with its own. */
export async function fillOrganization(name: string, ask: Ask, token: string, compute_id: string): Promise<Filled> {
  const { project_id } = await call<LabProject>(ask, 'POST', '/v2/projects', { name: `${name}-lab` })
  const at = `/v2/projects/${project_id}`
  const nodes: LabNode[] = []
  for (const number of [1, 2])
    nodes.push(await call(ask, 'POST', `${at}/nodes`, { name: `${name}-PC${number}`, node_type: 'pc' }))
  const [node_id = '', other = ''] = nodes.map((it) => it.node_id)
  const { link_id } = await call<LabLink>(ask, 'POST', `${at}/links`, {
    nodes: nodes.map((it) => `${it.name}:e0`),
  })
  const template = await call(ask, 'POST', '/v2/templates', {
    ...{ name: `${name}-template`, template_type: 'pc', compute_id: null },
  })
  const made = await call(ask, 'POST', '/v2/tokens', { name: `${name}-token`, role: 'read' })
  const { job_id } = await call(ask, 'POST', `${at}/jobs`, { action: 'start' })
  await untilRunning({ ask, project_id })
  const bare = await call(ask, 'POST', '/v2/compute/projects', { name: `${name}-bare` })
  const ids = { project_id, node_id, link_id, job_id: job_id ?? '', compute_id }
  return {
    ...{ name, ask, token, ...ids },
    template_id: String(template.template_id),
    token_id: String(made.token_id),
    markers: [
      ...[...Object.values(ids), other, String(template.template_id), String(made.token_id), String(bare.project_id)],
      ...['lab', 'PC1', 'PC2', 'template', 'token', 'bare', 'join', 'admin'].map((it) => `${name}-${it}`),
    ],
  }
}

/** Resolves when the nodes of its lab run, such as after a restart of the gateway. */
export async function untilRunning({ ask, project_id }: Pick<Filled, 'ask' | 'project_id'>): Promise<void> {
  await expect
    .poll(
      async () => {
        const nodes = await call<LabNode[]>(ask, 'GET', `/v2/projects/${project_id}/nodes`)
        return nodes.every(({ status, node_directory }) => status === 'started' && node_directory !== null)
      },
      { interval: 50 },
    )
    .toBe(true)
}

/** What an organization shows of itself, but for figures that change by themselves. */
async function stateOf({ ask, project_id }: Filled): Promise<unknown> {
  const lab = `/v2/projects/${project_id}`
  const paths = [
    // First: a lab tells of its links only what has been read of them in the last seconds.
    `${lab}?links=yes`,
    ...['/v2/projects', '/v2/compute/projects', '/v2/templates', '/v2/tokens', '/v2/computes'],
    ...[`${lab}/nodes`, `${lab}/links`, `${lab}/drawings`, `${lab}/snapshots`, `/v2/compute/pc/images`],
    `/v2/compute/projects/${project_id}/pc/nodes`,
  ]
  const changing = /_usage_percent$|^(last_seen|load|updated_at|stats|state_since)$/
  const lasting = (key: string, value: unknown) => {
    if (changing.test(key)) return undefined
    // A compute tries for some seconds whether guests run under KVM here.
    return key === 'labels' && Array.isArray(value) ? value.filter((label) => label !== 'kvm') : value
  }
  const state: Record<string, unknown> = {}
  for (const path of paths) {
    const answer = await ask('GET', path)
    const text = await answer.text()
    state[path] = [answer.status, answer.ok ? JSON.parse(text, lasting) : text]
  }
  return state
}

/**
 * Asks every endpoint for everything of another organization, with a token of one. No answer shows anything of the other, and nothing of
 * it has changed afterwards.
 */
export async function staysApart(asking: Ask, theirs: Filled): Promise<void> {
  // The list of labs shows an edit a little later.
  const { ask, project_id } = theirs
  const lab = () => call<LabProject>(ask, 'GET', `/v2/projects/${project_id}`)
  const listed = async () =>
    (await call<LabProject[]>(ask, 'GET', '/v2/projects')).find((it) => it.project_id === project_id)?.revision
  await expect.poll(async () => (await listed()) === (await lab()).revision).toBe(true)
  const before = await stateOf(theirs)
  const leaks: string[] = []
  const all = endpoints.flatMap((endpoint) =>
    pathsOf(endpoint, theirs).flatMap((path, index) =>
      // The header is looked at before the path: once for each endpoint.
      sendings(endpoint, theirs).flatMap((sent) =>
        sent[1] === undefined || index === 0 ? [{ endpoint, path, sent }] : [],
      ),
    ),
  )
  const send = async ({ endpoint, path, sent: [body, headers] }: (typeof all)[number]) => {
    const { method } = endpoint
    const answer = await asking(method, path, body, headers)
    const isStream = endpoint.websocket === true && answer.ok
    const text = `${isStream ? '' : await answer.text()} ${JSON.stringify([...answer.headers])}`
    await answer.body?.cancel().catch(() => {})
    const what = `${method} ${path}: ${answer.status} ${text.slice(0, 200)}`
    // No other organization can have these ids; the URL of what a compute may have is composed without a look.
    const { node_id, link_id, job_id, token_id, template_id } = theirs
    const isOfIt = [node_id, link_id, job_id, token_id, template_id].some((id) => path.includes(id))
    if (isOfIt && answer.ok && !path.startsWith('/v2/computes/endpoint/')) leaks.push(what)
    // A word that was sent may be said again, such as in an error.
    const sent = `${decodeURIComponent(path)} ${JSON.stringify(body)}`.toLowerCase()
    if (theirs.markers.some((it) => !sent.includes(it.toLowerCase()) && text.includes(it))) leaks.push(what)
    if (headers !== undefined && answer.ok && endpoint.public !== true) leaks.push(what)
    if (answer.status >= 500 && ![501, 503].includes(answer.status)) leaks.push(what)
  }
  // What is made by ids of the other organization is in the lists of this one: lists come first.
  const isGet = ({ endpoint }: (typeof all)[number]) => endpoint.method === 'GET'
  await mapLimit(all.filter(isGet), send, together)
  await mapLimit(
    all.filter((it) => !isGet(it)),
    send,
    together,
  )
  expect(leaks).toEqual([])
  expect(await stateOf(theirs)).toEqual(before)
}

/** The path of an endpoint with everything of an organization that it can be about. */
function pathsOf({ path }: Endpoint, theirs: Filled): string[] {
  const { project_id, node_id, compute_id } = theirs
  const words = path.startsWith('/v2/projects') ? [project_id, `${theirs.name}-lab`] : [project_id]
  const values: Record<string, readonly string[]> = {
    ...{ project_id: words, node_id: [node_id], vm_id: [node_id], link_id: [theirs.link_id] },
    ...{ job_id: [theirs.job_id], token_id: [theirs.token_id], organization_id: [theirs.name, 'default'] },
    template_id: [theirs.template_id, `${theirs.name}-template`],
    compute_id: [compute_id, 'local'],
    emulator: ['projects'],
    action: path.startsWith('/v2/computes')
      ? [`${project_id}`, `${project_id}/pc/nodes/${node_id}`, 'pc/images']
      : [`pc/nodes/${node_id}`],
    path: ['project-files/captures/a.pcap'],
    symbol_id: ['router'],
  }
  let paths = [path]
  for (const [, name = ''] of path.matchAll(/\{(\w+)\}/g))
    paths = paths.flatMap((it) => (values[name] ?? ['0']).map((value) => it.replace(`{${name}}`, value)))
  return paths
}

/** Bodies that name what belongs to the organization, and the header that names it. */
function sendings(endpoint: Endpoint, theirs: Filled): [body: unknown, headers?: Record<string, string>][] {
  const { method, path } = endpoint
  if (method === 'GET' || method === 'DELETE') return [[undefined], [undefined, within(theirs.name)]]
  const { project_id, node_id, compute_id } = theirs
  const end = { project_id, node_type: 'pc', node_id, adapter_number: 0, port_number: 0 }
  if (path === '/v2/links') return [[{ nodes: [end, { ...end, adapter_number: 1 }] }]]
  if (path.endsWith('/projects')) return [[{ name: 'mine', project_id, compute_id }]]
  if (path === '/v2/compute/tickets' || path === '/v2/session') return [[{}]]
  if (path === '/v2/tokens') return [[{ name: 'mine', purpose: 'join', compute_id }]]
  if (path === '/v2/organizations') return [[{ organization_id: 'mine' }]]
  return [[{ name: 'changed' }], [{ name: 'changed' }, within(theirs.name)]]
}
