import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { awaitingLate } from '../../../../src/compute/remote/late-answer.ts'
import { ConnectionLost, type Outgoing, type Send } from '../../../../src/compute/remote/transport.ts'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import { lateHeader, lateType } from '../../../../src/model/late-answer.ts'
import { type LateOptions, withKeepAlive } from '../../../../src/server/http/late-answer.ts'
import { textOf } from '../../../support/answer.ts'
import { bodyOf, slowBody } from '../../../support/bodies.ts'

const s = 1000

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
})

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
const get = (more: Partial<Outgoing> = {}): Outgoing => ({
  ...{ method: 'GET', path: '/x', headers: {}, body: null },
  signal: new AbortController().signal,
  ...more,
})

/** A compute without a wire between; `answers` has what would go over it. */
function compute(handle: (request: Request) => Promise<Response>, options?: LateOptions) {
  const answers: Response[] = []
  const direct: Send = async ({ method, path, headers, body, signal }) => {
    const init = { method, headers, signal, body, duplex: 'half' } as RequestInit
    const request = new Request(`http://compute${path}`, init)
    const answer = await withKeepAlive(request, handle(request), options)
    answers.push(answer)
    return answer
  }
  return { answers, send: awaitingLate(direct, 'one') }
}

/** What a compute sends that begins a late answer. */
const sends = (body: ReadableStream<Uint8Array>, status = 200): Send =>
  awaitingLate(async () => new Response(body, { status, headers: { 'Content-Type': lateType } }), 'one')

const failureOf = (answer: Promise<unknown>): Promise<Error> =>
  answer.then(
    () => expect.fail('it went well'),
    (error: Error) => error,
  )

test.for<[name: string, answer: () => Response]>([
  ['JSON', () => Response.json({ idlepc: '0x60608040' })],
  ['an error', () => Response.json({ message: 'why', status: 409 }, { status: 409, headers: { 'Retry-After': '7' } })],
  ['no content', () => new Response(null, { status: 204, headers: { ETag: '"a"' } })],
  ['nothing', () => new Response(null, { headers: { 'Content-Length': '0' } })],
  ['an empty text', () => new Response('')],
  ['how much there is of an upload', () => new Response(null, { status: 308, headers: { Range: 'bytes=0-1023' } })],
  ['bytes', () => new Response(Uint8Array.from([32, 10, 0, 255, 32, 10]), { headers: { 'Content-Length': '6' } })],
  ['a header twice', () => new Response('x', { headers: new Headers([...'ab'].map((it) => ['Set-Cookie', it])) })],
])('late or not, the answer is the same: %s', async ([, answer]) => {
  const { answers, send } = compute(async () => {
    await sleep(400 * s)
    return answer()
  })
  const late = send(get())
  await vi.advanceTimersByTimeAsync(400 * s)
  const [real, wanted] = [(await late) as Response, answer()]
  expect(answers[0]?.headers.get('content-type')).toBe(lateType)
  expect([real.status, [...real.headers]]).toEqual([wanted.status, [...wanted.headers]])
  expect(await real.bytes()).toEqual(await wanted.bytes())
  expect(vi.getTimerCount()).toBe(0)
})

test('a byte is sent at least every 30 s, and is not part of the answer', async () => {
  const wire: string[] = []
  const send = awaitingLate(async ({ path, headers }) => {
    const answer = sleep(100 * s).then(() => new Response('there it is'))
    const late = await withKeepAlive(new Request(`http://compute${path}`, { headers }), answer)
    const watched = new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, controller) {
        wire.push(new TextDecoder().decode(bytes))
        controller.enqueue(bytes)
      },
    })
    return new Response(late.body?.pipeThrough(watched) ?? null, late)
  }, 'one')
  let isAnswered = false
  const answer = send(get())
  answer.then(
    () => (isAnswered = true),
    () => {},
  )
  for (const bytes of [0, 1, 2, 3]) {
    expect([wire.join(''), isAnswered]).toEqual([' '.repeat(bytes), false])
    await vi.advanceTimersByTimeAsync(30 * s)
  }
  expect(await textOf(await answer)).toBe('there it is')
  expect(wire).toEqual([' ', ' ', ' ', expect.stringMatching(/^\{"status":200,.*\}\n$/), 'there it is'])
})

