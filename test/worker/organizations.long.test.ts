import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AccessToken } from '../../src/model/access/access-token.ts'
import type { Compute } from '../../src/model/compute.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import type { Organization } from '../../src/model/organization.ts'
import { signingKey } from '../../src/server/auth/signed-text.ts'
import { readSignedToken } from '../../src/server/auth/token-text.ts'
import { asAdmin, CountingWorker } from '../support/counting-worker.ts'
import { hangMs } from '../support/limits.ts'
import { type Ask, askAs, call, joinCompute, makeOrganization, within } from '../support/organizations.ts'
import { adminToken, WorkerGateway } from '../support/worker-gateway.ts'

let gateway: WorkerGateway
const as = (text: string): Ask => askAs(() => gateway.url, text)
const admin = as(adminToken)

beforeAll(async () => {
  gateway = await WorkerGateway.startForAll(await mkdtemp(join(tmpdir(), 'patchbay-')), { RATE_PER_S: '0' })
})

afterAll(async () => {
  await gateway?.stop()
  if (gateway !== undefined) await rm(gateway.data, { recursive: true, force: true })
})

const wordOf = async (answer: Promise<Response>) => {
  const it = await answer
  return [it.status, it.headers.get('x-patchbay-error')]
}

test('the administrator of the deployment makes, changes and deletes organizations, also after a restart', async () => {
  const token = await makeOrganization(admin, 'school', { max_projects: 1, max_computes: 1 })
  const ask = as(token)
  expect(await wordOf(admin('POST', '/v2/organizations', { organization_id: 'school' }))).toEqual([409, 'conflict'])
  expect(await wordOf(admin('GET', '/v2/tokens', undefined, within('none')))).toEqual([404, 'no-such-organization'])
  expect(await wordOf(ask('GET', '/v2/organizations'))).toEqual([403, 'forbidden'])
  expect(await wordOf(ask('GET', '/v2/tokens', undefined, within('default')))).toEqual([403, 'forbidden'])
  await gateway.restart()
  const all = await call<Organization[]>(admin, 'GET', '/v2/organizations')
  expect(all.map(({ organization_id }) => organization_id)).toEqual(expect.arrayContaining(['default', 'school']))
  const names = async (who: Ask, headers?: Record<string, string>) =>
    ((await (await who('GET', '/v2/tokens', undefined, headers)).json()) as AccessToken[]).map(({ name }) => name)
  expect(await names(ask)).toEqual(['school-admin'])
  expect(await names(admin, within('school'))).toEqual(['school-admin'])
  expect(await names(admin)).toEqual([])

  const session = await gateway.fetch('POST', '/v2/session', { token: adminToken }, { headers: within('school') })
  const cookie = (session.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
  const seen = await fetch(`${gateway.url}/v2/tokens`, { headers: { cookie } })
  expect(((await seen.json()) as AccessToken[]).map(({ name }) => name)).toEqual(['school-admin'])

  await joinCompute(gateway.url, ask, 'school')
  const { project_id } = await call<LabProject>(ask, 'POST', '/v2/projects', { name: 'first' })
  for (const path of ['/v2/projects', '/v2/compute/projects'])
    expect(await wordOf(ask('POST', path, { name: 'second' }))).toEqual([409, 'limit-reached'])
  const input = { name: 'two', protocol: 'http', host: '127.0.0.1', port: 1 }
  expect(await wordOf(ask('POST', '/v2/computes', input))).toEqual([409, 'limit-reached'])
  await call(admin, 'PUT', '/v2/organizations/school', { max_projects: 2 })
  await call(ask, 'POST', '/v2/compute/projects', { name: 'second' })

  expect(await wordOf(admin('DELETE', '/v2/organizations/school'))).toEqual([409, 'conflict'])
  expect((await admin('DELETE', '/v2/organizations/school?force=yes')).status).toBe(204)
  expect(await wordOf(admin('GET', '/v2/organizations/school'))).toEqual([404, 'no-such-organization'])
  // An organization of the same name has nothing of the one before.
  const again = as(await makeOrganization(admin, 'school'))
  expect(await call<LabProject[]>(again, 'GET', '/v2/projects')).toEqual([])
  expect((await again('GET', `/v2/projects/${project_id}`)).status).toBe(404)
  await expect.poll(async () => (await ask('GET', '/v2/tokens')).status, { interval: 200 }).toBe(401)
})

test('an organization is there as soon as it was made, also when it was asked for before', async () => {
  expect(await wordOf(admin('GET', '/v2/computes', undefined, within('early')))).toEqual([404, 'no-such-organization'])
  await makeOrganization(admin, 'early')
})

test('a deleted organization accepts no more data, which a later one of its name would have', async () => {
  await makeOrganization(admin, 'late')
  // The isolate remembers for some seconds that it is there.
  expect((await admin('GET', '/v2/projects', undefined, within('late'))).status).toBe(200)
  await call(admin, 'DELETE', '/v2/organizations/late')
  const compute = { name: 'late', protocol: 'http', host: '127.0.0.1', port: 1 }
  const late: [string, object][] = [
    ['/v2/tokens', { name: 'late', role: 'admin' }],
    ['/v2/computes', compute],
    ['/v2/compute/projects', { name: 'late' }],
    ['/v2/templates', { name: 'late', template_type: 'pc', compute_id: null }],
  ]
  for (const [path, body] of late)
    expect(await wordOf(admin('POST', path, body, within('late')))).toEqual([404, 'no-such-organization'])
  await call(admin, 'POST', '/v2/organizations', { organization_id: 'late' })
  for (const path of ['/v2/tokens', '/v2/computes', '/v2/projects'])
    expect(await (await admin('GET', path, undefined, within('late'))).json()).toEqual([])
})

test('an organization cannot make the Worker send requests to itself', async () => {
  const token = await makeOrganization(admin, 'round')
  const { port } = new URL(gateway.url)
  const input = { compute_id: 'itself', protocol: 'http', host: '127.0.0.1', port: Number(port) }
  const itself = { ...input, user: 'any', password: token }
  const refused = await as(token)('POST', '/v2/computes', itself)
  const { message } = (await refused.json()) as { message: string }
  expect([refused.status, message]).toEqual([409, expect.stringContaining('one of its own computes')])
  // Nor later, when its password is another one.
  await call(as(token), 'POST', '/v2/computes', { ...input, port: 1, user: 'any', password: token })
  await call(as(token), 'PUT', '/v2/computes/itself', { port: Number(port) })
  const state = async () => {
    const [it] = await call<Compute[]>(as(token), 'GET', '/v2/computes')
    return [it?.connected, it?.last_error]
  }
  await expect.poll(state, { timeout: hangMs }).toEqual([false, expect.stringContaining('one of its own computes')])
  expect([409, 503]).toContain((await as(token)('GET', '/v2/computes/itself/projects')).status)
})

test('default can have limits, too', async () => {
  const gateway = await WorkerGateway.start()
  const as = (text: string): Ask => askAs(() => gateway.url, text)
  const admin = as(adminToken)
  const { token } = await call<{ token: string }>(admin, 'POST', '/v2/tokens', { name: 'one', role: 'admin' })
  await call(admin, 'PUT', '/v2/organizations/default', { max_computes: 1, requests_per_s: 1 })
  await gateway.restart()
  const input = (name: string) => ({ name, protocol: 'http', host: '127.0.0.1', port: 1 })
  await call(admin, 'POST', '/v2/computes', input('one'))
  expect(await wordOf(admin('POST', '/v2/computes', input('two')))).toEqual([409, 'limit-reached'])
  const answers = await Promise.all(Array.from({ length: 12 }, () => as(token)('GET', '/v2/version')))
  expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThan(0)
  expect((await admin('GET', '/v2/version')).status).toBe(200)
  await makeOrganization(admin, 'school')
  const all = await call<Organization[]>(admin, 'GET', '/v2/organizations')
  expect(all.map((it) => [it.organization_id, it.max_computes])).toEqual([
    ['default', 1],
    ['school', 0],
  ])
})

test('a token of an organization says so in a word that a version without organizations refuses', async () => {
  const token = await makeOrganization(admin, 'words')
  const key = await signingKey('a secret of tests that is long enough', 'tokens')
  expect(await readSignedToken([key], token)).toMatchObject({ organization: 'words', role: 'admin', purpose: 'user' })
  const [, payload = ''] = /^pb_[0-9a-f]{16}_([^.]+)\./.exec(token) ?? []
  expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toMatchObject({ p: 'o-user', o: 'words' })
})

test('a token of an organization costs no call of the object of default', async () => {
  const worker = await CountingWorker.start()
  const admin = askAs(() => worker.url, adminToken)
  const token = await makeOrganization(admin, 'school')
  const asked = async () => (await worker.counts()).calls.hasOrganization ?? 0
  const before = await asked()
  const ask = askAs(() => worker.url, token)
  for (const path of ['/v2/projects', '/v2/computes', '/v2/tokens', '/v2/session'])
    expect((await ask('GET', path)).status).toBe(200)
  expect(await asked()).toBe(before)
  // The administrator's header names one that nothing proves: it is asked for, and remembered.
  for (const id of ['none', 'none'])
    expect(await worker.status('GET', '/v2/projects', { ...asAdmin, ...within(id) })).toBe(404)
  expect(await asked()).toBe(before + 1)
})
