import { setTimeout as later } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { FeedLimit, type FeedRates, feedRates } from '../../../src/model/feed-limit.ts'
import { lyingCompute } from '../../support/lying-compute.ts'

const never = new AbortController().signal
const id = '10000000-0000-4000-8000-000000000000'

test('lines, bytes and gaps are counted, and the buckets fill again', async () => {
  let now = 0
  const rates = {
    lines: { perSecond: 1, burst: 10 },
    bytes: { perSecond: 100, burst: 1000 },
    linesOfGap: 5,
    linesOfSearch: 2,
  }
  const limit = new FeedLimit(rates, () => now)
  expect([limit.gap(never), limit.gap(never)]).toEqual([undefined, undefined])
  const over = new AbortController()
  const waiting = limit.line(over.signal)
  expect(waiting).toBeInstanceOf(Promise)
  over.abort()
  await waiting
  now = 3000
  expect(limit.line(never)).toBeUndefined()
  // A clock that is set back fills nothing.
  now = 0
  expect(limit.bytes(1000, never)).toBeUndefined()
  const ended = AbortSignal.abort()
  expect(limit.bytes(1, ended)).toBeInstanceOf(Promise)
  now = 60_000
  expect([limit.bytes(1000, never), limit.gap(never), limit.gap(never)]).toEqual([undefined, undefined, undefined])
  now = 62_000
  expect(limit.search(never)).toBeUndefined()
  expect(limit.search(ended)).toBeInstanceOf(Promise)
})

/** The feed of a compute that writes these lines as fast as they are taken; `sent` counts their bytes. */
async function flood(lines: string, rates: FeedRates) {
  const sent = { bytes: 0 }
  const compute = await lyingCompute((_, res) => {
    const more = () => {
      do sent.bytes += lines.length
      while (!res.destroyed && res.write(lines))
    }
    res.writeHead(200, { 'content-type': 'application/json' }).on('drain', more)
    more()
  })
  const over = new AbortController()
  onTestFinished(() => over.abort())
  const stream = await compute.agent.events.open({ limit: new FeedLimit(rates), signal: over.signal })
  return { ...compute, reader: stream.getReader(), over, sent }
}

const event = `${JSON.stringify({ action: 'log.info', event: { message: 'x'.repeat(200) }, seq: 1, project_id: id })}\n`
const resync = `${JSON.stringify({ action: 'resync', event: { message: 'x' }, seq: 1 })}\n`
const slow = { ...feedRates, linesOfGap: 1000, lines: { perSecond: 0.001, burst: 3000 } }

test.for<[name: string, line: string, read: number, rates: FeedRates]>([
  ['of events is read up to the limit', event, 3000, slow],
  ['of gaps is read up to the limit', resync, 2, slow],
  ['of bytes is read up to the limit', '\n'.repeat(1000), 0, { ...slow, bytes: { perSecond: 1, burst: 1 << 20 } }],
])('a flood %s, and no further until there is room', async ([, line, read, rates]) => {
  const { reader, over, left, sent } = await flood(line.repeat(100), rates)
  for (let count = 0; count < read; count++) expect(await reader.read()).toMatchObject({ done: false })
  const next = reader.read()
  let isMore = false
  void next.then(() => {
    isMore = true
  })
  // Until the buffers of the connection are full.
  for (let before = -1; before !== sent.bytes; await later(500)) before = sent.bytes
  expect(isMore).toBe(false)
  over.abort()
  expect(await next).toMatchObject({ done: true })
  await left
})
