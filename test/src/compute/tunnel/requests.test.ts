import * as fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ConnectionLost } from '../../../../src/compute/remote/transport.ts'
import { frameKinds } from '../../../../src/compute/tunnel/frames.ts'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import { bytesOf, jsonOf, textOf } from '../../../support/answer.ts'
import { pieces, request, tunnelPair, until } from '../../../support/tunnel.ts'

const nothingLeft = ({ asking, answering }: Awaited<ReturnType<typeof tunnelPair>>) =>
  until(() => asking.size === 0 && answering.size === 0)

test('a request and its answer arrive unchanged', async () => {
  const pair = await tunnelPair({
    fetch: async (it) =>
      Response.json(
        { url: it.url, method: it.method, type: it.headers.get('content-type'), body: await it.text() },
        { status: 201, headers: { 'x-word': 'grün', etag: '"1"' } },
      ),
  })
  const answer = await pair.asking.send(
    request('x/%20?a=b%26', {
      method: 'POST',
      headers: { 'content-type': 'text/plain' },
      body: new Response('hällo').body,
    }),
  )
  expect([answer.status, answer.headers.get('x-word'), answer.headers.get('etag')]).toEqual([201, 'grün', '"1"'])
  expect(await jsonOf(answer)).toEqual({
    ...{ url: 'http://localhost/v2/compute/x/%20?a=b%26', method: 'POST', type: 'text/plain', body: 'hällo' },
  })
  await nothingLeft(pair)
})

test('a request without a body has all members of a Request, which is made only when it is read', async () => {
  let made = 0
  const Whole = Request
  vi.stubGlobal(
    'Request',
    class extends Whole {
      constructor(...args: ConstructorParameters<typeof Request>) {
        super(...args)
        made += 1
      }
    },
  )
  onTestFinished(() => void vi.unstubAllGlobals())
  const seen: unknown[] = []
  const pair = await tunnelPair({
    fetch: async (it) => {
      const { method, url, body } = it
      const own = [method, url, it.headers.get('x-a'), body, it.signal.aborted, it instanceof Whole, made]
      const copy = it.clone()
      seen.push(own, [it.redirect, it.bodyUsed, await it.text(), copy.url, copy.headers.get('x-a'), made])
      return new Response(null, { status: 204 })
    },
  })
  await pair.asking.send(request('x?a=b', { headers: { 'x-a': 'one' } }))
  const url = 'http://localhost/v2/compute/x?a=b'
  expect(seen).toEqual([
    ['GET', url, 'one', null, false, true, 0],
    ['follow', false, '', url, 'one', 1],
  ])
  await nothingLeft(pair)
})

test('other paths about this host are answered, and no others', async () => {
  const pair = await tunnelPair({ fetch: async ({ url }) => new Response(url) })
  const ask = async (path: string) => textOf(await pair.asking.send({ ...request(''), path }))
  for (const path of ['/v1/projects/p/commit', '/v2/computes/local/auto_idlepc']) {
    expect(await ask(path)).toBe(`http://localhost${path}`)
  }
  for (const path of ['/v1/config/reload', '/v2/tokens', '/v1/projects/../config/reload']) {
    await expect(ask(path)).rejects.toThrow(/only paths of/)
  }
  await nothingLeft(pair)
})

test('answers without a body have none', async () => {
  const pair = await tunnelPair({
    fetch: async ({ method, url }) =>
      method === 'HEAD' ? new Response('not sent') : new Response(null, { status: url.endsWith('304') ? 304 : 204 }),
  })
  for (const [method, path, status] of [
    ['GET', '204', 204],
    ['GET', '304', 304],
    ['HEAD', 'x', 200],
  ] as const) {
    const answer = await pair.asking.send(request(path, { method }))
    expect([answer.status, answer.body]).toEqual([status, null])
  }
  await nothingLeft(pair)
})

test('concurrent messages, in pieces of any size, arrive completely and in order', async () => {
  const bodies = fc.array(fc.array(fc.integer({ min: 0, max: 90_000 }), { maxLength: 6 }), {
    minLength: 1,
    maxLength: 8,
  })
  const limits = fc.record({ window: fc.integer({ min: 16_384, max: 70_000 }), streams: fc.constant(64) })
  const echo = async (it: Request) => new Response(it.body)
  await fc.assert(
    fc.asyncProperty(bodies, limits, fc.integer({ min: 1, max: 100_000 }), async (sizes, limits, most) => {
      const pair = await tunnelPair({ fetch: echo, limits, most })
      const ask = async (lengths: readonly number[], seed: number) => {
        const sent = lengths.map((length, index) => new Uint8Array(length).fill(seed * 16 + index))
        const body = new Blob(sent).stream()
        const answer = await pair.asking.send(request('echo', { method: 'POST', body }))
        const came = Buffer.from(await bytesOf(answer))
        expect(came.equals(Buffer.concat(sent))).toBe(true)
      }
      await Promise.all(sizes.map(ask))
      await nothingLeft(pair)
      expect(pair.ends).toEqual({})
      pair.asking.close(1001, 'The run ends')
    }),
    { numRuns: 25 },
  )
})

