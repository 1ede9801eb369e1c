import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, request as open } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { adminToken } from '../support/admin-token.ts'
import { base, body, newProject, post, send } from '../support/api.ts'

interface Asked {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
}
interface Answered {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** What a browser sends by itself after one log-in; services without credentials do not look at it. */
const remembered = `Basic ${btoa(`admin:${adminToken}`)}`

/** A request as a browser sends it: `fetch` would not let us say where it comes from. */
async function browse(path: string, { method = 'GET', headers = {}, body: content }: Asked): Promise<Answered> {
  const sent = open(base + path, { agent: false, method, headers: { authorization: remembered, ...headers } })
  sent.end(content)
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: answer.statusCode, headers: answer.headers, text: await text(answer) }
}

const evil = { origin: 'https://evil.example' }
const foreign = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }
const followed = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

test.for([
  ['a form, as Chromium sends it', { ...evil, ...followed }],
  ['a page of another port of this host', { origin: 'http://127.0.0.1:1', 'sec-fetch-site': 'same-site' }],
  ['a sandboxed page', { origin: 'null', ...followed }],
  ['a form without Origin', followed],
  ['a script', { ...evil, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }],
  ['an old browser', evil],
  ['a page of a host that begins like ours', { origin: `${base}.evil.example` }],
] as const)('%s of another site changes nothing, and cannot read the answer', async ([, headers]) => {
  const project = await newProject()
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json',
    undefined,
  ]) {
    const id = randomUUID()
    const sent = { ...headers, ...(type !== undefined && { 'content-type': type }) }
    const requests: [string, string, string?][] = [
      ['POST', '/v2/compute/projects', JSON.stringify({ name: 'x', project_id: id, '=': undefined })],
      ['PUT', project.v2, '{"name": "taken over"}'],
      ['POST', `${project.v2}/close`],
      ['DELETE', project.v2],
      ['POST', `${project.v2}/files/planted`, 'x'],
    ]
    for (const [method, path, content] of requests) {
      const answer = await browse(path, { method, headers: sent, ...(content !== undefined && { body: content }) })
      expect([method, path, answer.status]).toEqual([method, path, 403])
      expect(JSON.parse(answer.text)).toEqual({
        status: 403,
        message: expect.stringMatching(/^(Origin|Sec-Fetch-Site): /),
      })
      expect(answer.headers['access-control-allow-origin']).toBe(undefined)
    }
    expect((await send(`/v2/compute/projects/${id}`)).status).toBe(404)
  }
  expect(await body(send(project.v2))).toMatchObject({ name: 'lab' })
  expect((await send(`${project.v2}/files/planted`)).status).toBe(404)
})

test('a body that a form can send is refused where JSON is wanted, when a browser sent it', async () => {
  const content = JSON.stringify({ name: 'lab' })
  const create = async (headers: Record<string, string>) =>
    (await browse('/v2/compute/projects', { method: 'POST', headers, body: content })).status
  const own = [{ origin: base }, { 'sec-fetch-site': 'same-origin' }, { 'sec-fetch-site': 'none' }]
  for (const headers of own) {
    for (const type of [
      'text/plain',
      'Text/Plain; charset=utf-8',
      'multipart/form-data; boundary=x',
      'application/x-www-form-urlencoded',
    ]) {
      expect(await create({ ...headers, 'content-type': type })).toBe(415)
    }
    expect(await create({ ...headers, 'content-type': 'application/json' })).toBe(201)
  }
  const refused = await browse('/v2/compute/projects', {
    ...{ method: 'POST', headers: { origin: base, 'content-type': 'text/plain' }, body: content },
  })
  expect(JSON.parse(refused.text)).toEqual({
    status: 415,
    message: 'Content-Type: expected application/json from a browser, got "text/plain"',
  })
  // Programs say what they like: curl says that it sends a form.
  expect(await create({ 'content-type': 'application/x-www-form-urlencoded' })).toBe(201)
  expect((await post('/v2/compute/projects', content)).status).toBe(201)
})

