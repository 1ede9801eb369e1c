import { expect, test } from 'vitest'
import { endpoints } from '../../../../src/endpoints/endpoints.ts'
import { anyOf, type Identity } from '../../../../src/model/access/identity.ts'
import { RateLimit } from '../../../../src/server/auth/rate-limit.ts'
import { Tokens } from '../../../../src/server/auth/tokens.ts'
import { roleOf } from '../../../../src/server/http/endpoint.ts'
import { ask, authApp, basic, bearer, MemoryTokens } from '../../../support/auth-app.ts'

const configured = { user: 'anna', password: 'geheim', token: 't0ken' }

/** A service with one token of each role, that records what it hands on. */
async function service(options: Omit<Parameters<typeof authApp>[0], 'tokens' | 'verifier'> = {}) {
  const tokens = new Tokens({ store: new MemoryTokens() })
  const handedOn: string[] = []
  const fleet = {
    at: (name: string) => ({
      name,
      async send({ method, path }: { method: string; path: string }) {
        handedOn.push(`${method} ${path}`)
        return new Response('[]', { headers: { 'content-type': 'application/json' } })
      },
    }),
  }
  const app = authApp({
    ...{ access: configured, fleet: fleet as never, tokens, ...options },
    verifier: anyOf(async (_, token) => (token === undefined ? undefined : tokens.identify(token))),
  })
  const make = async (role: 'read' | 'operate' | 'admin') => (await tokens.create({ name: role, role })).token
  const made = { read: await make('read'), operate: await make('operate'), admin: await make('admin') }
  const status = async (role: keyof typeof made, method: string, path: string, headers: object = {}) =>
    (await ask(app, method, path, { authorization: bearer(made[role]), ...headers })).status
  return { app, tokens, made, status, handedOn }
}

test('every role has its rights, and no more', async () => {
  const { status, app, made } = await service()
  const statuses = async (method: string, path: string, headers?: object) => [
    await status('read', method, path, headers),
    await status('operate', method, path, headers),
    await status('admin', method, path, headers),
  ]
  expect(await statuses('GET', '/v2/compute/projects')).toEqual([200, 200, 200])
  expect(await statuses('HEAD', '/v2/compute/version')).toEqual([200, 200, 200])
  expect(await statuses('OPTIONS', '/v2/tokens')).toEqual([204, 204, 204])
  expect(await statuses('POST', '/v2/compute/version', { body: { version: '1.2.3' } })).toEqual([200, 200, 200])
  expect(await statuses('POST', '/v2/compute/tickets')).toEqual([403, 201, 201])
  expect(await statuses('POST', '/v2/compute/config/reload')).toEqual([403, 403, 200])
  expect(await statuses('POST', '/v1/config/reload')).toEqual([403, 403, 201])
  expect(await statuses('GET', '/v2/tokens')).toEqual([403, 403, 200])
  expect(await statuses('POST', '/v2/computes', { body: {} })).toEqual([403, 403, 400])
  expect(await statuses('GET', '/nowhere')).toEqual([404, 404, 404])
  const refused = await ask(app, 'POST', '/v2/computes', { authorization: bearer(made.operate) })
  expect(await refused.json()).toEqual({
    message: 'Authorization: this request needs the role admin; "operate" has the role operate',
    status: 403,
  })
  expect(refused.headers.get('x-route')).toBe('/v2/computes')
})

