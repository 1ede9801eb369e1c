import * as fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ConnectionLost } from '../../../../src/compute/remote/transport.ts'
import { AskingEnd } from '../../../../src/compute/tunnel/asking.ts'
import {
  encodeJson,
  encodeTunnelFrame,
  encodeWindow,
  frameKinds,
  resetCodes,
} from '../../../../src/compute/tunnel/frames.ts'
import type { TunnelEnd } from '../../../../src/compute/tunnel/link.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { textOf } from '../../../support/answer.ts'
import { pieces, request, tunnelPair, until, who } from '../../../support/tunnel.ts'

const never = () => new Promise<Response>(() => {})
const hello = { protocol: 1, ...who, window: 16_384, streams: 10 }
const silent = { send() {}, close() {}, drained: async () => {} }

test('the end of a tunnel ends all its streams', async () => {
  const signals: AbortSignal[] = []
  const pair = await tunnelPair({
    async fetch(it) {
      signals.push(it.signal)
      return it.url.endsWith('never') ? never() : new Response(pieces(1000, 10_000).body)
    },
  })
  const waiting = pair.asking.send(request('never'))
  const answer = await pair.asking.send(request('x'))
  pair.answering.close(1001, 'The compute is shutting down')
  await expect(waiting).rejects.toBeInstanceOf(ConnectionLost)
  await expect(textOf(answer)).rejects.toThrow('The compute is shutting down')
  expect([pair.asking.size, pair.answering.size]).toEqual([0, 0])
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
  expect(pair.ends.asking).toEqual({ code: 1001, reason: 'The compute is shutting down' })
  const late = await pair.asking.send(request('x')).catch((error: unknown) => error)
  expect(late).toMatchObject({ message: 'it is not connected' })
  expect(late).not.toBeInstanceOf(ConnectionLost)
})

test('a message that is not a frame ends the tunnel with a reason, and leaves no stream', async () => {
  const json = (kind: (typeof frameKinds)[keyof typeof frameKinds], value: unknown, stream = 1) =>
    encodeJson(kind, stream, value)
  const bad: readonly (readonly [data: Uint8Array | string, reason: string])[] = [
    [new Uint8Array(), 'a message is not a frame'],
    [new Uint8Array([10, 0, 0, 0, 0, 1]), 'a message is not a frame'],
    ['hello', 'a text is neither ping nor pong'],
    [encodeTunnelFrame(frameKinds.data, 1, new Uint8Array(32 * 1024 + 1)), 'a frame is too long'],
    [encodeTunnelFrame(frameKinds.data, 7), 'a frame is of a stream that was never opened'],
    [encodeTunnelFrame(frameKinds.window, 1, new Uint8Array(3)), 'a WINDOW frame is not 4 bytes long'],
    [encodeTunnelFrame(frameKinds.open, 2), 'a frame opens a stream where none may be opened'],
    [json(frameKinds.hello, hello, 0), 'an unexpected HELLO arrived'],
    [encodeTunnelFrame(frameKinds.reset, 1, new Uint8Array([0xff])), 'a frame does not contain JSON'],
    [json(frameKinds.reset, { reason: 1 }), 'the JSON of a frame does not fit its type'],
  ]
  for (const [data, reason] of bad) {
    const pair = await tunnelPair({ fetch: never })
    const waiting = pair.asking.send(request('x')).catch((error: Error) => error.message)
    pair.asking.message(data)
    expect(await waiting).toBe(reason)
    expect([pair.ends.asking, pair.asking.size]).toEqual([{ code: resetCodes.malformed, reason }, 0])
    await until(() => pair.ends.answering !== undefined)
    expect([pair.ends.answering, pair.answering.size]).toEqual([{ code: resetCodes.malformed, reason }, 0])
  }
})

