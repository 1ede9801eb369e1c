import { expect, test } from 'vitest'
import { endpoints } from '../../src/endpoints/endpoints.ts'
import { signingKey, signText } from '../../src/server/auth/signed-text.ts'
import { newSignedToken, newToken } from '../../src/server/auth/token-text.ts'
import { basic, bearer } from '../support/auth-app.ts'
import { asAdmin, CountingWorker, fleetKey } from '../support/counting-worker.ts'

const projects = '/v2/compute/projects'
const upgrade = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': Buffer.alloc(16).toString('base64'),
}
const id = '11111111-1111-4111-8111-111111111111'

/** A path of every endpoint, each once, and some that no endpoint has. */
const paths = [
  ...new Set(endpoints.map(({ path }) => path.replace(/\{\w+_id\}/g, id).replace(/\{\w+\}/g, '1'))),
  ...['/', '/nothing', '/v2', `${projects}/${id}/nothing`, '/v1/projects/x/../y', '/feeds'],
]
const methodsOf = (path: string): string[] => [
  ...new Set(['GET', 'HEAD', ...endpoints.filter((it) => it.path === path).map(({ method }) => method)]),
]

/** Credentials that open nothing: texts that only look like some, and some that are over or of other secrets. */
async function badCredentials(): Promise<Record<string, string>[]> {
  const past = new Date(Date.now() - 60_000).toISOString()
  const token = { token_id: '0'.repeat(16), name: 'x', role: 'admin', purpose: 'user', created_at: past } as const
  const [key, other] = [await signingKey(fleetKey, 'tokens'), await signingKey(`${fleetKey}!`, 'tokens')]
  const expired = await newSignedToken(key, { ...token, expires_at: past })
  const foreign = await newSignedToken(other, { ...token, expires_at: null })
  const texts = ['x', 'pb_', expired.text, foreign.text, `${foreign.text.slice(0, -1)}A`, `pb_${'0'.repeat(16)}_a.b`]
  return [
    {},
    ...texts.map((text) => ({ authorization: bearer(text) })),
    { authorization: basic('admin', 'wrong') },
    { authorization: basic('anybody', foreign.text) },
    { authorization: 'Basic %%%' },
    { cookie: `session=${foreign.text}`, 'x-patchbay-isolate': 'x', 'x-patchbay-admitted': 'x %7B%7D' },
  ]
}

test('a request without valid credentials does not reach the object, with any path, method and credentials', async () => {
  const worker = await CountingWorker.start({ ALLOWED_ORIGINS: 'https://lab.example' })
  const bad = await badCredentials()
  const forged = await signText(await signingKey(fleetKey, 'else'), 'ticket', {
    id: 'x',
    name: 'x',
    role: 'admin',
    key: '',
  })
  const answers = new Map<string, number>()
  // Each from an address of its own: an address with too many wrong log-ins is refused before they are looked at.
  const addressOf = (number: number) => `127.1.${number >> 8}.${number & 255}`
  let asked = 0
  const ask = async (method: string, path: string, headers: Record<string, string>) => {
    const from = { 'cf-connecting-ip': addressOf(asked++) }
    answers.set(
      `${method} ${path} ${JSON.stringify(headers)}`,
      await worker.status(method, path, { ...headers, ...from }),
    )
  }
  for (const path of paths) {
    const all = methodsOf(path).map((method) => ask(method, path, bad[answers.size % bad.length] ?? {}))
    const sockets = [path, `${path}?ticket=${forged}`, `${path}?ticket=x`].map((at) => ask('GET', at, upgrade))
    const preflight = { 'access-control-request-method': 'PUT' }
    const preflights = ['https://lab.example', 'https://other.example'].map((origin) =>
      ask('OPTIONS', path, { ...preflight, origin }),
    )
    await Promise.all([...all, ...sockets, ...preflights, ask('OPTIONS', path, {})])
  }
  for (const path of [
    projects,
    '/metrics',
    '/docs',
    '/v2/computes/join',
    `${projects}/${id}/notifications`,
    '/nothing',
  ])
    for (const headers of bad) for (const more of [{}, upgrade]) await ask('GET', path, { ...headers, ...more })
  expect(answers.size).toBeGreaterThan(1000)
  // Where somebody logs in, credentials are in the body; to log out without a session is nothing. The page and the schema hold no data.
  const atDoor = /^(POST|DELETE) \/v2\/session |^(GET|HEAD) \/(app\/1|schemas\/lab-1\.json)?(\?ticket=[\w.-]+)? /
  const entered = [...answers].filter(([what, status]) => ![401, 403].includes(status) && !atDoor.test(what))
  // Pages of an allowed origin may ask what methods there are.
  expect(entered.filter(([what]) => !what.startsWith('OPTIONS'))).toEqual([])
  const none = { calls: {}, computes: {}, projects: {}, ofLabs: {}, ofComputes: {}, ofDirectory: {}, byCompute: {} }
  expect(await worker.counts()).toEqual({ ...none, began: 0 })
  // It would have been counted.
  expect(await worker.status('GET', projects, asAdmin)).toBe(200)
  expect(await worker.counts()).toMatchObject({ calls: { fetch: 1 }, began: 1 })
})

