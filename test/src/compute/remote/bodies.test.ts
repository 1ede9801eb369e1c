import { expect, test } from 'vitest'
import type { RemoteOptions } from '../../../../src/compute/remote/options.ts'
import { badRequest } from '../../../../src/lib/errors/api-error.ts'
import { type Answer, dies, lyingCompute, refusal, says } from '../../../support/lying-compute.ts'

const file = { 'last-modified': 'Sat, 21 Nov 2026 10:00:00 GMT', etag: '"1"' }
const hello = (headers: Record<string, string>, status = 200, body = 'hello'): Answer => {
  return (_, res) => res.writeHead(status, { ...file, ...headers }).end(body)
}
const text = async (content: ReadableStream<Uint8Array>) => new Response(content).text()

/** A body of so many chunks of 64 KiB; `asked` counts them. */
function chunks(count: number, between: () => Promise<void> = async () => {}) {
  const state = { asked: 0, cancelled: false }
  const content = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        await between()
        state.asked += 1
        if (state.asked > count) controller.close()
        else controller.enqueue(new Uint8Array(64 << 10))
      },
      cancel: () => {
        state.cancelled = true
      },
    },
    { highWaterMark: 0 },
  )
  return { content, state }
}

test('an image comes with its size and time', async () => {
  const { agent } = await lyingCompute(hello({ 'content-length': '5' }))
  const { content, size, modified } = await agent.images.read('iou', 'a/b', {})
  expect([size, modified, await text(content)]).toEqual([5, Date.parse('2026-11-21T10:00:00Z'), 'hello'])
})

test.for<[name: string, headers: Record<string, string>, status: number]>([
  ['size', { 'transfer-encoding': 'chunked' }, 200],
  ['time', { 'content-length': '5', 'last-modified': 'yesterday' }, 200],
  ['place', { 'content-length': '5' }, 206],
  ['place that fits', { 'content-length': '5', 'content-range': 'bytes 0-3/9' }, 206],
  ['place in it', { 'content-length': '5', 'content-range': 'bytes 5-9/9' }, 206],
])('an image without its %s is a bad gateway, and is let go', async ([, headers, status]) => {
  const { agent } = await lyingCompute(hello(headers, status))
  expect(await refusal(agent.images.read('iou', 'x', {}))).toMatchObject({ status: 502 })
})

test('a part of an image has its range', async () => {
  const { agent, requests } = await lyingCompute(
    hello({ 'content-length': '5', 'content-range': 'bytes 2-6/100' }, 206),
  )
  const { content, ...facts } = await agent.images.read('iou', 'x', { range: { first: 2, last: 6 }, onlyIf: '"1"' })
  expect(facts).toMatchObject({ size: 100, etag: '"1"', part: { first: 2, last: 6 } })
  expect(await text(content)).toBe('hello')
  expect(requests[0]?.headers).toMatchObject({ range: 'bytes=2-6', 'if-range': '"1"' })
  await agent.images.read('iou', 'x', { range: { suffix: 3 } })
  await agent.images.read('iou', 'x', { range: { first: 3 } })
  expect(requests.slice(1).map(({ headers }) => headers.range)).toEqual(['bytes=-3', 'bytes=3-'])
})

test('a body that breaks off is an error for its reader, and is not requested again', async () => {
  const { agent, requests } = await lyingCompute((_, res) => {
    res.writeHead(200, { ...file, 'content-length': '100' })
    res.write('hello')
    setTimeout(() => res.destroy(), 20)
  })
  const { content } = await agent.images.read('iou', 'a', {})
  expect(await refusal(text(content))).toMatchObject({
    status: 502,
    message: expect.stringContaining('the answer ended early'),
  })
  expect(requests).toHaveLength(1)
})