test.for<[name: string, data: Uint8Array | string]>([
  ['texts', 'pong'],
  ['windows', encodeWindow(1, 0)],
  ['data of streams that have ended', encodeTunnelFrame(frameKinds.data, 1, new Uint8Array(9))],
])('more %s than the time and the requests allow end the tunnel', async ([name, data]) => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const pair = await tunnelPair({ fetch: name === 'windows' ? never : async () => new Response(null) })
  const asked = pair.asking.send(request('x')).catch((error: Error) => error.message)
  if (name !== 'windows') await asked
  const send = (count: number) => {
    for (let left = count; left > 0; left--) pair.asking.message(data)
  }
  // The request has brought some, and its answer has taken one.
  send(20_000)
  expect(pair.ends.asking).toBeUndefined()
  vi.setSystemTime(Date.now() + 1000)
  send(1000)
  expect(pair.ends.asking).toBeUndefined()
  send(10)
  const reason = 'It sends too many messages'
  expect(pair.ends.asking).toEqual({ code: resetCodes.flooding, reason })
  await until(() => pair.ends.answering !== undefined)
  expect(pair.ends.answering).toEqual({ code: resetCodes.flooding, reason })
})

test('a fast upload, for which a compute with a small window grants credit often, ends no tunnel', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const pair = await tunnelPair({
    async fetch(it) {
      let size = 0
      for await (const piece of it.body as unknown as AsyncIterable<Uint8Array>) size += piece.length
      return new Response(String(size))
    },
    limits: { window: 16_384, streams: 10 },
  })
  const { body } = pieces(400, 2 ** 20)
  const answer = await pair.asking.send(request('x', { method: 'POST', body })).catch((error: Error) => error.message)
  expect(pair.ends).toEqual({})
  expect(answer).toMatchObject({ status: 200 })
  expect(pair.up.sent.filter(({ kind }) => kind === frameKinds.window).length).toBeGreaterThan(20_010)
})

test.each([
  ['of a stream that is under way', 2],
  ['of a stream that has ended', 1],
  ['below every number that a stream may have', 0],
])('an OPEN with the number %s ends the tunnel', async (_, id) => {
  const asked: string[] = []
  const pair = await tunnelPair({
    async fetch(it) {
      asked.push(it.url)
      return it.url.endsWith('quick') ? new Response(null) : never()
    },
  })
  const opening = { method: 'GET', path: '/v2/compute/again', headers: [], body: false }
  await pair.asking.send(request('quick'))
  const waiting = pair.asking.send(request('slow')).catch((error: Error) => error.message)
  await until(() => asked.length === 2 && pair.answering.size === 1)
  pair.answering.message(encodeJson(frameKinds.open, id, opening))
  expect(pair.ends.answering).toEqual({
    code: resetCodes.malformed,
    reason: 'a frame opens a stream where none may be opened',
  })
  expect(await waiting).toBe('a frame opens a stream where none may be opened')
  expect([asked.length, pair.asking.size, pair.answering.size]).toEqual([2, 0, 0])
})

test('more data than the window allows ends the tunnel', async () => {
  const pair = await tunnelPair({ fetch: never, limits: { window: 16_384, streams: 10 } })
  const waiting = pair.asking.send(request('x')).catch((error: Error) => error.message)
  // An empty one costs, too.
  for (let index = 0; index <= 16_384 / 16; index++) pair.asking.message(encodeTunnelFrame(frameKinds.data, 1))
  expect(await waiting).toBe('more was sent than the window allows')
})

test.for<[name: string, frame: Uint8Array]>([
  ['in its HELLO', encodeJson(frameKinds.hello, 0, { ...hello, window: 2 ** 22 + 1 })],
  ['by a WINDOW', encodeWindow(1, 2 ** 22)],
])('a compute that grants more than 4 MiB %s is disconnected: it might not read it', async ([name, frame]) => {
  const ends: TunnelEnd[] = []
  const ended = (end: TunnelEnd) => void ends.push(end)
  const asking: AskingEnd = new AskingEnd({ wire: silent, version: '1.4.2', greeted: () => asking.accept(), ended })
  onTestFinished(() => asking.closed())
  if (name === 'by a WINDOW') {
    asking.message(encodeJson(frameKinds.hello, 0, hello))
    asking.send(request('x')).catch(ignore('the tunnel ends'))
  }
  asking.message(frame)
  expect(ends).toMatchObject([{ code: resetCodes.malformed }])
})

