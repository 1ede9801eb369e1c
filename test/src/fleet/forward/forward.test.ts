import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { forward, relayAnswer } from '../../../../src/fleet/forward/forward.ts'
import { bodyOf } from '../../../support/bodies.ts'
import { bed, faultOf, json, type StandIn } from '../../../support/fleet.ts'

const seen = async (compute: StandIn, run: () => Promise<Response>): Promise<IncomingMessage & { body: string }> => {
  const asked = new Promise<IncomingMessage & { body: string }>((resolve) => {
    compute.answer = (req, res) => {
      let body = ''
      req.on('data', (bytes: Buffer) => (body += bytes.toString()))
      req.once('end', () => {
        resolve(Object.assign(req, { body }))
        json(res, 200, {})
      })
    }
  })
  await (await run()).arrayBuffer()
  return asked
}

test('a compute gets the method, the path as it was sent, the query, the body, and the headers of the body', async () => {
  const { compute, send } = await bed()
  const headers = {
    'content-type': 'text/plain',
    'content-range': 'bytes 0-3/10',
    'repr-digest': 'sha-256=:x:',
    range: 'bytes=1-',
    'if-range': '"x"',
    'last-event-id': '7',
    accept: 'text/event-stream',
  }
  const asked = await seen(compute, () =>
    send('iou/images/a%2Fb%20c', { method: 'POST', query: '?md5sum=1&md5sum=%20', headers, body: bodyOf('ab', 'cd') }),
  )
  expect([asked.method, asked.url, asked.body]).toEqual([
    'POST',
    '/v2/compute/iou/images/a%2Fb%20c?md5sum=1&md5sum=%20',
    'abcd',
  ])
  expect(asked.headers).toMatchObject(headers)
})

test('of a GET for JSON only the headers that count for JSON are passed on, in both directions', async () => {
  const { compute, fleet } = await bed()
  const given = { accept: 'application/json', 'if-none-match': '"1"', range: 'bytes=1-', 'if-range': '"x"' }
  const request = new Request('http://localhost/v2/compute/x/y', { headers: given })
  let asked: IncomingMessage | undefined
  compute.answer = (req, res) => {
    asked = req
    const about = { ETag: '"2"', 'Cache-Control': 'no-cache', 'Content-Encoding': 'x', 'X-Comment': 'c' }
    res.writeHead(200, {
      'Content-Type': 'application/json',
      'Content-Length': '2',
      'Accept-Ranges': 'bytes',
      ...about,
    })
    res.end('{}')
  }
  const caller = { isDirect: true, mayExecute: false }
  const answer = await forward(fleet, 'one', { request, path: '/v2/compute/x/y', caller, isJson: true })
  const { accept, 'if-none-match': tag, range, 'if-range': since } = asked?.headers ?? {}
  expect([accept, tag, range, since]).toEqual(['application/json', '"1"', undefined, undefined])
  expect(answer.headers).toEqual({
    ...{ 'Content-Type': 'application/json', 'Content-Length': '2', 'Content-Encoding': 'x' },
    ...{ ETag: '"2"', 'Cache-Control': 'no-cache' },
    ...{ 'Content-Security-Policy': "default-src 'none'; sandbox", 'X-Content-Type-Options': 'nosniff' },
  })
})

test.for([
  ['public, max-age=31536000', 'no-store'],
  ['max-age=60', 'no-store'],
  ['s-maxage=1, no-cache', 'no-store'],
  ['PUBLIC', 'no-store'],
  ['no-store', 'no-store'],
  ['private, no-cache', 'private, no-cache'],
] as const)('a compute cannot have caches keep an answer: of "%s" clients get "%s"', async ([told, passed]) => {
  const headers = new Headers({ 'cache-control': told, 'content-type': 'application/json' })
  const answer = await relayAnswer({ status: 200, headers, body: null }, 'one')
  expect(answer.headers['Cache-Control']).toBe(passed)
})

test('a compute gets its own credentials, and no credentials of the client', async () => {
  const { compute, send } = await bed()
  const headers = {
    authorization: 'Bearer of-the-client',
    cookie: 'a=b',
    connection: 'x-hop',
    'x-hop': '1',
    'x-forwarded-for': '1.2.3.4',
    origin: 'http://page',
    te: 'trailers',
  }
  const asked = await seen(compute, () => send('x/y', { headers }))
  expect(asked.headers.authorization).toBe(`Basic ${btoa('anna:geheim')}`)
  expect(asked.headers['accept-encoding']).toBe('identity')
  for (const name of ['cookie', 'x-hop', 'x-forwarded-for', 'origin', 'te'])
    expect(asked.headers).not.toHaveProperty(name)
})

test('an empty body is omitted, and one of a known length keeps its length', async () => {
  const { compute, send } = await bed()
  const headers = (length: number) => ({ 'content-length': String(length) })
  const none = await seen(compute, () => send('x/y', { method: 'POST', headers: headers(0), body: bodyOf() }))
  expect(none.headers['transfer-encoding']).toBeUndefined()
  const some = await seen(compute, () => send('x/y', { method: 'PUT', headers: headers(4), body: bodyOf('ab', 'cd') }))
  expect([some.headers['content-length'], some.body]).toEqual(['4', 'abcd'])
})

