import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabLink } from '../../src/model/lab/link.ts'
import type { LabNode } from '../../src/model/lab/node.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import { portOf } from '../support/gateway-lab.ts'
import { type Ask, staysUnseen } from '../support/others-project.ts'
import { TestService } from '../support/service.ts'
import { zipOf } from '../support/zip.ts'

const adminToken = 'admin-of-tests-0123456789'
let service: TestService
beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded', token: adminToken, 'rate_limit.per_s': 0 })
})
afterAll(() => service?.close())

const askAs =
  (token: string): Ask =>
  (method, path, { body, headers } = {}) =>
    service.fetch(path, {
      method,
      ...(body !== undefined && { body }),
      headers: { ...headers, authorization: `Bearer ${token}` },
    })
const admin = askAs(adminToken)
const json = async <T>(answer: Promise<Response>): Promise<T> => {
  const it = await answer
  if (!it.ok) throw new Error(`${it.status} ${await it.text()}`)
  return (await it.json()) as T
}
const post = <T>(ask: Ask, path: string, body: unknown) => json<T>(ask('POST', path, { body: JSON.stringify(body) }))

const refusal = async (answer: Promise<Response>) => {
  const it = await answer
  return { status: it.status, message: ((await it.json()) as { message?: string }).message }
}

async function tokenFor(...projects: string[]): Promise<Ask> {
  const { token } = await post<{ token: string }>(admin, '/v2/tokens', { name: 'student', role: 'operate', projects })
  return askAs(token)
}

async function labOf(name: string) {
  const project = await post<LabProject>(admin, '/v2/projects', { name })
  const at = `/v2/projects/${project.project_id}`
  const nodes: LabNode[] = []
  for (const number of [1, 2])
    nodes.push(await post(admin, `${at}/nodes`, { name: `${name}-PC${number}`, node_type: 'pc' }))
  const link = await post<LabLink>(admin, `${at}/links`, { nodes: nodes.map((node) => `${node.name}:e0`) })
  return { ...project, at, nodes, link }
}