test('any messages cause no exception, and leave no stream', async () => {
  const valid = fc.record({
    kind: fc.constantFrom(...Object.values(frameKinds)),
    stream: fc.integer({ min: 0, max: 4 }),
    payload: fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc
        .constantFrom('{}', '{"reason":"x"}', '{"status":200,"headers":[],"body":true}', JSON.stringify(hello))
        .map((text) => new TextEncoder().encode(text)),
      fc.constant(new TextEncoder().encode('{"method":"GET","path":"/v2/compute/x","headers":[],"body":true}')),
    ),
    flags: fc.integer({ min: 0, max: 255 }),
  })
  const frame = fc.oneof(
    valid.map((it) => encodeTunnelFrame(it.kind, it.stream, it.payload, it.flags)),
    fc.uint8Array({ maxLength: 20 }),
    fc.constantFrom('ping', 'pong', 'x'),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(frame, { maxLength: 12 }), fc.boolean(), async (frames, toAsking) => {
      const pair = await tunnelPair({ fetch: async (it) => new Response(it.body) })
      const asked = [1, 2].map(() =>
        pair.asking
          .send(request('x'))
          .then((it) => textOf(it))
          .catch(() => {}),
      )
      for (const data of frames) (toAsking ? pair.asking : pair.answering).message(data)
      pair.asking.close(1001, 'The run ends')
      await Promise.all(asked)
      await until(() => pair.ends.answering !== undefined)
      expect([pair.asking.size, pair.answering.size]).toEqual([0, 0])
    }),
    { numRuns: 100 },
  )
})

/** Lets time pass in steps, in which messages arrive. */
async function pass(ms: number): Promise<void> {
  for (let at = 0; at < ms; at += 1000) {
    vi.advanceTimersByTime(1000)
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
}

function stoppedClock(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  onTestFinished(() => void vi.useRealTimers())
}

test('a silent end is noticed within 30 s, and one that answers stays connected', async () => {
  stoppedClock()
  const pair = await tunnelPair({ fetch: never })
  await pass(120_000)
  expect(pair.ends).toEqual({})
  expect(pair.down.sent.filter(({ kind }) => kind === 'ping').length).toBeLessThanOrEqual(120 / 8)
  const waiting = pair.asking.send(request('x')).catch((error: Error) => error.message)
  // The compute hears, and what it says gets lost.
  pair.up.hold()
  await pass(30_000)
  expect(await waiting).toBe('The other end is silent')
  expect(pair.ends.asking?.code).toBe(resetCodes.silent)
})

test('an end that may hibernate is checked only while requests are under way', async () => {
  stoppedClock()
  const pair = await tunnelPair({ fetch: async () => new Response('x'), asking: { watch: 'busy' } })
  await textOf(await pair.asking.send(request('x')))
  const timers = vi.getTimerCount()
  pair.up.hold()
  await pass(15_000)
  expect(pair.ends).toEqual({})
  const waiting = pair.asking.send(request('x')).catch((error: Error) => error.message)
  expect(vi.getTimerCount()).toBe(timers + 1)
  await pass(30_000)
  expect(await waiting).toBe('The other end is silent')
})

test('an idle answer is no reason for checks, and a request beside it is', async () => {
  stoppedClock()
  const never = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) })
  const pair = await tunnelPair({
    fetch: async (it) => new Response(it.url.endsWith('feed') ? never : 'x'),
    asking: { watch: 'busy' },
  })
  const timers = vi.getTimerCount()
  const feed = await pair.asking.send(request('feed', { longLived: true }))
  expect(vi.getTimerCount()).toBe(timers)
  pair.up.hold()
  await pass(15_000)
  expect(pair.down.sent.some(({ kind }) => kind === 'ping')).toBe(false)
  const waiting = pair.asking.send(request('x')).catch((error: Error) => error.message)
  await pass(30_000)
  expect(await waiting).toBe('The other end is silent')
  await expect(textOf(feed)).rejects.toThrow('The other end is silent')
})