test('a stream that is not read stops at its window, and does not delay others', async () => {
  const window = 64 * 1024
  const slow = pieces(1000, 16 * 1024)
  const pair = await tunnelPair({
    fetch: async ({ url }) => new Response(url.endsWith('slow') ? slow.body : pieces(100, 16 * 1024).body),
    limits: { window, streams: 10 },
  })
  const waiting = await pair.asking.send(request('slow'))
  const fast = await pair.asking.send(request('fast'))
  expect((await bytesOf(fast)).byteLength).toBe(100 * 16 * 1024)
  expect(pair.up.dataOf(1)).toBeLessThanOrEqual(window)
  // One more is in the hands of the sender.
  expect(slow.made()).toBeLessThanOrEqual(window / (16 * 1024) + 1)
  const reader = waiting.body?.getReader()
  for (let index = 0; index < 20; index++) await reader?.read()
  expect(slow.made()).toBeGreaterThan(15)
  await reader?.cancel()
  await nothingLeft(pair)
})

test('an upload that is not read stops at its window', async () => {
  const window = 64 * 1024
  const big = pieces(1000, 16 * 1024)
  let read = () => {}
  const mayRead = new Promise<void>((resolve) => {
    read = resolve
  })
  const pair = await tunnelPair({
    async fetch(it) {
      if (it.url.endsWith('small')) return new Response('at once')
      await mayRead
      return new Response(String((await it.arrayBuffer()).byteLength))
    },
    limits: { window, streams: 10 },
  })
  const answer = pair.asking.send(request('big', { method: 'POST', body: big.body }))
  await until(() => pair.down.dataOf(1) > window / 2)
  const small = await pair.asking.send(request('small'))
  expect(await textOf(small)).toBe('at once')
  expect(pair.down.dataOf(1)).toBeLessThanOrEqual(window)
  read()
  expect(await textOf(await answer)).toBe(String(1000 * 16 * 1024))
})

test('streams take turns on a slow connection', async () => {
  const pair = await tunnelPair({
    fetch: async () => new Response(pieces(1, 2 ** 20).body),
    limits: { window: 2 ** 21, streams: 10 },
    most: 40_000,
  })
  const answers = await Promise.all(['a', 'b', 'c'].map((path) => pair.asking.send(request(path))))
  await Promise.all(answers.map((answer) => bytesOf(answer)))
  const data = pair.up.sent.filter(({ kind }) => kind === frameKinds.data)
  expect(data.every(({ bytes }) => bytes <= 32 * 1024)).toBe(true)
  const streams = data.map(({ stream }) => stream)
  const allBegun = Math.max(...[1, 2, 3].map((id) => streams.indexOf(id)))
  const oneEnded = Math.min(...[1, 2, 3].map((id) => streams.lastIndexOf(id)))
  expect(oneEnded - allBegun).toBeGreaterThan(60)
  for (let at = allBegun; at + 3 <= oneEnded; at += 3) {
    expect(streams.slice(at, at + 3).toSorted()).toEqual([1, 2, 3])
  }
})

test('a cancelled request ends at the other end, and so does its answer', async () => {
  const signals: AbortSignal[] = []
  const endless = pieces(Number.POSITIVE_INFINITY, 1000)
  const pair = await tunnelPair({
    async fetch(it) {
      signals.push(it.signal)
      if (it.url.endsWith('never')) return new Promise<Response>(() => {})
      return new Response(endless.body)
    },
  })
  const over = new AbortController()
  const never = pair.asking.send(request('never', { signal: over.signal }))
  const answer = await pair.asking.send(request('endless', { signal: over.signal }))
  const reader = answer.body?.getReader()
  await reader?.read()
  over.abort(new Error('the client left'))
  await expect(never).rejects.toThrow('the client left')
  await expect(
    (async () => {
      for (;;) await reader?.read()
    })(),
  ).rejects.toThrow('the client left')
  await nothingLeft(pair)
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
})

