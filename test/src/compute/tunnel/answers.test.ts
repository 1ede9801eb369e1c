import { expect, onTestFinished, test } from 'vitest'
import { ConnectionLost } from '../../../../src/compute/remote/transport.ts'
import { AnsweringEnd } from '../../../../src/compute/tunnel/answering.ts'
import { AskingEnd } from '../../../../src/compute/tunnel/asking.ts'
import {
  decodeTunnelFrame,
  encodeAnswer,
  encodeBatch,
  encodeJson,
  encodeTunnelFrame,
  frameKinds,
  maxPieceBytes,
  resetCodes,
} from '../../../../src/compute/tunnel/frames.ts'
import { defaultLimits } from '../../../../src/compute/tunnel/link.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import type { RelayedAnswer } from '../../../../src/lib/http/relayed-answer.ts'
import { textOf } from '../../../support/answer.ts'
import { request, tunnelPair, until, who } from '../../../support/tunnel.ts'

const relayed = (content: RelayedAnswer['content'], status = 200): RelayedAnswer => ({
  ...{ status, headers: { 'Content-Type': 'text/plain', 'X-Word': 'grün' }, content },
})
const bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text)
const nameOf = (kind: number | string): string | undefined =>
  Object.entries(frameKinds).find(([, it]) => it === kind)?.[0]

test.for([
  ['a short body', bytes('hällo'), ['answer']],
  ['an empty body', bytes(''), ['answer']],
  ['no body', null, ['head']],
  ['a long body', bytes('x'.repeat(maxPieceBytes + 1)), ['head', 'data', 'data', 'end']],
] as const)('%s goes in as few frames as it can', async ([, content, frames]) => {
  const pair = await tunnelPair({ fetch: async () => relayed(content) })
  const answer = await pair.asking.send(request('x'))
  expect([answer.status, answer.headers.get('content-TYPE'), answer.headers.get('x-word')]).toEqual([
    ...[200, 'text/plain', 'grün'],
  ])
  expect(await textOf(answer)).toBe(content === null ? '' : new TextDecoder().decode(content))
  const sent = pair.up.sent.filter(({ stream }) => stream === 1).map(({ kind }) => nameOf(kind))
  expect(sent).toEqual(frames)
  await until(() => pair.asking.size === 0 && pair.answering.size === 0)
})

/** The frames that a compute sends to a gateway with a HELLO of its own, and the requests with these ids. */
function sentTo(hello: object, ids: readonly number[]) {
  const sent: (string | undefined)[] = []
  const wire = {
    send: (data: Uint8Array | string) => void sent.push(nameOf(decodeTunnelFrame(data as Uint8Array).kind)),
    close() {},
    drained: async () => {},
  }
  const fetch = async () => relayed(bytes('short'))
  const end = new AnsweringEnd({ wire, who, fetch, later() {}, greeted() {}, ended() {} })
  end.message(encodeJson(frameKinds.hello, 0, { protocol: 1, version: '0.1.0', ...defaultLimits, ...hello }))
  for (const id of ids)
    end.message(encodeJson(frameKinds.open, id, { method: 'GET', path: '/v2/compute/x', headers: [], body: false }))
  onTestFinished(() => end.close(1001, 'The test ends'))
  return sent
}

test('a gateway whose HELLO lacks them gets no ANSWER frames', async () => {
  const sent = sentTo({}, [1])
  await until(() => sent.includes('end'))
  expect(sent).toEqual(['hello', 'head', 'data', 'end'])
})

test.for<[name: string, payload: Uint8Array]>([
  ['without a length', new Uint8Array(3)],
  ['of a longer head than it has', new Uint8Array([0, 0, 1, 0, 123, 125])],
  ['without a head', new Uint8Array(4)],
  ['of too long a body', new Uint8Array([0, 0, 0, 2, 123, 125, ...new Uint8Array(maxPieceBytes + 1)])],
])('an ANSWER %s ends the tunnel', async ([, payload]) => {
  const pair = await tunnelPair({ fetch: () => new Promise(() => {}) })
  const asked = expect(pair.asking.send(request('x'))).rejects.toThrow('an ANSWER frame is malformed')
  pair.asking.message(encodeTunnelFrame(frameKinds.answer, 1, payload))
  await asked
  expect(pair.ends.asking?.code).toBe(resetCodes.malformed)
})

test.for<[name: string, head: Uint8Array]>([
  ['no JSON', bytes('{')],
  ['a header that HTTP has not', bytes('{"status":200,"headers":[["x-a","b\\r\\nc"]],"body":true}')],
])('an ANSWER whose head is %s ends its request, and no other', async ([, head]) => {
  const pair = await tunnelPair({ fetch: async () => relayed(bytes('still there')) })
  pair.down.hold()
  const asked = expect(pair.asking.send(request('x'))).rejects.toThrow()
  const payload = new Uint8Array([0, 0, 0, head.length, ...head])
  pair.asking.message(encodeTunnelFrame(frameKinds.answer, 1, payload))
  await asked
  pair.down.release()
  expect(await textOf(await pair.asking.send(request('y')))).toBe('still there')
})

