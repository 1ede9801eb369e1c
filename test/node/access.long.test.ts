import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { TestService } from '../support/service.ts'

const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

test('with configured credentials, requests without them are refused', async () => {
  const service = await TestService.start({
    user: 'anna',
    password: 'geheim:ü',
    token: 'secret-token',
  })
  const status = async (authorization?: string, headers: Record<string, string> = {}) =>
    (
      await service.fetch('/v2/compute/version', {
        headers: { ...headers, ...(authorization !== undefined && { authorization }) },
      })
    ).status
  const refused = await service.fetch('/v2/compute/version')
  expect(refused.status).toBe(401)
  expect(refused.headers.get('www-authenticate')).toContain('Basic realm="patchbay"')
  expect(refused.headers.get('connection')).toBe('close')
  expect(await refused.json()).toMatchObject({ status: 401 })
  expect((await service.fetch('/nowhere')).status).toBe(401)
  expect((await service.fetch('/docs')).status).toBe(401)
  expect((await service.fetch('/metrics')).status).toBe(401)
  expect(await status(basic('anna', 'geheim:ü'))).toBe(200)
  expect(await status('Bearer secret-token')).toBe(200)
  for (const wrong of [
    basic('anna', 'geheim'),
    basic('', ''),
    basic('anna', ''),
    'Basic ???',
    'Bearer',
    'Bearer x',
    'Digest x',
  ]) {
    expect(await status(wrong)).toBe(401)
  }
  // Who has the credentials was given them: a page of theirs is no foreign page.
  expect(await status('Bearer secret-token', { origin: 'https://elsewhere.example' })).toBe(200)
  // Basic is sent by the browser itself, whatever page asks; nor may a page try some out.
  for (const authorization of [basic('anna', 'geheim:ü'), basic('anna', 'guess'), undefined]) {
    expect(await status(authorization, { origin: 'https://elsewhere.example' })).toBe(403)
  }
})

test('a ticket opens one websocket, and nothing else', async () => {
  const service = await TestService.start({ token: 't0ken' })
  const headers = { authorization: 'Bearer t0ken' }
  const issue = async () => {
    const answer = await service.fetch('/v2/compute/tickets', { method: 'POST', headers })
    expect(answer.status).toBe(201)
    return ((await answer.json()) as { ticket: string }).ticket
  }
  const opens = (ticket: string) =>
    new Promise<boolean>((resolve) => {
      const socket = new WebSocket(`${service.url.replace('http', 'ws')}/v2/compute/notifications/ws?ticket=${ticket}`)
      socket.onopen = () => {
        socket.close()
        resolve(true)
      }
      socket.onerror = () => resolve(false)
    })
  const ticket = await issue()
  expect((await service.fetch(`/v2/compute/version?ticket=${await issue()}`)).status).toBe(401)
  // As a websocket, but not on a path for one: neither opened, nor used up.
  const headersOfUpgrade = { upgrade: 'websocket', connection: 'upgrade' }
  for (const path of ['/v2/compute/tickets', '/v1/projects']) {
    expect(await rawStatus(service.url, `POST ${path}?ticket=${ticket}`, headersOfUpgrade)).toBe(401)
  }
  expect(await opens(ticket)).toBe(true)
  expect(await opens(ticket)).toBe(false)
  expect(await opens('nonsense')).toBe(false)
})

/** The status of a request that fetch would not send. */
async function rawStatus(url: string, request: string, headers: Record<string, string>): Promise<number> {
  const { host, hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const lines = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}`)
  socket.write(`${request} HTTP/1.1\r\n${lines.join('\r\n')}\r\nContent-Length: 0\r\n\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  return Number(answer.toString('latin1').split(' ')[1])
}

test('the configuration adds names and origins, also while the service runs', async () => {
  const service = await TestService.start()
  const origin = 'https://lab.example'
  expect((await service.fetch('/v1/version', { headers: { origin } })).status).toBe(403)
  await service.configure({ allowed_origins: [origin], udp_port_range: [40_000, 40_100] })
  expect(await service.call('POST', '/v2/compute/config/reload', {})).toEqual({
    changed: ['allowed_origins'],
    needs_restart: ['udp_port_range'],
  })
  expect((await service.fetch('/v1/version', { headers: { origin } })).status).toBe(200)
  await service.configure({ allowed_origin: [origin] })
  const refused = await service.fetch('/v1/config/reload', { method: 'POST' })
  expect(refused.status).toBe(409)
  expect(((await refused.json()) as { message: string }).message).toContain('did you mean allowed_origins?')
})

test('outside local mode a project stays in the projects directory, and the configuration is not reloaded', async () => {
  const service = await TestService.start({ local: false })
  const create = (body: object) => service.fetch('/v1/projects', { method: 'POST', body: JSON.stringify(body) })
  expect((await create({ path: '/tmp/elsewhere-patchbay' })).status).toBe(403)
  const project = await service.call('POST', '/v1/projects', { name: 'lab' })
  const path = `/v1/projects/${project.project_id}`
  const moved = await service.fetch(path, { method: 'PUT', body: JSON.stringify({ path: '/tmp/elsewhere-patchbay' }) })
  expect(moved.status).toBe(403)
  expect(await moved.json()).toEqual({ message: expect.stringContaining('local mode'), status: 403 })
  expect(
    (await service.fetch(path, { method: 'PUT', body: JSON.stringify(project.path ? { path: project.path } : {}) }))
      .status,
  ).toBe(200)
  expect((await service.fetch('/v1/config/reload', { method: 'POST' })).status).toBe(403)
  expect(await service.call('GET', '/v1/version')).toMatchObject({ local: false })
})
