import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { AccessToken } from '../../src/model/access/access-token.ts'
import type { Compute } from '../../src/model/compute.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import type { Organization } from '../../src/model/organization.ts'
import { portOf } from '../support/gateway-lab.ts'
import { type Ask, askAs, call, joinCompute, makeOrganization, within } from '../support/organizations.ts'
import { TestService } from '../support/service.ts'

const adminToken = 'admin-of-tests-0123456789'
let gateway: TestService
beforeAll(async () => {
  gateway = await TestService.startForAll({ gateway: true, token: adminToken, 'rate_limit.per_s': 0 })
  return () => gateway.close()
})
const as = (token: string): Ask => askAs(() => gateway.url, token)
const admin = as(adminToken)
const message = async (answer: Promise<Response>) => {
  const it = await answer
  return { ...((await it.json()) as { message: string; status: number }), code: it.headers.get('x-patchbay-error') }
}

describe('the organizations of a gateway', () => {
  it('are made, changed and deleted by the administrator of the deployment; default is always there', async () => {
    const made = await call<Organization>(admin, 'POST', '/v2/organizations', {
      organization_id: 'school',
      name: 'The school',
      max_projects: 3,
    })
    expect(made).toMatchObject({ organization_id: 'school', max_projects: 3, max_computes: 0, requests_per_s: 0 })
    const list = await call<Organization[]>(admin, 'GET', '/v2/organizations')
    expect(list.map(({ organization_id }) => organization_id)).toEqual(['default', 'school'])
    const changed = await call(admin, 'PUT', '/v2/organizations/school', { max_computes: 2, name: null })
    expect(changed).toMatchObject({ name: 'The school', max_projects: 3, max_computes: 2 })
    expect(await call(admin, 'GET', '/v2/organizations/school')).toEqual(changed)
    const ask = (method: string, path: string, body?: unknown) => message(admin(method, path, body))
    expect(await ask('POST', '/v2/organizations', { organization_id: 'school' })).toMatchObject({
      status: 409,
      code: 'conflict',
    })
    expect(await ask('POST', '/v2/organizations', { organization_id: '../x' })).toMatchObject({
      status: 400,
      code: 'invalid-request',
    })
    // No gateway has room for more.
    const crowd = await ask('PUT', '/v2/organizations/school', { max_computes: 1001 })
    expect(crowd).toMatchObject({ status: 400, message: expect.stringMatching(/^max_computes: .*1000/) })
    expect(await call(admin, 'GET', '/v2/organizations/school')).toEqual(changed)
    expect(await ask('DELETE', '/v2/organizations/default')).toMatchObject({ status: 409, code: 'conflict' })
    expect(await ask('DELETE', '/v2/organizations/none')).toMatchObject({ status: 404, code: 'no-such-organization' })
    expect((await admin('DELETE', '/v2/organizations/school')).status).toBe(204)
    expect(await ask('GET', '/v2/organizations/school')).toMatchObject({ status: 404, code: 'no-such-organization' })
    expect(existsSync(join(gateway.data, 'organizations', 'school'))).toBe(false)
  })

  it('cannot be seen or changed by a token, also by one of an administrator of default', async () => {
    const { token } = await call<{ token: string }>(admin, 'POST', '/v2/tokens', { name: 'second', role: 'admin' })
    const own = await makeOrganization(admin, 'tokens')
    for (const ask of [as(token), as(own)]) {
      expect((await ask('GET', '/v2/organizations')).status).toBe(403)
      expect((await ask('POST', '/v2/organizations', { organization_id: 'x' })).status).toBe(403)
      expect((await ask('DELETE', '/v2/organizations/tokens')).status).toBe(403)
    }
    expect((await as(token)('GET', '/v2/projects', undefined, within('tokens'))).status).toBe(403)
    expect((await as(own)('GET', '/v2/projects', undefined, within('default'))).status).toBe(403)
    expect((await as(own)('GET', '/v2/projects', undefined, within('tokens'))).status).toBe(200)
    await call(admin, 'DELETE', '/v2/organizations/tokens')
  })

  it('are chosen by a header of the administrator of the deployment, also for a session and a ticket', async () => {
    await makeOrganization(admin, 'header')
    const tokens = async (headers?: Record<string, string>) => {
      const answer = await admin('GET', '/v2/tokens', undefined, headers)
      return ((await answer.json()) as AccessToken[]).map(({ name }) => name)
    }
    expect(await tokens(within('header'))).toEqual(['header-admin'])
    expect(await tokens()).not.toContain('header-admin')
    expect((await admin('GET', '/v2/tokens', undefined, within('none'))).status).toBe(404)
    expect((await admin('GET', '/v2/tokens', undefined, within('NO/GOOD'))).status).toBe(400)
    const session = await gateway.fetch('/v2/session', {
      method: 'POST',
      body: JSON.stringify({ token: adminToken }),
      headers: { 'content-type': 'application/json', ...within('header') },
    })
    expect(await session.clone().json()).toMatchObject({ role: 'admin', organization: 'header' })
    const cookie = (session.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
    const seen = await gateway.fetch('/v2/tokens', { headers: { cookie } })
    expect(((await seen.json()) as AccessToken[]).map(({ name }) => name)).toEqual(['header-admin'])
    await call(admin, 'DELETE', '/v2/organizations/header')
    expect((await gateway.fetch('/v2/tokens', { headers: { cookie } })).status).toBe(401)
  })

  it('have limits: a request above them is refused before anything changes', async () => {
    const token = await makeOrganization(admin, 'limited', { max_projects: 1, max_computes: 1 })
    const ask = as(token)
    const input = (name: string) => ({ name, protocol: 'http', host: '127.0.0.1', port: 1 })
    expect((await ask('POST', '/v2/computes', input('one'))).status).toBe(201)
    expect(await message(ask('POST', '/v2/computes', input('two')))).toEqual({
      ...{
        status: 409,
        code: 'limit-reached',
        message: 'This organization is limited to 1 compute and has 1: delete one first',
      },
    })
    for (const { compute_id } of await call<Compute[]>(ask, 'GET', '/v2/computes'))
      await call(ask, 'DELETE', `/v2/computes/${compute_id}`)
    await joinCompute(gateway.url, ask, 'limited')
    const { project_id } = await call<LabProject>(ask, 'POST', '/v2/projects', { name: 'first' })
    for (const path of ['/v2/projects', '/v2/compute/projects', '/v1/projects'])
      expect(await message(ask('POST', path, { name: 'second' }))).toMatchObject({ status: 409, code: 'limit-reached' })
    expect((await call<LabProject[]>(ask, 'GET', '/v2/projects')).length).toBe(1)
    await call(admin, 'PUT', '/v2/organizations/limited', { max_projects: 2 })
    await call(ask, 'POST', '/v2/compute/projects', { name: 'second' })
    expect((await message(admin('DELETE', '/v2/organizations/limited'))).message).toContain(
      'projects (2) or computes (1)',
    )
    await call(ask, 'DELETE', `/v2/projects/${project_id}`)

    await call(admin, 'PUT', '/v2/organizations/limited', { requests_per_s: 1 })
    // Requests of an assistant count, and those of its tools.
    const labs = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'labs', arguments: {} } }
    const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
    const said = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const answer = await ask('POST', '/mcp', labs, headers)
        return `${answer.status} ${await answer.text()}`
      }),
    )
    expect(said).toContainEqual(expect.stringMatching(/^200 .*Not done: too-many-requests \(429\)/s))
    const answers = await Promise.all(Array.from({ length: 12 }, () => ask('GET', '/v2/version')))
    expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThan(0)
    expect((await admin('GET', '/v2/version', undefined, within('limited'))).status).toBe(200)
    expect((await admin('DELETE', '/v2/organizations/limited?force=yes')).status).toBe(204)
    expect((await ask('GET', '/v2/version')).status).toBe(401)
  })

  it('have limits for default, too, which stay over a restart', async () => {
    const service = await TestService.start({ gateway: true, token: adminToken, 'rate_limit.per_s': 0 })
    const deployment = askAs(() => service.url, adminToken)
    const { token } = await call<{ token: string }>(deployment, 'POST', '/v2/tokens', { name: 'one', role: 'admin' })
    const ask = askAs(() => service.url, token)
    const limits = { max_projects: 1, max_computes: 1, requests_per_s: 2 }
    const changed = await call(deployment, 'PUT', '/v2/organizations/default', limits)
    expect(changed).toMatchObject({ organization_id: 'default', created_at: null, ...limits })
    await call(deployment, 'POST', '/v2/organizations', { organization_id: 'other' })
    await service.kill('SIGKILL')
    await service.restart()
    const all = await call<Organization[]>(deployment, 'GET', '/v2/organizations')
    expect(all.map((it) => [it.organization_id, it.max_computes])).toEqual([
      ['default', 1],
      ['other', 0],
    ])
    const input = (name: string) => ({ name, protocol: 'http', host: '127.0.0.1', port: 1 })
    await call(deployment, 'POST', '/v2/computes', input('one'))
    expect((await message(deployment('POST', '/v2/computes', input('two')))).code).toBe('limit-reached')
    const answers = await Promise.all(Array.from({ length: 12 }, () => ask('GET', '/v2/version')))
    expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThan(0)
    expect((await deployment('GET', '/v2/version')).status).toBe(200)
  })

  it('cannot make the gateway send requests to itself', async () => {
    const token = await makeOrganization(admin, 'round')
    const input = { name: 'itself', protocol: 'http', host: '127.0.0.1', port: portOf(gateway) }
    const refused = await message(as(token)('POST', '/v2/computes', { ...input, user: 'any', password: token }))
    expect(refused).toMatchObject({ status: 409, message: expect.stringContaining('one of its own computes') })
    await call(admin, 'DELETE', '/v2/organizations/round')
  })

  it('do not count projects that were deleted: with their compute, on it, or as labs', async () => {
    const ask = as(await makeOrganization(admin, 'gone', { max_projects: 1 }))
    const { service, id } = await joinCompute(gateway.url, ask, 'gone')
    const make = async () => (await call(ask, 'POST', '/v2/compute/projects', { name: 'one' })).project_id
    const lost = await make()
    expect((await message(ask('POST', '/v2/compute/projects', { name: 'two' }))).code).toBe('limit-reached')
    await service.call('DELETE', `/v2/compute/projects/${lost}`)
    expect((await ask('DELETE', `/v2/compute/projects/${lost}`)).status).toBe(404)

    const adopted = await make()
    await call(ask, 'POST', `/v2/projects/${adopted}/open`)
    await call(ask, 'DELETE', `/v2/projects/${adopted}`)

    await make()
    await call(ask, 'DELETE', `/v2/computes/${id}`)
    expect((await admin('DELETE', '/v2/organizations/gone')).status).toBe(204)
  })
})