test('a body with another length than its header is an error, whatever the transport says', async () => {
  for (const body of ['hell', 'hello!']) {
    const send = async () => new Response(body, { headers: { ...file, 'content-length': '5' } })
    const { agent } = await lyingCompute(dies, { send })
    const { content } = await agent.images.read('iou', 'a', {})
    expect(await refusal(text(content))).toMatchObject({ message: expect.stringContaining('5 bytes were announced') })
  }
})

test('an idle body has a timeout while it is read, and none while it is not', async () => {
  let go = () => {}
  const { agent, left } = await lyingCompute(
    (_, res) => {
      res.writeHead(200, { ...file, 'content-length': '100' })
      res.write('hello')
      go = () => void res.write('again')
    },
    { limits: { idleMs: 500 } },
  )
  const { content } = await agent.images.read('iou', 'a', {})
  const reader = content.getReader()
  await reader.read()
  await new Promise((resolve) => setTimeout(resolve, 800))
  go()
  expect(new TextDecoder().decode((await reader.read()).value)).toBe('again')
  expect(await refusal(reader.read())).toMatchObject({
    status: 504,
    message: 'The compute one did not continue within 500 ms',
  })
  await left
})

test('a body that comes byte by byte is given up', async () => {
  const { agent, left } = await lyingCompute(
    (_, res) => {
      res.writeHead(200, { ...file, 'content-length': '1000' })
      const timer = setInterval(() => res.write('x'), 150)
      res.once('close', () => clearInterval(timer))
    },
    { limits: { idleMs: 400 } },
  )
  const { content } = await agent.images.read('iou', 'a', {})
  expect(await refusal(text(content))).toMatchObject({
    ...{ status: 504, message: 'The compute one transfers less than 16 KB of a body per second' },
  })
  await left
})

test('an upload of which a compute takes byte by byte is given up', async () => {
  const { state, content } = chunks(1000)
  const send: RemoteOptions['send'] = async ({ body, signal }) => {
    const reader = (body as ReadableStream<Uint8Array>).getReader()
    while (!signal.aborted) {
      await reader.read()
      await new Promise((resolve) => setTimeout(resolve, 150))
    }
    throw signal.reason
  }
  const byteByByte = content.pipeThrough(
    new TransformStream({ transform: (_, controller) => controller.enqueue(new Uint8Array(1)) }),
  )
  const { agent } = await lyingCompute(dies, { send, limits: { idleMs: 400 } })
  expect(await refusal(agent.images.write('iou', 'a', byteByByte, { digests: [] }))).toMatchObject({ status: 504 })
  expect(state.asked).toBeLessThan(20)
})

test('a cancelled body is cancelled at the compute', async () => {
  const { agent, left } = await lyingCompute((_, res) => {
    res.writeHead(200, { ...file, 'content-length': '100' })
    res.write('hello')
  })
  const { content } = await agent.images.read('iou', 'a', {})
  await content.cancel()
  await left
})

test('an upload is streamed, with its size and digests', async () => {
  let bytes = 0
  const { agent, requests } = await lyingCompute((req, res) => {
    req.on('data', (data: Buffer) => {
      bytes += data.length
    })
    req.on('end', () => res.writeHead(204).end())
  })
  const { content, state } = chunks(30)
  const size = 30 * (64 << 10)
  const digests = [{ algorithm: 'md5', hex: '5d41402abc4b2a76b9719d911017c592' }] as const
  expect(await agent.images.write('iou', 'a/b', content, { size, digests })).toEqual({ received: size, done: true })
  expect([bytes, state.asked]).toEqual([size, 31])
  expect(requests[0]).toMatchObject({
    url: '/v2/compute/iou/images/a%2Fb',
    headers: { 'content-length': String(size), 'repr-digest': 'md5=:XUFAKrxLKna5cZ2REBfFkg==:' },
  })
})

test('an upload may be empty', async () => {
  const { agent, requests } = await lyingCompute((req, res) => {
    req.resume()
    req.on('end', () => res.writeHead(204).end())
  })
  const answer = await agent.images.write('iou', 'x', chunks(0).content, { size: 0, digests: [] })
  expect(answer).toEqual({ received: 0, done: true })
  expect(requests[0]?.headers['content-length']).toBe('0')
})

