import { once } from 'node:events'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { bearer } from '../support/auth-app.ts'
import { logIn } from '../support/log-in.ts'
import { TestService } from '../support/service.ts'

const credentials = { user: 'anna', password: 'geheim' }
const version = '/v2/compute/version'

const statusOf = async (service: TestService, cookie: string, path = version) =>
  (await service.fetch(path, { headers: { cookie } })).status

test('a log-in sets a cookie that is valid for requests, websockets, feeds and downloads, until the log-out', async () => {
  const service = await TestService.start({ ...credentials, 'pc.engine': 'embedded' })
  const { status, body, setCookie, cookie } = await logIn(service.url, credentials)
  expect([status, body]).toEqual([201, { name: 'anna', role: 'admin', expires_at: expect.any(String) }])
  expect(Date.parse(String(body.expires_at)) - Date.now()).toBeGreaterThan(11.9 * 3_600_000)
  expect(setCookie).toMatch(/^patchbay-[0-9a-f]{8}=[\w.-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/)
  const shown = await service.fetch('/v2/session', { headers: { cookie } })
  expect([shown.status, await shown.json()]).toEqual([200, body])
  const own = { cookie, origin: service.url }
  const create = (headers: Record<string, string>) =>
    service.fetch('/v2/compute/projects', { method: 'POST', headers, body: '{"name": "lab"}' })
  const made = await create({ ...own, 'content-type': 'application/json' })
  expect(made.status).toBe(201)
  const { project_id } = (await made.json()) as { project_id: string }
  const project = `/v2/compute/projects/${project_id}`
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}${project}/notifications/ws`, { headers: own })
  expect(JSON.parse(String((await once(socket, 'message'))[0]))).toMatchObject({ action: 'ping' })
  const feed = await service.fetch(`${project}/notifications`, { headers: { ...own, accept: 'text/event-stream' } })
  expect([feed.status, feed.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
  await feed.body?.cancel()
  await service.fetch(`${project}/files/a.txt`, { method: 'POST', headers: own, body: 'text' })
  expect(await (await service.fetch(`${project}/files/a.txt`, { headers: own })).text()).toBe('text')
  // Which page asks is looked at, as with all that a browser sends by itself.
  for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'same-site' }]) {
    expect((await create({ cookie, 'content-type': 'application/json', ...headers })).status).toBe(403)
  }
  expect((await create({ ...own, 'content-type': 'text/plain' })).status).toBe(415)
  const ticket = await service.fetch('/v2/compute/tickets', { method: 'POST', headers: own })
  const { ticket: given } = (await ticket.json()) as { ticket: string }
  // Another log-in is another session.
  const other = await logIn(service.url, credentials)
  const out = await service.fetch('/v2/session', { method: 'DELETE', headers: own })
  expect(out.status).toBe(204)
  expect(out.headers.get('set-cookie')).toMatch(
    /^patchbay-[0-9a-f]{8}=; Path=\/; Max-Age=0; HttpOnly; SameSite=Strict$/,
  )
  expect([await statusOf(service, cookie), await statusOf(service, other.cookie)]).toEqual([401, 200])
  const late = new WebSocket(`${service.url.replace('http', 'ws')}${project}/notifications/ws?ticket=${given}`)
  expect(String((await once(late, 'error'))[0])).toContain('401')
  socket.close()
  // Nor does it come back with another process.
  await service.kill('SIGKILL')
  await service.restart()
  expect([await statusOf(service, cookie), await statusOf(service, other.cookie)]).toEqual([401, 200])
  await service.end()
  await service.configure({ ...credentials, password: 'another one' })
  await service.restart()
  expect(await statusOf(service, other.cookie)).toBe(401)
})

test('a session that a token began has its role, and ends with the token', async () => {
  const service = await TestService.start({ token: 't0ken' })
  const headers = { authorization: bearer('t0ken') }
  const make = async (more: object) => {
    const made = await service.fetch('/v2/tokens', {
      method: 'POST',
      headers,
      body: JSON.stringify({ name: 'ci', ...more }),
    })
    return (await made.json()) as { token: string; token_id: string; expires_at: string | null }
  }
  const made = await make({ role: 'read', expires_in_s: 600 })
  const { body, cookie } = await logIn(service.url, { token: made.token })
  expect(body).toEqual({ name: 'ci', role: 'read', expires_at: made.expires_at })
  const reload = await service.fetch('/v2/compute/config/reload', { method: 'POST', headers: { cookie } })
  expect([await statusOf(service, cookie), reload.status]).toEqual([200, 403])
  await service.fetch(`/v2/tokens/${made.token_id}`, { method: 'DELETE', headers })
  expect(await statusOf(service, cookie)).toBe(401)
  expect((await logIn(service.url, { token: made.token })).status).toBe(401)
  const join = await make({ purpose: 'join' })
  expect((await logIn(service.url, { token: join.token })).status).toBe(401)
  expect((await logIn(service.url, { token: 't0ken' })).body).toMatchObject({ role: 'admin' })
})

test('wrong log-ins are refused with the right status', async () => {
  const service = await TestService.start({ ...credentials, trusted_proxies: ['127.0.0.1'] })
  const status = async (body: object, headers: Record<string, string> = {}) =>
    (await logIn(service.url, body, headers)).status
  expect(await status(credentials, { origin: 'https://evil.example' })).toBe(403)
  expect(await status(credentials, { 'content-type': 'text/plain' })).toBe(415)
  for (const body of [{}, { token: 'x', user: 'anna' }, { user: 'anna' }, { password: 'geheim' }]) {
    expect(await status(body)).toBe(400)
  }
  // Others could read the password on its way.
  const far = { 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'http' }
  expect(await status(credentials, far)).toBe(403)
  const near = { 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'https' }
  const guesses = Array.from({ length: 30 }, (_, index) =>
    status({ ...credentials, password: `guess ${index}` }, { ...near, origin: service.url.replace('http', 'https') }),
  )
  const statuses = await Promise.all(guesses)
  expect([401, 429].map((it) => statuses.filter((other) => other === it).length)).toEqual([10, 20])
  // A page shows its own form, and not the window of the browser.
  const asked = await service.fetch(version, {
    headers: { 'sec-fetch-dest': 'empty', 'sec-fetch-site': 'same-origin' },
  })
  expect([asked.status, asked.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="patchbay"'])
})

test('by https the cookie is one that only this host can set, also behind a proxy that says so', async () => {
  const service = await TestService.start({ ...credentials, trusted_proxies: ['127.0.0.1'] })
  const proxied = {
    'x-forwarded-for': '192.0.2.1',
    'x-forwarded-proto': 'https',
    origin: service.url.replace('http', 'https'),
  }
  const { status, setCookie, cookie } = await logIn(service.url, credentials, proxied)
  expect(status).toBe(201)
  expect(setCookie).toMatch(
    /^__Host-patchbay-[0-9a-f]{8}=.*; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure$/,
  )
  expect((await service.fetch(version, { headers: { ...proxied, cookie } })).status).toBe(200)
  // Whoever can change plain HTTP on the way does not speak for the page that came by https.
  const plain = { ...proxied, cookie, origin: service.url }
  expect((await service.fetch(version, { headers: plain })).status).toBe(403)
  expect(await statusOf(service, cookie)).toBe(401)
})

test('a service without credentials says that no log-in is needed', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  expect(await service.call('GET', '/v2/session')).toEqual({
    name: 'anybody',
    role: 'admin',
    expires_at: null,
    start_line: expect.stringMatching(/^patchbay serve --host /),
  })
  expect((await logIn(service.url, credentials)).status).toBe(404)
})