const longHeaders = Array.from({ length: 9 }, (_, index): [string, string] => [`x-${index}`, 'x'.repeat(1000)])
const answered = (status: number, headers: [string, string][], body = true) => JSON.stringify({ status, headers, body })

test.for<[name: string, head: string, method: string, message: RegExp]>([
  ['is longer than it announces', answered(200, [['content-length', '4']]), 'GET', /announced 4 bytes and has 5/],
  ['is shorter than it announces', answered(200, [['Content-Length', '6']]), 'GET', /announced 6 bytes and has 5/],
  ['announces no number', answered(200, [['content-length', '5, 5']]), 'GET', /length is not a number/],
  ['has a body with 204', answered(204, []), 'GET', /cannot have/],
  ['has a body for HEAD', answered(200, []), 'HEAD', /cannot have/],
  ['is none yet', answered(199, []), 'GET', /answered 199/],
  ['changes the protocol', answered(101, []), 'GET', /answered 101/],
  ['has a name of a header that HTTP has not', answered(200, [['a b', 'c']]), 'GET', /name of a header/],
  ['has longer headers than clients take', answered(200, longHeaders), 'GET', /headers are longer than 8192 bytes/],
])('an answer that %s ends its request, and no other', async ([, head, method, message]) => {
  const pair = await tunnelPair({ fetch: async () => relayed(bytes('still there')) })
  pair.down.hold()
  const asked = expect(pair.asking.send(request('x', { method }))).rejects.toThrow(message)
  pair.asking.message(encodeAnswer(1, JSON.parse(head), bytes('hello')) as Uint8Array)
  await asked
  pair.down.release()
  expect(await textOf(await pair.asking.send(request('y')))).toBe('still there')
})

test.for<[name: string, status: number, size: string, body: boolean, end: string]>([
  ['is longer', 200, '4', true, 'its body is not 4 bytes long'],
  ['is shorter', 200, '6', true, 'its body is not 6 bytes long'],
  ['is not there', 200, '5', false, 'announced 5 bytes and has 0'],
])('a body in pieces that %s than announced fails', async ([, status, size, body, end]) => {
  const pair = await tunnelPair({ fetch: async () => relayed(bytes('still there')) })
  pair.down.hold()
  const asking = pair.asking.send(request('x'))
  pair.asking.message(encodeJson(frameKinds.head, 1, { status, headers: [['content-length', size]], body }))
  if (body) {
    pair.asking.message(encodeTunnelFrame(frameKinds.data, 1, bytes('hello')))
    pair.asking.message(encodeTunnelFrame(frameKinds.end, 1))
  }
  await expect(asking.then(textOf)).rejects.toThrow(end)
  pair.down.release()
  expect(await textOf(await pair.asking.send(request('y')))).toBe('still there')
})

test('an answer without a body that has one all the same ends its request, and no other', async () => {
  const pair = await tunnelPair({ fetch: async () => relayed(bytes('still there')) })
  pair.down.hold()
  const asked = expect(pair.asking.send(request('x'))).rejects.toBeInstanceOf(ConnectionLost)
  pair.asking.message(encodeJson(frameKinds.head, 1, { status: 204, headers: [], body: false }))
  pair.asking.message(encodeTunnelFrame(frameKinds.data, 1, bytes('hello')))
  pair.asking.message(encodeTunnelFrame(frameKinds.end, 1))
  await asked
  expect(pair.asking.size).toBe(0)
  pair.down.release()
  expect(await textOf(await pair.asking.send(request('y')))).toBe('still there')
})

test('an answer to HEAD, and one that is not modified, announce the length of what they do not have', async () => {
  const pair = await tunnelPair({
    fetch: async ({ method }) => ({
      ...{ status: method === 'HEAD' ? 200 : 304, headers: { 'Content-Length': '5' }, content: null },
    }),
  })
  for (const [method, status] of [
    ['HEAD', 200],
    ['GET', 304],
  ] as const) {
    const answer = await pair.asking.send(request('x', { method }))
    expect([answer.status, answer.headers.get('content-length'), answer.body]).toEqual([status, '5', null])
  }
})

test('an answer that is too long for one frame has several', () => {
  expect(encodeAnswer(1, {}, new Uint8Array(maxPieceBytes))).toBeInstanceOf(Uint8Array)
  expect(encodeAnswer(1, {}, new Uint8Array(maxPieceBytes + 1))).toBeUndefined()
  expect(encodeAnswer(1, { long: 'x'.repeat(2 ** 18) }, bytes(''))).toBeUndefined()
})

test('answers that are ready in one turn are one message', async () => {
  const waiting: (() => void)[] = []
  let asked = 0
  const pair = await tunnelPair({
    async fetch({ url }) {
      asked += 1
      return relayed(bytes(url.slice(-1)))
    },
    answering: { later: (run) => void waiting.push(run) },
  })
  const ask = async (path: string) => textOf(await pair.asking.send(request(path)))
  const endTurn = async (all: number) => {
    await until(() => asked === all && pair.answering.size === 0)
    for (const run of waiting.splice(0)) run()
  }
  const first = ask('1')
  await endTurn(1)
  expect(await first).toBe('1')
  const others = ['2', '3', '4'].map(ask)
  await endTurn(4)
  expect(await Promise.all(others)).toEqual(['2', '3', '4'])
  const sent = pair.up.sent.map(({ kind }) => nameOf(kind)).filter((kind) => kind !== 'hello')
  expect(sent).toEqual(['answer', 'batch'])
})