describe('a token for some projects', () => {
  it('lists the projects that it names, by id, name or prefix, on both levels of the interface', async () => {
    const [one, two, three] = [await labOf('class-1'), await labOf('Class-2'), await labOf('exam')]
    const names = async (ask: Ask) =>
      (await json<LabProject[]>(ask('GET', '/v2/projects'))).map(({ name }) => name).sort()
    expect(await names(await tokenFor('class-*'))).toEqual(['Class-2', 'class-1'])
    const mixed = await tokenFor('EXAM', one.project_id)
    expect(await names(mixed)).toEqual(['class-1', 'exam'])
    const listed = await json<LabProject[]>(mixed('GET', '/v2/compute/projects'))
    expect(listed.map(({ project_id }) => project_id).sort()).toEqual([one.project_id, three.project_id].sort())
    expect((await mixed('GET', `/v2/compute/projects/${two.project_id}`)).status).toBe(404)
    expect((await mixed('GET', `/v2/computes/local/projects/${one.project_id}`)).status).toBe(200)
    for (const { at } of [one, two, three]) await admin('DELETE', at)
  })

  it('works in them, and creates projects whose names it has', async () => {
    const ask = await tokenFor('mine-*')
    expect((await ask('POST', '/v2/projects', { body: '{"name":"theirs"}' })).status).toBe(403)
    await post(ask, '/v2/projects', { name: 'mine-1' })
    await post(ask, '/v2/projects/mine-1/nodes', { name: 'PC1', node_type: 'pc' })
    expect((await ask('POST', '/v2/projects/mine-1/nodes/start')).status).toBe(204)
    expect((await ask('PUT', '/v2/projects/mine-1', { body: '{"name":"theirs"}' })).status).toBe(403)
    expect((await ask('PUT', '/v2/projects/mine-1', { body: '{"name":"mine-2"}' })).status).toBe(200)
    expect((await ask('DELETE', '/v2/projects/mine-2')).status).toBe(204)
    const id = crypto.randomUUID()
    const taken = JSON.stringify({ name: 'mine-3', project_id: id })
    expect((await ask('POST', '/v2/projects', { body: taken })).status).toBe(403)
  })

  it('gives no project a name out of its scope: by a copy, an import or an undo', async () => {
    const ask = await tokenFor('own-*')
    await post(ask, '/v2/projects', { name: 'own-a' })
    const refused = async (answer: Promise<Response>) => {
      const { status, json } = await answer.then(async (it) => ({ status: it.status, json: await it.json() }))
      expect([status, json]).toMatchObject([403, { message: expect.stringMatching(/own-\*|choose a directory/) }])
    }
    const copy = (input: object) => ask('POST', '/v2/projects/own-a/duplicate', { body: JSON.stringify(input) })
    await refused(copy({ name: 'theirs' }))
    await refused(copy({ name: 'own-b', path: '/tmp/own-b' }))
    expect((await copy({ name: 'own-b' })).status).toBe(201)

    const archive = await (await ask('GET', '/v2/projects/own-a/export')).arrayBuffer()
    const theirs = await labOf('theirs')
    const into = (id: string, query: string) => {
      return ask('POST', `/v2/projects/${id}/import${query}`, { body: archive })
    }
    await refused(into(crypto.randomUUID(), '?name=mine'))
    expect((await into(theirs.project_id, '?name=own-c')).status).toBe(404)
    expect((await into(crypto.randomUUID(), '?name=own-c')).status).toBe(201)
    expect((await into(crypto.randomUUID(), '')).status).toBe(201)
    const empty = { name: 'own-images', revision: 9, topology: { nodes: [], links: [], drawings: [] } }
    const document = { name: 'project.gns3', data: JSON.stringify(empty) }
    const body = new Uint8Array(zipOf([document, { name: 'images/QEMU/a.img', data: 'x' }])).buffer
    const withImage = await ask('POST', `/v2/projects/${crypto.randomUUID()}/import`, { body })
    // Images are of all projects: they are not stored.
    expect([withImage.status, await json(admin('GET', '/v2/compute/machine-emulator/images'))]).toEqual([201, []])

    await post(admin, '/v2/projects', { name: 'hidden' })
    await json(admin('PUT', '/v2/projects/hidden', { body: '{"name":"own-d"}' }))
    await refused(ask('POST', '/v2/projects/own-d/undo?whose=all'))
    expect((await ask('GET', '/v2/projects/own-d')).status).toBe(200)
    const all = await json<LabProject[]>(ask('GET', '/v2/projects'))
    expect(all.map(({ name }) => name).sort()).toEqual(['own-a', 'own-a2', 'own-b', 'own-c', 'own-d', 'own-images'])
    for (const { project_id } of all) await admin('DELETE', `/v2/projects/${project_id}`)
    await admin('DELETE', theirs.at)
  })

  it('imports no archive under the id of a project of others, on whichever compute of a gateway that is', async () => {
    const [gateway, one, two] = await Promise.all([
      TestService.start({ gateway: true, token: adminToken, 'rate_limit.per_s': 0 }),
      TestService.start({ 'pc.engine': 'embedded' }),
      TestService.start({ 'pc.engine': 'embedded' }),
    ])
    const askIt =
      (token: string): Ask =>
      (method, path, { body } = {}) =>
        gateway.fetch(path, {
          method,
          ...(body !== undefined && { body }),
          headers: { authorization: `Bearer ${token}` },
        })
    const all = askIt(adminToken)
    const add = (compute_id: string, port: number) =>
      post(all, '/v2/computes', { compute_id, protocol: 'http', host: '127.0.0.1', port })
    await add('one', portOf(one))
    const { project_id } = await post<{ project_id: string }>(all, '/v2/compute/projects', { name: 'theirs' })
    await add('two', portOf(two))
    // Labs are made on the other compute from here on.
    await json(all('PUT', '/v2/computes/one', { body: '{"accepts_projects":false}' }))
    const scope = { name: 'student', role: 'operate', projects: ['mine*'] }
    const ask = askIt((await post<{ token: string }>(all, '/v2/tokens', scope)).token)
    await post(ask, '/v2/projects', { name: 'mine' })
    const body = await (await ask('GET', '/v2/projects/mine/export')).arrayBuffer()
    const into = (by: Ask, id: string) => by('POST', `/v2/projects/${id}/import?name=mine-too`, { body })

    const refused = await into(ask, project_id)
    expect([refused.status, refused.headers.get('x-patchbay-error')]).toEqual([409, 'project-exists'])
    expect((await ask('GET', `/v2/computes/one/projects/${project_id}`)).status).toBe(403)
    expect((await ask('GET', `/v2/compute/projects/${project_id}`)).status).toBe(404)
    expect((await into(ask, crypto.randomUUID())).status).toBe(201)

    // A compute that cannot be asked may have it.
    await add('away', 1)
    const unknown = await into(ask, crypto.randomUUID())
    expect([unknown.status, unknown.headers.get('retry-after')]).toEqual([503, '5'])
    expect((await into(all, crypto.randomUUID())).status).toBe(201)
  })

  it('applies lab files to projects of its own, and makes these, by name and by id', async () => {
    const theirs = await labOf('theirs-too')
    const ask = await tokenFor('filed-*')
    const all = { take_over: true, delete_extra: true, recreate: true, restart: true }
    const apply = (word: string, name: string, dry_run: boolean) => {
      const document = `lab: ${name}\nnodes:\n  PC1: { kind: pc }\n`
      const body = JSON.stringify({ document, ...all })
      return ask('PUT', `/v2/projects/${word}/topology?dry_run=${dry_run}`, { body })
    }
    const before = await json(admin('GET', `${theirs.at}/topology`))
    for (const isDry of [true, false]) {
      for (const word of ['theirs-too', 'THEIRS-TOO', theirs.project_id]) {
        const { status, message } = await refusal(apply(word, 'theirs-too', isDry))
        expect([word, status, message]).toEqual([word, 404, `project_id: there is no project ${word}`])
        expect((await apply(word, 'filed-1', isDry)).status).toBe(404)
      }
      expect((await apply('others-new', 'others-new', isDry)).status).toBe(403)
    }
    expect(await json(admin('GET', `${theirs.at}/topology`))).toEqual(before)

    expect((await apply('filed-1', 'filed-1', true)).status).toBe(200)
    expect((await apply('filed-1', 'filed-1', false)).status).toBe(202)
    await expect
      .poll(async () => (await json<LabNode[]>(ask('GET', '/v2/projects/filed-1/nodes'))).map(({ name }) => name))
      .toEqual(['PC1'])

    // The id of a lab follows from its first name.
    const first = await json<{ project_id: string }>(admin('GET', '/v2/projects/filed-1'))
    await json(admin('PUT', `/v2/projects/${first.project_id}`, { body: '{"name":"theirs-now"}' }))
    expect((await apply('filed-1', 'filed-1', false)).status).toBe(404)
    for (const at of [theirs.at, `/v2/projects/${first.project_id}`]) await admin('DELETE', at)
  })

  it('shows the jobs of its projects, and no others', async () => {
    const [seen, unseen] = [await labOf('jobs-1'), await labOf('others-1')]
    const begin = ({ at }: { at: string }) => post<LabJob>(admin, `${at}/jobs`, { action: 'start' })
    const [mine, other] = [await begin(seen), await begin(unseen)]
    const ask = await tokenFor('jobs-*')
    expect((await json<LabJob[]>(ask('GET', '/v2/jobs'))).map(({ job_id }) => job_id)).toEqual([mine.job_id])
    expect((await ask('GET', `/v2/jobs/${mine.job_id}`)).status).toBe(200)
    for (const method of ['GET', 'DELETE']) expect((await ask(method, `/v2/jobs/${other.job_id}`)).status).toBe(404)
    for (const { at } of [seen, unseen]) await admin('DELETE', at)
  })

  it('shows and changes nothing of other projects by any endpoint', async () => {
    const secret = await labOf('Unseen-lab')
    await labOf('own-1')
    const asked = await tokenFor('own-*')
    const names = ['Unseen-lab', ...secret.nodes.map(({ name }) => name)]
    const [node_id = ''] = secret.nodes.map((node) => node.node_id)
    await staysUnseen({ project_id: secret.project_id, node_id, link_id: secret.link.link_id, names }, { asked, admin })
  })

  it('gets events of these projects only', async () => {
    const asked = await tokenFor('heard-*')
    const feed = await asked('GET', '/v2/notifications')
    for (const name of ['hidden-1', 'heard-1', 'hidden-2', 'heard-2']) await labOf(name)
    let text = ''
    for await (const piece of feed.body as unknown as AsyncIterable<Uint8Array>) {
      text += new TextDecoder().decode(piece)
      if (text.includes('heard-2-PC2')) break
    }
    expect(text).toContain('heard-1-PC1')
    expect(text).not.toContain('hidden')
  })

  it('gives tickets and sessions of the same projects', async () => {
    const other = await labOf('away-1')
    const asked = await tokenFor('near-*')
    const { ticket } = await json<{ ticket: string }>(asked('POST', '/v2/compute/tickets'))
    const answer = await service
      .fetch(`${other.at}/notifications/ws?ticket=${ticket}`, { headers: { upgrade: 'websocket' } })
      .catch(() => undefined)
    expect(answer?.status ?? 404).not.toBe(101)
    const { token } = await post<{ token: string }>(admin, '/v2/tokens', {
      name: 's',
      role: 'operate',
      projects: ['near-*'],
    })
    const session = await service.fetch('/v2/session', {
      method: 'POST',
      body: JSON.stringify({ token }),
      headers: { 'content-type': 'application/json' },
    })
    const cookie = (session.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
    const seen = await service.fetch('/v2/projects', { headers: { cookie } })
    expect([seen.status, await seen.json()]).toEqual([200, []])
  })

  it('is refused where a scope has no meaning, or is too long', async () => {
    const status = async (input: object) =>
      (await admin('POST', '/v2/tokens', { body: JSON.stringify({ name: 'x', ...input }) })).status
    expect(await status({ purpose: 'join', projects: ['a'] })).toBe(400)
    expect(await status({ role: 'read', projects: [] })).toBe(400)
    expect(await status({ role: 'read', projects: Array.from({ length: 32 }, () => 'x'.repeat(200)) })).toBe(400)
  })
})