test('endpoints with another effect than their method suggests declare their role', () => {
  const special = endpoints
    .filter((it) => roleOf(it) !== roleOf({ method: it.method }))
    .map((it) => `${roleOf(it)} ${it.method} ${it.path}`)
  const consoles = special.filter((it) => /^operate GET .*\/console\/(ws|vnc|log)$/.test(it))
  expect(consoles).toHaveLength(
    endpoints.filter(({ method, path }) => method === 'GET' && /\/console\/(ws|vnc|log)$/.test(path)).length,
  )
  expect(special.filter((it) => !consoles.includes(it)).sort()).toEqual(
    [
      ...['/v1/version', '/v2/version', '/v2/compute/version'].map((path) => `read POST ${path}`),
      'read POST /v2/projects/{project_id}/presence',
      // Its tools ask the service again, and need roles of their own.
      'read POST /mcp',
      // Answers with a lab file, and changes nothing.
      'read POST /v2/imports',
      ...[
        'v1/projects/{project_id}/dynamips/vms/{vm_id}',
        'v2/compute/projects/{project_id}/dynamips/nodes/{node_id}',
        'v2/projects/{project_id}/nodes/{node_id}/dynamips',
      ].flatMap((node) => ['idlepc_proposals', 'auto_idlepc'].map((word) => `operate GET /${node}/${word}`)),
      ...['POST /v1/config/reload', 'POST /v2/compute/config/reload', 'PUT /v2/appliancevm'].map((it) => `admin ${it}`),
      ...['POST /v2/computes', 'PUT /v2/computes/{compute_id}', 'DELETE /v2/computes/{compute_id}'].map(
        (it) => `admin ${it}`,
      ),
      'admin POST /v2/computes/{compute_id}/drain',
      ...['GET /v2/classes', 'POST /v2/classes', 'DELETE /v2/classes/{class}'].map((it) => `admin ${it}`),
      ...['links', 'reset'].map((word) => `admin POST /v2/classes/{class}/${word}`),
      ...['POST', 'DELETE'].map((method) => `read ${method} /v2/session`),
      ...['GET', 'PUT', 'DELETE'].map((method) => `admin ${method} /v2/organizations/{organization_id}`),
      ...['GET', 'POST'].map((method) => `admin ${method} /v2/organizations`),
      ...['GET /v2/tokens', 'POST /v2/tokens', 'DELETE /v2/tokens/{token_id}'].map((it) => `admin ${it}`),
      ...['POST /v2/tokens/{token_id}/ssh_keys', 'DELETE /v2/tokens/{token_id}/ssh_keys/{key_id}'].map(
        (it) => `admin ${it}`,
      ),
    ].sort(),
  )
})

test('a request that is handed on to a compute needs the role of its endpoint there', async () => {
  const { status, handedOn } = await service()
  const path = '/v2/computes/lab'
  expect(await status('read', 'GET', `${path}/projects/x`)).toBe(200)
  expect(await status('read', 'POST', `${path}/projects/x`)).toBe(403)
  expect(await status('operate', 'POST', `${path}/projects/x`)).toBe(200)
  const node = `${path}/projects/10000000-0000-4000-8000-000000000000/dynamips/nodes/10000000-0000-4000-8000-000000000001`
  expect(await status('read', 'GET', `${node}/auto_idlepc`)).toBe(403)
  // A compute may have words of its own for kinds, and versions what we do not know.
  const alias = node.replace('dynamips', 'c7200')
  for (const word of ['auto_idlepc', 'console/ws']) expect(await status('read', 'GET', `${alias}/${word}`)).toBe(403)
  for (const reload of ['config/reload', 'config/%72eload', 'config/reload/', '%63onfig/reload']) {
    expect([reload, await status('operate', 'POST', `${path}/${reload}`)]).toEqual([reload, 403])
  }
  expect(await status('admin', 'POST', `${path}/config/reload`)).toBe(200)
  expect(handedOn).toEqual([
    'GET /v2/compute/projects/x',
    'POST /v2/compute/projects/x',
    'POST /v2/compute/config/reload',
  ])
})

test('a token is sent as Bearer, or as the password of any user', async () => {
  const { app, made } = await service()
  const status = async (authorization?: string) => (await ask(app, 'GET', '/v1/version', { authorization })).status
  for (const good of [bearer(made.read), basic('anybody', made.read), basic('', made.read), basic('anna', 'geheim')]) {
    expect(await status(good)).toBe(200)
  }
  for (const wrong of [undefined, bearer(`${made.read}0`), basic(made.read, ''), basic('anna', 'x'), 'Basic ???']) {
    expect(await status(wrong)).toBe(401)
  }
  const refused = await ask(app, 'GET', '/v1/version')
  expect(refused.headers.get('www-authenticate')).toContain('Basic realm="patchbay"')
})

test('configured credentials have all rights; without any, all clients have', async () => {
  const { app } = await service()
  for (const authorization of [basic('anna', 'geheim'), bearer('t0ken')]) {
    expect((await ask(app, 'POST', '/v2/compute/config/reload', { authorization })).status).toBe(200)
  }
  const open = authApp({})
  expect((await ask(open, 'POST', '/v2/compute/config/reload')).status).toBe(200)
  expect((await ask(open, 'GET', '/v2/tokens')).status).toBe(404)
  // A verifier alone is protection, too.
  const closed = authApp({ verifier: async () => undefined })
  expect((await ask(closed, 'GET', '/v1/version')).status).toBe(401)
})