test('a quick answer is unchanged, and so is any answer without the request for a late one', async () => {
  const { answers, send } = compute(async () => {
    await sleep(29 * s)
    return new Response('soon')
  })
  const soon = send(get())
  await vi.advanceTimersByTimeAsync(29 * s)
  expect(await soon).toBe(answers[0])
  expect(vi.getTimerCount()).toBe(0)

  const slow = () => sleep(300 * s).then(() => new Response('late'))
  const asked = { [lateHeader]: '1' }
  const requests = [
    new Request('http://compute/x'),
    new Request('http://compute/x', { method: 'HEAD', headers: asked }),
    new Request('http://compute/x', { headers: { ...asked, Upgrade: 'websocket' } }),
  ]
  const plain = requests.map((request) => withKeepAlive(request, slow()))
  await vi.advanceTimersByTimeAsync(300 * s)
  for (const answer of plain) expect((await answer).headers.get('content-type')).toContain('text/plain')

  const headers: unknown[] = []
  const seen: Send = async (request) => {
    headers.push(request.headers)
    return new Response()
  }
  for (const method of ['HEAD', 'PUT']) await awaitingLate(seen, 'one')(get({ method, headers: { Range: 'bytes=0-' } }))
  expect(headers).toEqual([{ Range: 'bytes=0-' }, { Range: 'bytes=0-', ...asked }])
})

test('nothing is answered while the request is still coming', async () => {
  let isReceived = false
  const { answers, send } = compute(() => sleep(200 * s).then(() => new Response('stored')), {
    isReceived: () => isReceived,
  })
  const answer = send(get({ method: 'POST', body: slowBody('a').stream }))
  await vi.advanceTimersByTimeAsync(100 * s)
  expect(answers).toHaveLength(0)
  isReceived = true
  await vi.advanceTimersByTimeAsync(30 * s)
  expect(answers).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(70 * s)
  expect(await textOf(await answer)).toBe('stored')
})

test('the body of a late answer is streamed, and may be idle for any time', async () => {
  const body = slowBody('one ')
  const { send } = compute(() => sleep(40 * s).then(() => new Response(body.stream)))
  const asked = send(get())
  await vi.advanceTimersByTimeAsync(40 * s)
  const reader = (await asked).body?.getReader()
  const next = async () => new TextDecoder().decode((await reader?.read())?.value)
  expect(await next()).toBe('one ')
  const rest = next()
  await vi.advanceTimersByTimeAsync(3600 * s)
  body.more('two')
  expect(await rest).toBe('two')
  expect(await reader?.read()).toEqual({ done: true, value: undefined })
})

test('a client that does not read gets one byte at most', async () => {
  const request = new Request('http://compute/x', { headers: { [lateHeader]: '1' } })
  const asked = withKeepAlive(
    request,
    sleep(600 * s).then(() => new Response('x')),
  )
  await vi.advanceTimersByTimeAsync(600 * s)
  expect(await (await asked).text()).toMatch(/^ \{.*\}\nx$/)
})

test('a client that disconnects ends the work, before and after the head', async () => {
  const over = new AbortController()
  const told = vi.fn()
  const { send } = compute(async ({ signal }) => {
    signal.addEventListener('abort', told)
    await sleep(200 * s)
    return new Response('too late')
  })
  const left = failureOf(send(get({ signal: over.signal })))
  await vi.advanceTimersByTimeAsync(100 * s)
  over.abort(new Error('enough'))
  expect((await left).message).toBe('enough')
  expect(told).toHaveBeenCalledOnce()
  await vi.advanceTimersByTimeAsync(100 * s)
  expect(vi.getTimerCount()).toBe(0)

  const cancel = vi.fn()
  const endless = () => new ReadableStream({ pull: (it) => it.enqueue(Uint8Array.of(1)), cancel })
  const flowing = compute(() => sleep(40 * s).then(() => new Response(endless()))).send(get())
  await vi.advanceTimersByTimeAsync(40 * s)
  await (await flowing).body?.cancel('enough')
  expect(cancel).toHaveBeenCalledWith('enough')
})