test('an answer before the end of the request leaves the rest of the request unread', async () => {
  let isCancelled = false
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new Uint8Array(10)),
    cancel() {
      isCancelled = true
    },
  })
  const pair = await tunnelPair({ fetch: async () => new Response('enough', { status: 413 }) })
  const answer = await pair.asking.send(request('x', { method: 'POST', body }))
  expect([answer.status, await textOf(answer)]).toEqual([413, 'enough'])
  await nothingLeft(pair)
  await until(() => !body.locked)
  expect(isCancelled).toBe(false)
})

test('a handler that cancels the body of the request answers it all the same', async () => {
  const body = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(new Uint8Array(10)) })
  const pair = await tunnelPair({
    async fetch(asked) {
      await asked.body?.cancel()
      return new Response('gone', { status: 404 })
    },
  })
  const answer = await pair.asking.send(request('x', { method: 'POST', body }))
  expect([answer.status, await textOf(answer)]).toEqual([404, 'gone'])
  await nothingLeft(pair)
  await until(() => !body.locked)
})

test('a body that fails on its way ends the other end of it', async () => {
  const errors: unknown[] = []
  const pair = await tunnelPair({
    async fetch(it) {
      if (it.method === 'GET') return new Response(failing())
      await it.text().catch((error: unknown) => errors.push(error))
      return new Response('')
    },
  })
  const failing = (error: Error = new Error('the disk is gone')) =>
    new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(new Uint8Array(10))
        controller.error(error)
      },
    })
  const answer = await pair.asking.send(request('x'))
  await expect(textOf(answer)).rejects.toBeInstanceOf(ConnectionLost)
  const post = (body: ReadableStream<Uint8Array>) => pair.asking.send(request('x', { method: 'POST', body }))
  await expect(post(failing())).rejects.toMatchObject({
    status: 400,
    message: 'The request body ended early; nothing was stored',
  })
  // Of another compute, whose file is copied.
  for (const error of [new ConnectionLost('it has gone'), new ApiError(504, 'it has gone')])
    await expect(post(failing(error))).rejects.toBe(error)
  await nothingLeft(pair)
  await until(() => errors.length === 3)
})

test('a path that is not about this host, or not valid, does not reach the app', async () => {
  const asked: string[] = []
  const pair = await tunnelPair({
    async fetch(it) {
      asked.push(it.url)
      return new Response('')
    },
  })
  for (const path of [
    '/v1/version',
    '/v2/computes',
    '/v2/compute/../computes',
    '/v2/compute/%2e%2E/computes',
    '/v2/compute\\..\\x',
  ]) {
    await expect(pair.asking.send({ ...request(''), path })).rejects.toBeInstanceOf(ConnectionLost)
  }
  expect(asked).toEqual([])
  await nothingLeft(pair)
})

test('no more streams are opened than both ends allow', async () => {
  const pair = await tunnelPair({
    fetch: async ({ url }) => (url.endsWith('never') ? new Promise<Response>(() => {}) : new Response('')),
    limits: { window: 16_384, streams: 2 },
  })
  const over = new AbortController()
  const never = [1, 2].map(() => pair.asking.send(request('never', { signal: over.signal })).catch(() => {}))
  await expect(pair.asking.send(request('x'))).rejects.toMatchObject({ status: 503 })
  over.abort()
  await Promise.all(never)
  // Their handlers still work there: that is refused by the compute.
  await expect(pair.asking.send(request('x'))).rejects.toThrow('too many requests are open')
})

test('a head that is too long for a frame is refused, and does not end the tunnel', async () => {
  const pair = await tunnelPair({
    fetch: async () => new Response('x', { headers: Object.fromEntries(Array.from({ length: 9 }, longHeader)) }),
  })
  const longHeader = (_: unknown, index: number) => [`x-${index}`, 'x'.repeat(40_000)]
  const headers = Object.fromEntries(Array.from({ length: 9 }, longHeader)) as Record<string, string>
  await expect(pair.asking.send(request('x'.repeat(20_000)))).rejects.toMatchObject({ status: 431 })
  await expect(pair.asking.send(request('x', { headers }))).rejects.toMatchObject({ status: 431 })
  await expect(pair.asking.send(request('x'))).rejects.toThrow('its headers are too long')
  await nothingLeft(pair)
  expect(pair.ends).toEqual({})
})

test('a request fails when the connection has ended and that was not reported yet', async () => {
  const pair = await tunnelPair({ fetch: async () => new Response('') })
  pair.down.close(1006, '')
  const failed = await pair.asking.send(request('x')).catch((error: unknown) => error)
  // It was not sent, and can be sent again.
  expect(failed).toMatchObject({ message: 'it is not connected' })
  expect(failed).not.toBeInstanceOf(ConnectionLost)
  expect([pair.asking.size, pair.ends.asking?.code]).toEqual([0, 0])
})