test('tokens are made, listed and revoked; the ticket of one that is revoked is void', async () => {
  const { app, tokens } = await service({ upgrade: () => new Response('upgraded') })
  const authorization = bearer('t0ken')
  const create = (body: object) => ask(app, 'POST', '/v2/tokens', { authorization, body })
  const made = await create({ name: 'ops', role: 'operate', expires_in_s: 60 })
  expect(made.status).toBe(201)
  const { token, token_id } = (await made.json()) as { token: string; token_id: string }
  const list = await (await ask(app, 'GET', '/v2/tokens', { authorization })).text()
  expect(list).toContain(token_id)
  expect(list).not.toMatch(/hash|"token"/)
  for (const wrong of [{}, { name: 'x' }, { name: 'x', role: 'root' }, { name: 'x', role: 'read', expires_in_s: 0 }]) {
    expect((await create(wrong)).status).toBe(400)
  }
  const ticket = async () => {
    const answer = await ask(app, 'POST', '/v2/compute/tickets', { authorization: bearer(token) })
    return ((await answer.json()) as { ticket: string }).ticket
  }
  const opens = async (it: string) =>
    (await ask(app, 'GET', `/v2/compute/notifications/ws?ticket=${it}`, { upgrade: 'websocket' })).status
  const [used, left] = [await ticket(), await ticket()]
  expect([await opens(used), await opens(used)]).toEqual([200, 401])
  const revoke = () => ask(app, 'DELETE', `/v2/tokens/${token_id}`, { authorization })
  expect([(await revoke()).status, (await revoke()).status]).toEqual([204, 404])
  expect(await tokens.identify(token)).toBeUndefined()
  expect(await opens(left)).toBe(401)
})

test('a join token opens no endpoint', async () => {
  const { app, tokens } = await service()
  const { token } = await tokens.create({ name: 'lab', purpose: 'join' })
  for (const authorization of [bearer(token), basic('x', token)]) {
    expect((await ask(app, 'GET', '/v1/version', { authorization })).status).toBe(401)
  }
})

test('a ticket has the role of its client, and no more', async () => {
  const node = '/v2/compute/projects/10000000-0000-4000-8000-000000000000/pc/nodes/10000000-0000-4000-8000-000000000001'
  const { status } = await service()
  expect(await status('read', 'GET', `${node}/console/ws`, { upgrade: 'websocket' })).toBe(403)
  expect(await status('operate', 'GET', `${node}/console/ws`, { upgrade: 'websocket' })).toBe(200)
  const { Tickets } = await import('../../../../src/server/http/tickets.ts')
  const tickets = new Tickets()
  const holder: Identity = { name: 'a', role: 'read', key: 'token:1', ambient: true }
  expect(tickets.redeem(tickets.issue(holder))).toEqual({ ...holder, ambient: false })
  expect(tickets.redeem(tickets.issue(holder, 0), 30_000)).toBeUndefined()
})

test('ambient credentials are not accepted from pages of other sites', async () => {
  const page: Identity = { name: 'anna@lab.example', role: 'admin', key: 'access:anna', ambient: true }
  const app = authApp({
    access: { allowedOrigins: new Set(['https://ui.example']) },
    verifier: async (request) => (request.headers.has('x-known') ? page : undefined),
  })
  const status = async (headers: object) =>
    (await ask(app, 'GET', '/v1/version', { 'x-known': 'yes', host: 'lab.example', ...headers })).status
  expect(await status({})).toBe(200)
  expect(await status({ origin: 'https://lab.example' })).toBe(200)
  expect(await status({ origin: 'https://ui.example' })).toBe(200)
  expect(await status({ origin: 'https://evil.example' })).toBe(403)
  expect(await status({ origin: 'null' })).toBe(403)
  expect(await status({ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' })).toBe(403)
})

test('too many requests of one credential are refused, with the time of the next attempt', async () => {
  const { app, made } = await service({ rateLimit: new RateLimit(() => ({ perSecond: 0.5, burst: 2 })) })
  const send = (authorization?: string) => ask(app, 'GET', '/v1/version', { authorization })
  expect([(await send(bearer(made.read))).status, (await send(basic('x', made.read))).status]).toEqual([200, 200])
  const refused = await send(bearer(made.read))
  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  expect(await refused.json()).toMatchObject({ status: 429, message: expect.stringContaining('wait') })
  expect((await send(bearer(made.operate))).status).toBe(200)
  // Those whom nobody knows are refused as ever, and take nothing from anybody.
  expect((await send()).status).toBe(401)
})