test('an end that sends pings and does not read gets one pong', async () => {
  const pair = await tunnelPair({ fetch: never, most: 0 })
  pair.up.hold()
  for (let index = 0; index < 100; index++) pair.answering.message('ping')
  expect(pair.up.sent.filter(({ kind }) => kind === 'pong')).toHaveLength(1)
})

test('a compute with another protocol version gets an error', async () => {
  const closed: unknown[] = []
  let end: TunnelEnd | undefined
  const asking = new AskingEnd({
    wire: { ...silent, close: (code, reason) => void closed.push(code, reason) },
    version: '1.0.0',
    ended: (it) => {
      end = it
    },
  })
  asking.message(encodeJson(frameKinds.hello, 0, { protocol: 2, more: true }))
  expect(closed).toEqual([4406, 'The compute speaks tunnel version 2, this service version 1'])
  expect(end?.code).toBe(4406)
})

test('only known members of a HELLO are stored', () => {
  let heard: unknown
  const greeted = (it: unknown) => {
    heard = it
  }
  const asking = new AskingEnd({ wire: silent, version: '1.0.0', greeted, ended: () => {} })
  onTestFinished(() => asking.close(1001, 'The test ends'))
  asking.message(encodeJson(frameKinds.hello, 0, { ...hello, more: 'x'.repeat(20_000) }))
  expect(heard).toEqual(hello)
})

test('a gateway continues with the same websocket after a hibernation', async () => {
  const signals: AbortSignal[] = []
  let isSlow = true
  const pair = await tunnelPair({
    async fetch(it) {
      signals.push(it.signal)
      return isSlow ? never() : new Response('again')
    },
  })
  const { hello } = pair.asking
  if (hello === undefined) throw new Error('it was greeted')
  void pair.asking.send(request('x')).catch(() => {})
  await until(() => signals.length === 1)
  isSlow = false
  // The end before has gone with its program: it hears no second HELLO, which would be one too many for it.
  pair.up.deliverTo({ message() {}, closed() {} })
  const resumed = new AskingEnd({ wire: pair.down, version: '1.4.2', resumed: hello, ended() {} })
  // What is said to the one before is not for this one.
  resumed.message(encodeTunnelFrame(frameKinds.data, 1, new Uint8Array(3)))
  const asked = resumed.send(request('x'))
  await until(() => pair.up.sent.at(-1)?.kind === frameKinds.end)
  expect(signals).toHaveLength(2)
  expect(signals[0]?.aborted).toBe(true)
  const [again, head, data, over] = pair.up.sent.slice(-4)
  expect([again, head, data, over].map((it) => it?.kind)).toEqual([
    frameKinds.hello,
    frameKinds.head,
    frameKinds.data,
    frameKinds.end,
  ])
  resumed.message(encodeJson(frameKinds.hello, 0, hello))
  resumed.message(encodeJson(frameKinds.head, 1, { status: 200, headers: [], body: true }))
  resumed.message(encodeTunnelFrame(frameKinds.data, 1, new TextEncoder().encode('again')))
  resumed.message(encodeTunnelFrame(frameKinds.end, 1))
  expect(await textOf(await asked)).toBe('again')
  resumed.closed()
})

test('after a hibernation a compute that sends no HELLO is disconnected, and one that does stays', async () => {
  stoppedClock()
  const resumed = { ...hello, protocol: 1 } as const
  const ends: Record<string, TunnelEnd> = {}
  const [mute, heard] = ['mute', 'heard'].map((name) => {
    const ended = (end: TunnelEnd) => {
      ends[name] = end
    }
    const end = new AskingEnd({ wire: silent, version: '1.4.2', watch: 'busy', resumed, ended })
    onTestFinished(() => end.closed())
    return end
  })
  // Not even this one, which is ignored, is a HELLO.
  mute?.message(encodeTunnelFrame(frameKinds.data, 1, new Uint8Array(3)))
  heard?.message(encodeJson(frameKinds.hello, 0, hello))
  await pass(11_000)
  expect(ends).toEqual({ mute: { code: resetCodes.malformed, reason: 'No HELLO arrived' } })
})