test('signed tokens are checked without the object, except for the list of valid ones', async () => {
  const worker = await CountingWorker.start()
  const { token, token_id } = await worker.call('POST', '/v2/tokens', { name: 'ci', role: 'read' })
  const { token: join } = await worker.call('POST', '/v2/tokens', { name: 'lab', purpose: 'join' })
  const text = String(token)
  const as = { authorization: bearer(text) }
  expect(await worker.status('GET', projects, as)).toBe(200)
  expect(await worker.status('GET', projects, { authorization: basic('ci', text) })).toBe(200)
  expect((await worker.counts()).calls).toEqual({ fetch: 4, tokenList: 1 })
  // What it may not do, and what there is not, is said by the isolate.
  expect(await worker.status('POST', projects, as)).toBe(403)
  expect(await worker.status('GET', '/nothing', as)).toBe(404)
  // A token for joining opens nothing else, and no other token lets a compute join.
  expect(await worker.status('GET', projects, { authorization: bearer(String(join)) })).toBe(401)
  expect(await worker.status('GET', '/v2/computes/join', { ...upgrade, ...as })).toBe(401)
  expect((await worker.counts()).calls).toEqual({ fetch: 4, tokenList: 1 })
  const joining = { ...upgrade, authorization: bearer(String(join)) }
  expect(await worker.status('GET', '/v2/computes/join?compute_id=one', joining)).toBe(101)
  // Its tunnel is in an object of its own.
  expect((await worker.counts()).calls).toEqual({ fetch: 4, tokenList: 1 })
  expect(await worker.status('GET', '/v2/computes/join', joining)).toBe(400)
  await worker.call('DELETE', `/v2/tokens/${token_id}`)
  expect(await worker.status('GET', projects, as)).toBe(401)
})

test('a compute that joins in a loop is refused before its object is called, and others are not', async () => {
  const worker = await CountingWorker.start()
  const joining = async (name: string) => {
    const { token } = await worker.call('POST', '/v2/tokens', { name, purpose: 'join' })
    const headers = { ...upgrade, authorization: bearer(String(token)) }
    return () => worker.status('GET', `/v2/computes/join?compute_id=${name}`, headers)
  }
  const [loop, other] = [await joining('loop'), await joining('other')]
  let opened = 0
  while ((await loop()) === 101) opened += 1
  expect(opened).toBeGreaterThanOrEqual(60)
  expect((await worker.counts()).byCompute).toEqual({ loop: opened })
  expect(await other()).toBe(101)
})

test('a ticket is valid once, and not after its token was revoked; only one with a valid signature is looked up', async () => {
  const worker = await CountingWorker.start()
  const { token, token_id } = await worker.call('POST', '/v2/tokens', { name: 'ci', role: 'operate' })
  const ticketOf = async () => {
    const headers = { authorization: bearer(String(token)) }
    const answer = await fetch(`${worker.url}/v2/compute/tickets`, { method: 'POST', headers })
    return ((await answer.json()) as { ticket: string }).ticket
  }
  const [first, second] = [await ticketOf(), await ticketOf()]
  const open = (ticket: string) => worker.status('GET', `/v2/compute/notifications/ws?ticket=${ticket}`, upgrade)
  const twice = await Promise.all([open(first), open(first)])
  expect(twice.toSorted()).toEqual([101, 401])
  expect(await open(first)).toBe(401)
  expect((await worker.counts()).calls.useTicket).toBe(3)
  expect(await open(`${first.slice(0, -2)}AA`)).toBe(401)
  expect((await worker.counts()).calls.useTicket).toBe(3)
  // It is a secret for a websocket, and no token.
  expect(await worker.status('GET', projects, { authorization: bearer(second) })).toBe(401)
  expect(await worker.status('GET', `${projects}?ticket=${second}`)).toBe(401)
  await worker.call('DELETE', `/v2/tokens/${token_id}`)
  expect(await open(second)).toBe(401)
})

test('tokens of version 0.1.0 are valid until they are revoked, and texts that look like them wake the object once at most', async () => {
  const worker = await CountingWorker.start()
  const made = await newToken()
  await worker.keepToken({
    ...{ token_id: made.id, name: 'old', role: 'operate', purpose: 'user', hash: made.hash },
    ...{ last_characters: made.text.slice(-4), created_at: '2026-01-01T00:00:00.000Z', expires_at: null },
  })
  const as = (text: string) => worker.status('GET', projects, { authorization: bearer(text) })
  const garbage = () => `pb_${crypto.randomUUID().replaceAll('-', '').slice(16)}_${'0'.repeat(64)}`
  const statuses = await Promise.all(Array.from({ length: 30 }, () => as(garbage())))
  expect(new Set(statuses)).toEqual(new Set([401]))
  expect(await as(`pb_${made.id}_${'0'.repeat(64)}`)).toBe(401)
  expect((await worker.counts()).calls).toEqual({ tokenList: 1 })
  expect(await as(made.text)).toBe(200)
  const figures = async () => (await fetch(`${worker.url}/metrics`, { headers: asAdmin })).text()
  expect(await figures()).toContain('patchbay_object_token_lists_total{reason="old"} 1\n')
  const all = await worker.call<{ token_id: string; name: string }[]>('GET', '/v2/tokens')
  expect(all).toMatchObject([{ token_id: made.id, name: 'old' }])
  await worker.call('DELETE', `/v2/tokens/${made.id}`)
  expect(await as(made.text)).toBe(401)
})

test('no client can act as an isolate', async () => {
  const worker = await CountingWorker.start()
  const { token } = await worker.call('POST', '/v2/tokens', { name: 'reader', role: 'read' })
  const admin = encodeURIComponent(JSON.stringify({ name: 'x', role: 'admin', key: '' }))
  for (const proof of ['', 'x', 'a'.repeat(64)]) {
    const headers = { authorization: bearer(String(token)), 'x-patchbay-admitted': `${proof} ${admin}` }
    expect(await worker.status('GET', '/v2/tokens', headers)).toBe(403)
    expect(await worker.status('GET', '/feeds', { ...headers, 'x-patchbay-isolate': proof, ...upgrade })).toBe(404)
  }
})