test.for([200, 201, 206, 308])('status %d is passed on with its body', async (status) => {
  const { compute, send } = await bed()
  compute.answer = (_, res) => {
    res.writeHead(status, { 'Content-Type': 'application/x-lab', ETag: '"1"', Range: 'bytes=0-9', Server: 'other' })
    res.end('body')
  }
  const answer = await send('x/y')
  expect([answer.status, await answer.text()]).toEqual([status, 'body'])
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'content-type': 'application/x-lab',
    etag: '"1"',
    range: 'bytes=0-9',
  })
})

test.for([204, 304])('status %d is passed on without a body', async (status) => {
  const { compute, send } = await bed()
  compute.answer = (_, res) => void res.writeHead(status, { ETag: '"1"' }).end()
  const answer = await send('x/y')
  expect([answer.status, answer.body]).toEqual([status, null])
})

test.for([
  [204, undefined],
  [205, undefined],
  [304, '5'],
] as const)('status %d of a compute that announces bytes is passed on with the length %s', async ([status, length]) => {
  // Only by a tunnel can such an answer come.
  const { headers } = await relayAnswer({ status, headers: new Headers({ 'content-length': '5' }), body: null }, 'one')
  expect(headers['Content-Length']).toBe(length)
})

test('a client gets no headers by which a compute could act as this service', async () => {
  const { compute, send } = await bed()
  const sent = {
    'Set-Cookie': 'a=b',
    'Access-Control-Allow-Origin': '*',
    'X-Upgrade-Token': '1',
    'X-ROUTE': '/',
    Refresh: '0',
  }
  compute.answer = (_, res) => void res.writeHead(200, { ...sent, 'Content-Type': 'text/html' }).end('<script>')
  const { headers } = await send('x/y')
  for (const name of Object.keys(sent)) expect(headers.has(name)).toBe(false)
  expect(headers.get('content-security-policy')).toContain('sandbox')
  expect(headers.get('x-content-type-options')).toBe('nosniff')
})

test.for([200, 409])('an answer %d with longer headers than clients take is a bad gateway', async (status) => {
  const { compute, send } = await bed()
  const headers = Object.fromEntries(['X-Comment', 'X-Interface-Name', 'Allow'].map((name) => [name, 'x'.repeat(3000)]))
  const all = status === 200 ? headers : { Allow: 'x'.repeat(8192) }
  compute.answer = (_, res) => void res.writeHead(status, all).end('{"message":"no"}')
  expect(await faultOf(send('x/y'))).toMatchObject({
    ...{ status: 502, code: 'compute-failed', message: expect.stringContaining('more than 8192 bytes of headers') },
  })
})

test('HEAD is handed on as HEAD', async () => {
  const { compute, send } = await bed()
  compute.answer = ({ method }, res) => void res.writeHead(200, { 'Content-Length': '5', ETag: `"${method}"` }).end()
  const answer = await send('x/y', { method: 'HEAD' })
  expect([answer.headers.get('etag'), answer.headers.get('content-length')]).toEqual(['"HEAD"', '5'])
})

test.for([400, 403, 404, 405, 409, 416, 500, 503])('error %d is passed on unchanged', async (status) => {
  const { compute, send } = await bed()
  const said = { message: 'no such image', status, image: 'x.img', exception: 'ImageMissing' }
  compute.answer = (_, res) => {
    res.setHeader('Retry-After', '7')
    json(res, status, said)
  }
  const answer = await send('x/y')
  expect([answer.status, await answer.json()]).toEqual([status, said])
  expect(answer.headers.get('retry-after')).toBe('7')
})

type Reply = (res: ServerResponse) => void

test.for<readonly [string, Reply]>([
  ['a page', (res) => void res.writeHead(502).end('<html>Bad Gateway')],
  ['nothing', (res) => void res.writeHead(502).end()],
  ['what is too long', (res) => json(res, 502, { message: 'x'.repeat(100_000) })],
  ['something else', (res) => json(res, 502, ['x'])],
])('an error that says %s is given the form of errors', async ([, reply]) => {
  const { compute, send } = await bed()
  compute.answer = (_, res) => reply(res)
  const answer = await send('x/y')
  expect(answer.status).toBe(502)
  expect(await answer.json()).toEqual({ message: expect.stringMatching(/answered 502/), status: 502 })
})

test.for<readonly [string, Reply, RegExp]>([
  ['401', (res) => json(res, 401, {}), /user and password/],
  ['407', (res) => json(res, 407, {}), /proxy/],
  ['a redirect', (res) => void res.writeHead(307, { Location: 'http://169.254.169.254/' }).end(), /redirect/],
  ['a 308 that is a redirect', (res) => void res.writeHead(308, { Location: '/x' }).end(), /redirect/],
])('%s of a compute is a conflict', async ([, reply, message]) => {
  const { compute, send } = await bed()
  compute.answer = (_, res) => reply(res)
  expect(await faultOf(send('x/y'))).toMatchObject({ status: 409, message: expect.stringMatching(message) })
})

const someone = { isDirect: true, mayExecute: false }

test.for(['x/../../v1/y', 'x/%2e%2E/y', './y', 'x\\y'])('the path %s is refused', async (path) => {
  const { compute, fleet } = await bed()
  compute.asked.length = 0
  expect(
    await faultOf(
      forward(fleet, 'one', { request: new Request('http://us/'), path: `/v2/compute/${path}`, caller: someone }),
    ),
  ).toMatchObject({ status: 400 })
  expect(compute.asked).toEqual([])
})