test('the answer to a part of an upload has the number of stored bytes', async () => {
  const part = { first: 0, last: 65_535, total: 1_000_000 }
  for (const [range, received] of [
    ['bytes=0-65535', 65_536],
    [undefined, 0],
  ] as const) {
    const { agent, requests } = await lyingCompute((req, res) => {
      req.resume()
      req.on('end', () => res.writeHead(308, range === undefined ? {} : { range }).end())
    })
    const answer = await agent.images.write('iou', 'x', chunks(1).content, { part, digests: [] })
    expect(answer).toEqual({ received, done: false })
    expect(requests[0]?.headers['content-range']).toBe('bytes 0-65535/1000000')
    expect(await agent.images.progress('iou', 'x', 1_000_000)).toEqual({ received, done: false })
  }
})

test('a redirect is not mistaken for the progress of an upload', async () => {
  const { agent } = await lyingCompute((req, res) => {
    req.resume()
    req.on('end', () => res.writeHead(308, { range: 'bytes=0-9', location: '/x' }).end())
  })
  const part = { first: 0, last: 65_535, total: 1_000_000 }
  expect(await refusal(agent.images.write('iou', 'x', chunks(1).content, { part, digests: [] }))).toMatchObject({
    status: 409,
    message: expect.stringContaining('redirect'),
  })
})

test('an upload that is refused at once gets the error, and is read no further', async () => {
  for (let times = 0; times < 10; times++) {
    const { agent } = await lyingCompute(says({ message: 'no', status: 403 }, 403))
    const { content, state } = chunks(10_000)
    expect(await refusal(agent.images.write('iou', 'x', content, { digests: [] }))).toMatchObject({ status: 403 })
    expect(state.cancelled).toBe(true)
    expect(state.asked).toBeLessThan(10_000)
  }
})

test('an upload that a compute does not read has a timeout; a slow one has no such timeout', async () => {
  const options = { limits: { idleMs: 500 } }
  const deaf = await lyingCompute(() => {}, options)
  const { content, state } = chunks(10_000)
  expect(await refusal(deaf.agent.images.write('iou', 'a', content, { digests: [] }))).toMatchObject({
    status: 504,
    message: 'The compute one did not answer within 500 ms',
  })
  expect(state.cancelled).toBe(true)
  const patient = await lyingCompute((req, res) => {
    req.resume()
    req.on('end', () => res.writeHead(204).end())
  }, options)
  const slow = chunks(1, () => new Promise((resolve) => setTimeout(resolve, 800)))
  await patient.agent.images.write('iou', 'a', slow.content, { digests: [] })
})

test('an upload whose source fails does not end like a complete one', async () => {
  let see = () => {}
  const seen = new Promise<void>((resolve) => {
    see = resolve
  })
  const { agent, left, requests } = await lyingCompute((req) => {
    req.on('error', () => {}).resume()
    see()
  })
  const failing = (error: Error) => {
    let count = 0
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (count++ < 3) return controller.enqueue(new Uint8Array(1000))
        await seen
        controller.error(error)
      },
    })
  }
  const broken = agent.images.write('iou', 'a', failing(new Error('gone')), { digests: [] })
  expect(await refusal(broken)).toMatchObject({ status: 400, message: 'The body ended early' })
  await left
  expect(requests[0]?.complete).toBe(false)
  const refused = agent.images.write('iou', 'a', failing(badRequest('too slow')), { digests: [] })
  expect(await refusal(refused)).toMatchObject({ status: 400, message: 'too slow' })
  const short = agent.images.write('iou', 'x', chunks(1).content, { size: 100_000, digests: [] })
  expect(await refusal(short)).toMatchObject({ status: 400, message: 'The body ended after 65536 of 100000 bytes' })
})
