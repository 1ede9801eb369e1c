import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { basic, bearer } from '../support/auth-app.ts'
import { figure, parseExposition } from '../support/exposition.ts'
import { TestService } from '../support/service.ts'

const path = '/v2/compute/version'

/** From one of the addresses of loopback: each is another client. */
async function ask(service: TestService, headers: Record<string, string>, localAddress = '127.0.0.1', target = path) {
  const sent = request(service.url + target, { agent: false, headers, localAddress })
  sent.end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  answer.resume()
  return { status: answer.statusCode ?? 0, retryAfter: answer.headers['retry-after'] }
}

const upgrade = {
  ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
  'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
}

test('of 30 wrong log-ins at once most are refused without a check, with any form of credentials', async () => {
  const service = await TestService.start({ user: 'anna', password: 'geheim', token: 't0ken' })
  const headersOf: readonly [kind: string, (index: number) => Record<string, string>, target?: string][] = [
    ['basic', (index) => ({ authorization: basic('anna', `guess ${index}`) })],
    ['bearer', (index) => ({ authorization: bearer(`guess-${index}`) })],
    ['join', (index) => ({ ...upgrade, authorization: bearer(`guess-of-16-letters-${index}`) }), '/v2/computes/join'],
    ['ticket', () => upgrade, '/v2/compute/notifications/ws?ticket='],
  ]
  for (const [number, [kind, headers, target = path]] of headersOf.entries()) {
    const from = `127.0.1.${number + 1}`
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        ask(service, headers(index), from, kind === 'ticket' ? `${target}${index}` : target),
      ),
    )
    const statuses = answers.map(({ status }) => status)
    expect([kind, statuses.filter((it) => it === 401).length]).toEqual([kind, 10])
    expect([kind, statuses.filter((it) => it === 429).length]).toEqual([kind, 20])
    for (const { status, retryAfter } of answers) if (status === 429) expect(retryAfter).toMatch(/^[1-6]$/)
  }
  // The right ones are refused there, and nowhere else.
  const right = { authorization: basic('anna', 'geheim') }
  expect((await ask(service, right, '127.0.1.1')).status).toBe(429)
  expect((await ask(service, right, '127.0.1.2')).status).toBe(200)
  const made = await service.fetch('/v2/tokens', {
    ...{ method: 'POST', headers: { authorization: bearer('t0ken') } },
    body: '{"name": "ci", "role": "read"}',
  })
  const { token } = (await made.json()) as { token: string }
  expect((await ask(service, { authorization: bearer(token) }, '127.0.1.1')).status).toBe(200)
  const scraped = await service.fetch('/metrics', { headers: { authorization: bearer('t0ken') } })
  const figures = parseExposition(await scraped.text())
  for (const [kind] of headersOf) {
    const of = (name: string) => figure(figures, `patchbay_login_${name}_total`, { kind })
    expect([kind, of('failures')]).toEqual([kind, 10])
    expect(of('refusals')).toBeGreaterThanOrEqual(20)
  }
})

test('behind a trusted proxy the address of the client counts; headers of others are ignored', async () => {
  const service = await TestService.start({
    ...{ user: 'anna', password: 'geheim', insecure: true, trusted_proxies: ['127.0.2.0/24'] },
  })
  const guess = async (headers: Record<string, string>, from: string) => {
    const one = (index: number) => ask(service, { ...headers, authorization: basic('anna', `guess ${index}`) }, from)
    const answers = await Promise.all(Array.from({ length: 12 }, (_, index) => one(index)))
    return answers.filter(({ status }) => status === 429).length
  }
  const status = async (headers: Record<string, string>, from: string) =>
    (await ask(service, { ...headers, authorization: basic('anna', 'geheim') }, from)).status
  expect(await guess({ 'x-forwarded-for': '198.51.100.1' }, '127.0.2.1')).toBe(2)
  expect(await status({ 'x-forwarded-for': '198.51.100.1' }, '127.0.2.1')).toBe(429)
  expect(await status({ 'x-forwarded-for': '6.6.6.6, 198.51.100.1, 127.0.2.2' }, '127.0.2.1')).toBe(429)
  expect(await status({ forwarded: 'for="[2001:db8::1]:4711", for=198.51.100.1' }, '127.0.2.1')).toBe(429)
  expect(await status({ 'x-forwarded-for': '198.51.100.2' }, '127.0.2.1')).toBe(200)
  // A proxy passes on what it does not know: a client that writes the other header is not believed.
  expect(await guess({ 'x-forwarded-for': '198.51.100.3', forwarded: 'for=198.51.100.2' }, '127.0.2.1')).toBe(2)
  expect(await status({ 'x-forwarded-for': '198.51.100.2' }, '127.0.2.1')).toBe(200)
  // Nobody else may say who it is.
  expect(await guess({ 'x-forwarded-for': '198.51.100.9' }, '127.0.0.1')).toBe(2)
  expect(await status({ 'x-forwarded-for': '198.51.100.2' }, '127.0.0.1')).toBe(429)
})

test('a connection with many refusals is closed, with the requests that were sent ahead', async () => {
  const service = await TestService.start({ user: 'anna', password: 'geheim' })
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
  const written = 20_000
  const one = (index: number) =>
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${basic('anna', `guess ${index}`)}\r\n\r\n`
  // A 401 ends its connection, too.
  for (let index = 0; index < 12; index++) await ask(service, { authorization: basic('anna', `other ${index}`) })
  let answers = 0
  socket.on('data', (data) => {
    answers += data.toString('latin1').split('HTTP/1.1 429').length - 1
  })
  // What it had not read is reset with the connection.
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => void socket.on('close', () => resolve()))
  socket.write(Array.from({ length: written }, (_, index) => one(index)).join(''))
  await closed
  expect(answers).toBeGreaterThan(0)
  expect(answers).toBeLessThan(written / 2)
  expect((await ask(service, { authorization: basic('anna', 'geheim') }, '127.0.3.1')).status).toBe(200)
})
