import { afterEach, expect, expectTypeOf, test, vi } from 'vitest'
import {
  type AnyNode,
  type LabNode,
  type LabProject,
  Patchbay,
  type PatchbayError,
  type PatchbayOptions,
} from '../../../src/client/patchbay.ts'
import { onAbort } from '../../../src/lib/async/abort.ts'
import { errorHeader } from '../../../src/lib/errors/error-codes.ts'

type Fetch = NonNullable<PatchbayOptions['fetch']>

afterEach(() => {
  vi.useRealTimers()
})

/** Answers with a feed of these lines, which then ends, breaks off, or stays as it is until the request is aborted. */
function feedOf(lines: readonly object[], then: 'ends' | 'breaks' | 'stays'): Fetch {
  const texts = lines.map((it) => `${JSON.stringify(it)}\n`)
  return async (_, { signal }) =>
    new Response(
      new ReadableStream<Uint8Array>({
        start(controller) {
          onAbort(signal ?? undefined, () => controller.error(signal?.reason))
        },
        pull(controller) {
          const text = texts.shift()
          if (text !== undefined) controller.enqueue(new TextEncoder().encode(text))
          else if (then === 'ends') controller.close()
          else if (then === 'breaks') controller.error(new TypeError('terminated'))
          else return new Promise(() => {})
        },
      }),
    )
}

/** Never answers. */
const silence: Fetch = (_, { signal }) =>
  new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true }))

const refusal = (status: number, word: string): Response =>
  Response.json({ message: `${word}!`, status }, { status, headers: { [errorHeader]: word } })

/** A client of a service that gives these answers, one to each request; the paths of the requests. */
function clientOf(...answers: (Response | Fetch)[]) {
  const paths: string[] = []
  const client = new Patchbay({
    server: 'http://127.0.0.1:9',
    async fetch(url, init) {
      paths.push(url.replace('http://127.0.0.1:9', ''))
      const answer = answers.shift()
      if (answer === undefined) throw new TypeError('fetch failed')
      return typeof answer === 'function' ? answer(url, init) : answer
    },
  })
  return { client, paths }
}

/** Lets time pass until the work is over. */
async function settled(work: Promise<unknown>): Promise<void> {
  let isOver = false
  void work.finally(() => {
    isOver = true
  })
  while (!isOver) await vi.advanceTimersByTimeAsync(1000)
}

const ping = { action: 'ping', event: { cpu_usage_percent: 0, memory_usage_percent: 0 }, seq: 7 }
const event = { action: 'node.updated', event: { node_id: 'a', name: 'PC1' }, seq: 8 }
const later = { action: 'node.updated', event: { node_id: 'b', name: 'PC2' }, seq: 9 }

test('a feed whose connection breaks continues after the last line', async () => {
  const { client, paths } = clientOf(
    feedOf([ping, event], 'breaks'),
    refusal(503, 'unavailable'),
    feedOf([later], 'stays'),
  )
  const told: (string | undefined)[] = []
  const over = new AbortController()
  const lines: unknown[] = []
  for await (const line of client.feed({ signal: over.signal, onLost: (error) => told.push(error?.code) })) {
    lines.push(line)
    if (lines.length === 3) over.abort()
  }
  expect(lines).toEqual([ping, event, later])
  expect(paths).toEqual(['/v2/notifications', '/v2/notifications?since=8', '/v2/notifications?since=8'])
  expect(told).toEqual(['lost', 'unavailable', undefined])
})

test('a service that accepts the connection and does not answer is tried again', async () => {
  vi.useFakeTimers()
  const { client, paths } = clientOf(feedOf([event], 'ends'), silence, feedOf([later], 'stays'))
  const told: (string | undefined)[] = []
  const over = new AbortController()
  const lines: unknown[] = []
  const ended = (async () => {
    for await (const line of client.feed({ signal: over.signal, onLost: (error) => told.push(error?.message) })) {
      lines.push(line)
      if (lines.length === 2) over.abort()
    }
  })()
  await settled(ended)
  expect(lines).toEqual([event, later])
  expect(paths).toHaveLength(3)
  expect(told).toEqual(['The feed did not begin within 20 s', undefined])
})

test('a feed that never began rejects with the reason', async () => {
  vi.useFakeTimers()
  const first = (client: Patchbay) => client.feed({ project: 'lab' }).next()
  for (const [answer, expected] of [
    [silence, { status: 0, code: 'lost', message: 'The feed did not begin within 20 s' }],
    [refusal(404, 'no-such-project'), { status: 404, code: 'no-such-project' }],
    [new Response('<!doctype html>', { status: 500 }), { status: 0, code: 'not-patchbay' }],
  ] as const) {
    const failed = first(clientOf(answer).client).catch((error: PatchbayError) => error)
    await settled(failed)
    expect(await failed).toMatchObject({ name: 'PatchbayError', ...expected })
  }
})

test('a feed ends with its signal, and rejects when its project is gone', async () => {
  const over = new AbortController()
  const { client } = clientOf(feedOf([ping], 'stays'))
  const feed = client.feed({ signal: over.signal })
  expect(await feed.next()).toEqual({ done: false, value: ping })
  over.abort()
  expect(await feed.next()).toEqual({ done: true, value: undefined })
  const gone = clientOf(feedOf([ping], 'ends'), refusal(404, 'no-such-project')).client.feed({ project: 'lab' })
  await gone.next()
  await expect(gone.next()).rejects.toMatchObject({ code: 'no-such-project' })
})

test('the action of a line tells what its event is, and lines of newer services pass as they are', async () => {
  const message = { action: 'log.warning', event: { message: 'the disk is nearly full' }, seq: 9 }
  const newer = [
    { action: 'node.moved', event: { node_id: 'a', to: 'b' }, seq: 10 },
    { action: 'weather', event: 'fine', seq: 11 },
    { action: 'constructor', seq: 12 },
  ]
  // Neither has what its action says: a program would fail on them.
  const broken = [
    { action: 'node.updated', event: null },
    { action: 'link.state', event: { verdict: 'ok' } },
  ]
  const { client } = clientOf(feedOf([ping, ...broken, event, message, ...newer], 'ends'))
  const seen: unknown[] = []
  for await (const { action, event } of client.feed({ project: 'lab' })) {
    if (action === 'node.updated') {
      expectTypeOf(event).toEqualTypeOf<LabNode>()
      seen.push(event.name)
    } else if (action === 'log.warning') {
      expectTypeOf(event).toEqualTypeOf<{ message: string }>()
      seen.push(event.message)
    } else if (action !== 'ping') seen.push([action, event])
    if (seen.length === 5) break
  }
  expect(seen).toEqual([
    'PC1',
    'the disk is nearly full',
    ...[
      ['node.moved', { node_id: 'a', to: 'b' }],
      ['weather', 'fine'],
      ['constructor', undefined],
    ],
  ])
})

test('the feed of the service has nodes as their computes have them, and projects of both', async () => {
  const { client } = clientOf(feedOf([event], 'ends'))
  const { value } = await client.feed().next()
  if (value?.action === 'node.updated') expectTypeOf(value.event).toEqualTypeOf<AnyNode>()
  if (value?.action === 'project.closed' && 'revision' in value.event)
    expectTypeOf(value.event).toEqualTypeOf<LabProject>()
  expect(value).toEqual(event)
})