test('requests that are sent in one turn are one message', async () => {
  const waiting: (() => void)[] = []
  const pair = await tunnelPair({
    fetch: async ({ url }) => relayed(bytes(url.slice(-1))),
    asking: { later: (run) => void waiting.push(run) },
  })
  const answers = ['1', '2', '3'].map(async (path) => textOf(await pair.asking.send(request(path))))
  expect(waiting).toHaveLength(1)
  waiting[0]?.()
  expect(await Promise.all(answers)).toEqual(['1', '2', '3'])
  const kinds = pair.down.sent.map(({ kind }) => nameOf(kind)).filter((kind) => kind !== 'hello')
  expect(kinds).toEqual(['batch'])
})

test('the body of a request is sent after the request, however long that waits for others', async () => {
  const pair = await tunnelPair({
    fetch: async (it) => relayed(new Uint8Array(await it.arrayBuffer())),
    asking: { later() {} },
  })
  const answer = await pair.asking.send(request('x', { method: 'POST', body: bytes('hällo') }))
  expect(await textOf(answer)).toBe('hällo')
  const kinds = pair.down.sent.map(({ kind }) => nameOf(kind)).filter((kind) => kind !== 'hello')
  expect(kinds.slice(0, 2)).toEqual(['open', 'data'])
})

test('a request that was given up while it waits for others is reset', async () => {
  const pair = await tunnelPair({ fetch: async () => relayed(bytes('x')), asking: { later() {} } })
  const leaving = new AbortController()
  const given = expect(pair.asking.send(request('x', { signal: leaving.signal }))).rejects.toThrow('gone')
  leaving.abort(new Error('gone'))
  await given
  await until(() => pair.asking.size === 0 && pair.answering.size === 0)
})

test('a compute whose HELLO lacks them gets no BATCH frames', () => {
  const sent: (string | undefined)[] = []
  const wire = {
    send: (data: Uint8Array | string) => void sent.push(nameOf(decodeTunnelFrame(data as Uint8Array).kind)),
    close() {},
    drained: async () => {},
  }
  const hello = { ...defaultLimits, ...who, protocol: 1 } as const
  const end = new AskingEnd({ wire, version: '1.4.2', resumed: hello, later() {}, ended() {} })
  end.message(encodeJson(frameKinds.hello, 0, hello))
  for (const path of ['x', 'y']) void end.send(request(path)).catch(ignore('the test ends the tunnel'))
  onTestFinished(() => end.close(1001, 'The test ends'))
  expect(sent).toEqual(['hello', 'open', 'open'])
})

test('a gateway whose HELLO lacks them gets no BATCH frames', async () => {
  const sent = sentTo({ answers: true }, [1, 2])
  await until(() => sent.length === 3)
  expect(sent).toEqual(['hello', 'answer', 'answer'])
})

test('an answer that waits for others is sent before the tunnel ends', async () => {
  const waiting: (() => void)[] = []
  const later = (run: () => void) => void waiting.push(run)
  const pair = await tunnelPair({ fetch: async () => relayed(bytes('x')), answering: { later } })
  const answer = pair.asking.send(request('x'))
  await until(() => waiting.length === 1)
  pair.answering.close(1001, 'The compute is shutting down')
  expect(await textOf(await answer)).toBe('x')
})

test('a compute takes only OPENs in a BATCH', async () => {
  const pair = await tunnelPair({ fetch: () => new Promise(() => {}) })
  const asked = expect(pair.asking.send(request('x'))).rejects.toThrow()
  pair.answering.message(encodeBatch([encodeTunnelFrame(frameKinds.end, 1)]))
  await asked
  expect(pair.ends.answering).toEqual({ code: resetCodes.malformed, reason: 'a BATCH frame is malformed' })
})

test.for<[name: string, payload: Uint8Array]>([
  ['of nothing', new Uint8Array()],
  ['without a length', new Uint8Array(3)],
  ['of a frame without bytes', new Uint8Array(4)],
  ['of a longer frame than it has', new Uint8Array([0, 0, 0, 9, 8, 0, 0, 0, 0, 1])],
  ['of another frame than an ANSWER', new Uint8Array([0, 0, 0, 6, 6, 0, 0, 0, 0, 1])],
  ['of a BATCH', new Uint8Array([0, 0, 0, 6, 9, 0, 0, 0, 0, 0])],
])('a BATCH %s ends the tunnel', async ([, payload]) => {
  const pair = await tunnelPair({ fetch: () => new Promise(() => {}) })
  const asked = expect(pair.asking.send(request('x'))).rejects.toThrow('a BATCH frame is malformed')
  pair.asking.message(encodeTunnelFrame(frameKinds.batch, 0, payload))
  await asked
  expect(pair.ends.asking?.code).toBe(resetCodes.malformed)
})