test('a link of another site leads to the two pages, and to nothing else', async () => {
  const project = await newProject()
  const status = async (path: string, headers: Record<string, string>) => (await browse(path, { headers })).status
  expect(await status('/docs', followed)).toBe(200)
  expect(await status('/', followed)).toBe(200)
  for (const path of [
    project.v2,
    '/v2/compute/projects',
    '/metrics',
    `${project.v2}/notifications`,
    '/v2/computes',
    '/openapi.json',
  ]) {
    expect([path, await status(path, followed)]).toEqual([path, 403])
    expect([path, await status(path, foreign)]).toEqual([path, 403])
  }
  // Not in a frame of that page, either.
  for (const dest of ['iframe', 'embed', 'object']) {
    expect(await status('/docs', { ...followed, 'sec-fetch-dest': dest })).toBe(403)
  }
  expect(await status(project.v2, { ...followed, 'sec-fetch-site': 'none' })).toBe(200)
  expect(await status(project.v2, { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' })).toBe(200)
})

test('a page of another site opens no websocket', async () => {
  const project = await newProject()
  const upgrade = {
    ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
  }
  for (const path of [`${project.v2}/notifications/ws`, '/v2/compute/notifications/ws']) {
    expect((await browse(path, { headers: { ...upgrade, ...evil } })).status).toBe(403)
  }
})

test('a GET with an effect is refused to a browser that does not say which page sent it', async () => {
  const project = await newProject()
  const path = `${project.v2}/dynamips/nodes/${randomUUID()}/auto_idlepc`
  const status = async (headers: Record<string, string>) => (await browse(path, { headers })).status
  const browser = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' }
  expect(await status(browser)).toBe(403)
  expect(await status({ ...browser, referer: 'http://evil.example/' })).toBe(403)
  expect(await status({ ...browser, referer: `${base}/docs` })).toBe(404)
  expect(await status({ 'user-agent': 'curl/8' })).toBe(404)
  expect((await browse(project.v2, { headers: browser })).status).toBe(200)
})

test('a form is refused to a browser that does not say which page sent it, and a program may send one', async () => {
  const project = await newProject()
  const firefox = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:69.0) Gecko/20100101 Firefox/69.0' }
  const explorer = { 'user-agent': 'Mozilla/5.0 (Windows NT 10.0; Trident/7.0; rv:11.0) like Gecko' }
  const forms = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', undefined]
  const requests: [string, string?][] = [
    ['/v2/compute/projects', '{"name": "planted", "x": "="}'],
    [`${project.v2}/close`],
    [`${project.v2}/files/planted`, 'x'],
  ]
  for (const [path, content] of requests) {
    for (const browser of [firefox, explorer, { ...firefox, referer: 'http://evil.example/' }]) {
      for (const type of forms) {
        const headers = { ...browser, ...(type !== undefined && { 'content-type': type }) }
        const answer = await browse(path, { method: 'POST', headers, ...(content !== undefined && { body: content }) })
        expect([path, type, answer.status]).toEqual([path, type, 403])
        expect(answer.text).toContain('Referer: this may be a form')
      }
    }
  }
  expect((await send(`${project.v2}/files/planted`)).status).toBe(404)
  const create = async (headers: Record<string, string>) => {
    const content = JSON.stringify({ name: 'lab' })
    return (await browse('/v2/compute/projects', { method: 'POST', headers, body: content })).status
  }
  const own = { ...firefox, referer: `${base}/docs` }
  expect(await create({ ...own, 'content-type': 'application/json' })).toBe(201)
  expect(await create({ ...own, 'content-type': 'text/plain' })).toBe(415)
  const asForm = { 'content-type': 'application/x-www-form-urlencoded' }
  for (const program of [
    'curl/8.14.1',
    'python-requests/2.32',
    'Mozilla/5.0',
    'Mozilla/5.0 (Windows NT; Windows NT 10.0; de-DE) WindowsPowerShell/5.1.26100',
  ])
    expect([program, await create({ 'user-agent': program, ...asForm })]).toEqual([program, 201])
})
