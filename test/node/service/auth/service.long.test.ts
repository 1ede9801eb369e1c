import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { basic, bearer } from '../../../support/auth-app.ts'
import { TestService } from '../../../support/service.ts'

test('tokens are valid with their role, also after restarts, until they are revoked', async () => {
  const settings = { token: 't0ken' }
  const service = await TestService.start(settings)
  const send = (method: string, path: string, authorization: string, body?: object) =>
    service.fetch(path, { method, headers: { authorization }, ...(body && { body: JSON.stringify(body) }) })
  const made = await send('POST', '/v2/tokens', bearer('t0ken'), { name: 'viewer', role: 'read' })
  expect(made.status).toBe(201)
  const { token, token_id } = (await made.json()) as { token: string; token_id: string }
  const asViewer = async () => [
    (await send('GET', '/v2/compute/projects', bearer(token))).status,
    (await send('GET', '/v1/projects', basic('old client', token))).status,
    (await send('POST', '/v2/compute/projects', basic('old client', token), { name: 'x' })).status,
    (await send('GET', '/v2/tokens', bearer(token))).status,
  ]
  expect(await asViewer()).toEqual([200, 200, 403, 403])
  await service.end()
  await service.configure({ ...settings, 'rate_limit.per_s': 1, 'rate_limit.burst': 4 })
  await service.restart()
  expect(await asViewer()).toEqual([200, 200, 403, 403])
  const answers = await Promise.all(Array.from({ length: 20 }, () => send('GET', '/v1/version', bearer(token))))
  const refused = answers.find(({ status }) => status === 429)
  expect(refused?.headers.get('retry-after')).toBe('1')
  await service.configure(settings)
  expect((await send('POST', '/v2/compute/config/reload', bearer('t0ken'))).status).toBe(200)
  expect(await asViewer()).toEqual([200, 200, 403, 403])
  expect((await send('DELETE', `/v2/tokens/${token_id}`, bearer('t0ken'))).status).toBe(204)
  expect(await asViewer()).toEqual([401, 401, 401, 401])
})

test('a service without credentials is open, and its tokens let it listen beyond loopback', async () => {
  const service = await TestService.start()
  expect(await service.call('GET', '/v2/tokens')).toEqual([])
  const { token } = await service.call<{ token: string }>('POST', '/v2/tokens', { name: 'teacher', role: 'admin' })
  await service.end()
  await service.configure({ host: '0.0.0.0' })
  await service.restart()
  const path = service.url.replace('0.0.0.0', '127.0.0.1')
  const ask = async (headers: Record<string, string>) => (await fetch(`${path}/v2/projects`, { headers })).status
  expect([await ask({}), await ask({ authorization: `Bearer ${token}` })]).toEqual([401, 200])
  await service.end()
  await service.configure({})
  await service.restart()
  expect((await service.fetch('/v2/compute/config/reload', { method: 'POST' })).status).toBe(200)
  expect((await service.fetch('/v2/compute/tickets', { method: 'POST' })).status).toBe(201)
})

test('a token and a password with letters beyond ASCII are valid as UTF-8 and as Latin-1', async () => {
  const [token, password] = ['sécret-token-äöüà', 'pässwort']
  const service = await TestService.start({ token, user: 'zoë', password })
  const statusOf = async (authorization: Buffer): Promise<string> => {
    const { hostname, port } = new URL(service.url)
    const socket = connect(Number(port), hostname)
    socket.write('GET /v1/projects HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: ')
    socket.write(Buffer.concat([authorization, Buffer.from('\r\n\r\n')]))
    return (await text(socket)).slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length)
  }
  for (const encoding of ['utf8', 'latin1'] as const) {
    const pair = Buffer.from(`zoë:${password}`, encoding).toString('base64')
    const found = [
      await statusOf(Buffer.from(`Bearer ${token}`, encoding)),
      await statusOf(Buffer.from(`Basic ${pair}`)),
      await statusOf(Buffer.from(`Bearer ${token}é`, encoding)),
    ]
    expect([encoding, ...found]).toEqual([encoding, '200', '200', '401'])
  }
})
