import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { version } from '../../runtime/node/os/system/version.ts'
import { json, StandIn } from '../support/fleet.ts'
import { hangMs } from '../support/limits.ts'
import { type Ask, askAs, call } from '../support/organizations.ts'
import { WorkerGateway } from '../support/worker-gateway.ts'

const projects = '/v2/compute/projects'

const record = (project_id: string) => ({
  ...{ project_id, name: 'lab', path: '/x', location: '/', temporary: false, variables: null },
})

/** A compute that has the projects which it was told to make, and a node in each; what it is asked for others is 404. */
async function computeWithNodes() {
  const compute = await StandIn.start()
  compute.capabilities = (_, res) => json(res, 200, { version, platform: 'linux', node_types: ['pc'] })
  const here = new Set<string>()
  compute.answer = (req, res) => {
    const { pathname, search } = new URL(req.url ?? '', 'http://compute')
    const [, , , , project_id = '', kind] = pathname.split('/')
    if (req.method === 'POST' && project_id === '') {
      let body = ''
      req.on('data', (data) => {
        body += data
      })
      return req.on('end', () => {
        const { project_id } = JSON.parse(body) as { project_id: string }
        here.add(project_id)
        json(res, 201, record(project_id))
      })
    }
    const refuse = (word: string) => {
      res.setHeader('X-Patchbay-Error', word)
      json(res, 404, { message: word, status: 404 })
    }
    if (!here.has(project_id)) return refuse('no-such-project')
    if (kind === undefined) return json(res, 200, record(project_id))
    if (search.includes('missing') || kind !== 'pc') return refuse('no-such-node')
    res.setHeader('ETag', '"7"')
    json(res, 200, { node: req.url })
  }
  return { compute, here }
}

let gateway: WorkerGateway

beforeAll(async () => {
  gateway = await WorkerGateway.startForAll(await mkdtemp(join(tmpdir(), 'patchbay-')), { RATE_PER_S: '0' })
})

afterAll(async () => {
  await gateway?.stop()
  if (gateway !== undefined) await rm(gateway.data, { recursive: true, force: true })
})

/** A project on such a compute of the gateway, and a client with a token to which everything is known. */
async function bed(more: { name?: string; projects?: string[] } = {}) {
  const { compute, here } = await computeWithNodes()
  const compute_id = randomUUID()
  await gateway.call('POST', '/v2/computes', { ...compute.input(), compute_id, name: compute_id })
  onTestFinished(async () => void (await gateway.fetch('DELETE', `/v2/computes/${compute_id}`)))
  const project_id = more.projects?.[0] ?? randomUUID()
  await gateway.call('POST', projects, { name: 'lab', project_id, compute_id })
  const { token, token_id } = await gateway.call<{ token: string; token_id: string }>('POST', '/v2/tokens', {
    ...{ name: 'alice', role: 'read', purpose: 'user', ...more },
  })
  const ask: Ask = askAs(() => gateway.url, token)
  const node = `${projects}/${project_id}/pc/nodes/${randomUUID()}`
  const askedFor = (path: string) => compute.asked.filter((it) => it === `GET ${path}`).length
  // The first request finds out what the others know.
  await call(ask, 'GET', node)
  return { compute, compute_id, here, ask, node, project_id, token_id, askedFor }
}

test('what is answered directly is the same as what the administrator gets the usual way', async () => {
  const { compute, ask, node } = await bed()
  const headers = { 'x-request-id': 'one', origin: 'https://example.org' }
  const [direct, usual] = [
    await ask('GET', `${node}?a=b`, undefined, headers),
    await gateway.fetch('GET', `${node}?a=b`, undefined, { headers }),
  ]
  const shown = async (answer: Response) => [answer.status, Object.fromEntries(answer.headers), await answer.json()]
  expect(await shown(direct)).toEqual(await shown(usual))
  const [first, second] = compute.headers.filter((_, index) => compute.asked[index] === `GET ${node}?a=b`)
  expect(first).toEqual({ ...second, 'x-patchbay-via': 'user', 'x-patchbay-by': 'alice' })
})

test('a file is answered with all headers about it, and a part of it where a part is asked for', async () => {
  const { compute, ask, project_id } = await bed()
  const usual = compute.answer
  compute.answer = (req, res) => {
    if (!req.url?.includes('/files/')) return usual(req, res)
    const headers = {
      'Content-Type': 'application/json',
      'Accept-Ranges': 'bytes',
      'Content-Disposition': 'attachment',
    }
    res.writeHead(206, { ...headers, 'Content-Range': `${req.headers.range?.replace('=', ' ')}/9`, ETag: '"1"' })
    res.end('{"')
  }
  const answer = await ask('GET', `${projects}/${project_id}/files/a.json`, undefined, { range: 'bytes=0-1' })
  expect([answer.status, await answer.text()]).toEqual([206, '{"'])
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    ...{ 'accept-ranges': 'bytes', 'content-disposition': 'attachment', 'content-range': 'bytes 0-1/9', etag: '"1"' },
  })
})

test('an error is asked for once, and a project that its compute has lost is searched for', async () => {
  const { ask, node, askedFor, here, project_id } = await bed()
  const missing = `${node.slice(0, node.lastIndexOf('/'))}/${randomUUID()}?missing`
  const answer = await ask('GET', missing)
  expect([answer.status, answer.headers.get('x-patchbay-error'), askedFor(missing)]).toEqual([404, 'no-such-node', 1])

  here.delete(project_id)
  const lost = await ask('GET', node)
  expect([lost.status, lost.headers.get('x-patchbay-error')]).toEqual([404, 'no-such-project'])
})

test('a token for some projects reads these alone', async () => {
  const [own, other] = [randomUUID(), randomUUID()]
  const { ask, node, compute_id } = await bed({ projects: [own] })
  await gateway.call('POST', projects, { name: 'other', project_id: other, compute_id })
  const theirs = node.replace(own, other)
  await gateway.call('GET', theirs)
  for (let asked = 0; asked < 3; asked++) {
    expect((await ask('GET', node)).status).toBe(200)
    const refused = await ask('GET', theirs)
    expect([refused.status, refused.headers.get('x-patchbay-error')]).toEqual([404, 'no-such-project'])
  }
})

test('a token that was revoked reads nothing more, and every read is counted by the name of its token', async () => {
  const { ask, node, token_id } = await bed({ name: 'counted' })
  for (let asked = 0; asked < 4; asked++) await call(ask, 'GET', node)
  const metrics = () => gateway.fetch('GET', '/metrics').then((answer) => answer.text())
  await vi.waitFor(async () => expect(await metrics()).toContain('credential="counted"} 5\n'), {
    timeout: hangMs,
    interval: 200,
  })
  await gateway.call('DELETE', `/v2/tokens/${token_id}`)
  await vi.waitFor(async () => expect((await ask('GET', node)).status).toBe(401), { timeout: hangMs, interval: 200 })
})