test('an answer without a waiting client is cancelled', async () => {
  const cancel = vi.fn()
  const request = new Request('http://compute/x', { headers: { [lateHeader]: '1' } })
  const asked = withKeepAlive(
    request,
    sleep(100 * s).then(() => new Response(new ReadableStream({ cancel }))),
  )
  await vi.advanceTimersByTimeAsync(50 * s)
  await (await asked).body?.cancel()
  await vi.advanceTimersByTimeAsync(50 * s)
  expect(cancel).toHaveBeenCalledOnce()
})

test('a compute that dies meanwhile is a connection that was lost', async () => {
  for (const pieces of [[], [' '], [' ', ' {"status"']]) {
    const ended = await failureOf(sends(bodyOf(...pieces))(get()))
    expect(ended).toMatchObject({ name: 'ConnectionLost', message: 'the connection ended without an answer' })
    const body = slowBody(pieces.join(' '))
    const broken = failureOf(sends(body.stream)(get()))
    body.fail()
    expect(await broken).toBeInstanceOf(ConnectionLost)
  }
  const cancel = vi.fn()
  const silent = failureOf(sends(new ReadableStream({ cancel }))(get()))
  await vi.advanceTimersByTimeAsync(120 * s)
  expect(await silent).toMatchObject({ name: 'ConnectionLost', message: 'no data arrived for 120 s' })
  expect(cancel).toHaveBeenCalledOnce()

  const body = slowBody(' {"status":200,"headers":[]}\nhalf of ')
  const answer = await sends(body.stream)(get())
  body.fail()
  await expect(textOf(answer)).rejects.toThrow('the client has gone')
})

test('a head may come in pieces of any size, and with any part of the body', async () => {
  const wire = '  {"status":201,"headers":[["x-a","ä"]]}\nwhole'
  for (const size of [1, 7, 1000]) {
    const bytes = new TextEncoder().encode(wire)
    const body = new ReadableStream<Uint8Array>({
      start(it) {
        for (let at = 0; at < bytes.length; at += size) it.enqueue(bytes.subarray(at, at + size))
        it.close()
      },
    })
    const answer = await sends(body)(get())
    expect([answer.status, answer.headers.get('x-a'), await textOf(answer)]).toEqual([201, 'ä', 'whole'])
  }
})

test.for<[name: string, wire: string, message: string]>([
  ['not JSON', ' nonsense\n', 'not JSON'],
  ['an empty line', ' \n{}', 'not JSON'],
  ['no status', '{"headers":[]}\n', 'no status and headers'],
  ['a websocket', '{"status":101,"headers":[]}\n', 'no status and headers'],
  ['a status that is none', '{"status":700,"headers":[]}\n', 'no status and headers'],
  ['headers that are none', '{"status":200,"headers":[["a b","c"]]}\n', 'a header of a late answer is malformed'],
  ['two headers in one', '{"status":200,"headers":[["a","b\\r\\nc: d"]]}\n', 'a header of a late answer is malformed'],
  ['a length that is none', '{"status":200,"headers":[["content-length","-1"]]}\n', 'the length'],
  ['a head that is too long', `{"status":200,"headers":[["a","${'b'.repeat(65_536)}"]]}\n`, 'more than 65536 bytes'],
  ['a head without an end', '{'.repeat(100_000), 'more than 65536 bytes'],
])('%s for a head is a wrong answer', async ([, wire, message]) => {
  const error = await failureOf(sends(bodyOf(wire))(get()))
  expect(error).toBeInstanceOf(ApiError)
  expect(error).toMatchObject({ status: 502, message: expect.stringContaining(message) })
  expect(error.message).toContain('The compute one sent a malformed answer: ')
})

test('a body ends at its length', async () => {
  const head = '{"status":200,"headers":[["content-length","4"]]}\n'
  const whole = await sends(bodyOf(head, 'ab', 'cd'))(get())
  expect(await textOf(whole)).toBe('abcd')
  for (const pieces of [['ab'], ['abcde'], ['abcd', 'HTTP/1.1 200 OK']]) {
    const answer = await sends(bodyOf(head, ...pieces))(get())
    await expect(textOf(answer)).rejects.toThrow('4 bytes were announced')
  }
})

test('only an answer with the media type of late answers is one', async () => {
  for (const [status, type] of [
    [202, lateType],
    [200, 'text/plain'],
  ] as const) {
    const response = new Response('{"status":404,"headers":[]}\n', { status, headers: { 'Content-Type': type } })
    expect(await awaitingLate(async () => response, 'one')(get())).toBe(response)
  }
})
