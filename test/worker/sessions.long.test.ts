import { expect, test } from 'vitest'
import { logIn } from '../support/log-in.ts'
import { adminToken, WorkerGateway } from '../support/worker-gateway.ts'

test('log-ins count as requests of their credentials', async () => {
  const gateway = await WorkerGateway.start({ RATE_PER_S: '1' })
  const { token } = await gateway.call('POST', '/v2/tokens', { name: 'ci', role: 'read' })
  const answers = await Promise.all(Array.from({ length: 12 }, () => logIn(gateway.url, { token })))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201, 429]))
  // Others may log in meanwhile.
  expect((await logIn(gateway.url, { user: 'admin', password: adminToken })).status).toBe(201)
})

test('a session works at the Worker, until it is ended or its token is revoked', async () => {
  const gateway = await WorkerGateway.start()
  const as = async (cookie: string, method = 'GET', path = '/v2/session') =>
    fetch(gateway.url + path, { method, headers: { cookie, origin: gateway.url } })
  const admin = await logIn(gateway.url, { user: 'admin', password: adminToken })
  expect([admin.status, admin.body]).toMatchObject([201, { name: 'admin', role: 'admin' }])
  expect(await (await as(admin.cookie)).json()).toEqual(admin.body)
  // What the isolate answers, what the object answers, and a feed.
  for (const path of ['/v2/session', '/v2/computes', '/v2/compute/projects', '/v2/compute/version']) {
    expect([path, (await as(admin.cookie, 'GET', path)).status]).toEqual([path, 200])
  }
  const feed = await as(admin.cookie, 'GET', '/v2/compute/notifications')
  expect(feed.status).toBe(200)
  await feed.body?.cancel()
  const made = await gateway.call<{ token: string; token_id: string }>('POST', '/v2/tokens', {
    name: 'ci',
    role: 'read',
  })
  const ci = await logIn(gateway.url, { token: made.token })
  expect(ci.body).toMatchObject({ name: 'ci', role: 'read' })
  expect([
    (await as(ci.cookie, 'GET', '/v2/computes')).status,
    (await as(ci.cookie, 'GET', '/v2/tokens')).status,
  ]).toEqual([200, 403])
  const ticketOf = async () =>
    ((await (await as(admin.cookie, 'POST', '/v2/compute/tickets')).json()) as { ticket: string }).ticket
  const [used, left] = [await ticketOf(), await ticketOf()]
  await (await gateway.open(`/v2/compute/notifications/ws?ticket=${used}`, {})).close()
  expect((await as(admin.cookie, 'DELETE')).status).toBe(204)
  // A ticket that was given in the session goes with it.
  await expect(gateway.open(`/v2/compute/notifications/ws?ticket=${left}`, {})).rejects.toThrow('401')
  expect((await as(admin.cookie, 'GET', '/v2/computes')).status).toBe(401)
  await gateway.fetch('DELETE', `/v2/tokens/${made.token_id}`)
  await expect.poll(async () => (await as(ci.cookie)).status, { interval: 500 }).toBe(401)
  // Another isolate, and the object after its eviction, know it, too.
  await gateway.restart()
  expect([(await as(admin.cookie)).status, (await as(ci.cookie)).status]).toEqual([401, 401])
  expect((await logIn(gateway.url, { user: 'admin', password: 'wrong' })).status).toBe(401)
})
