import { expect, onTestFinished, test, vi } from 'vitest'
import { EventLog } from '../../../../src/fleet/events/event-log.ts'
import type { FeedItem } from '../../../../src/model/event.ts'

const project = '11111111-1111-4111-8111-111111111111'
const other = '22222222-2222-4222-8222-222222222222'
const load = { cpu_usage_percent: 1, memory_usage_percent: 2 }

function openLog(history = 1000, feeds = 10): EventLog {
  const log = new EventLog({ history, feeds: () => feeds }, () => load)
  log.openProject(project)
  onTestFinished(() => log.close())
  return log
}

const say = (log: EventLog, message: string, projectId = project) => log.emit(projectId, { type: 'log.info', message })

/** A feed that is read item by item; it is left when the test ends. */
function feed(log: EventLog, options: { projectId?: string; since?: number } = { projectId: project }) {
  const abort = new AbortController()
  onTestFinished(() => abort.abort())
  const reader = log.open({ ...options, signal: abort.signal }).getReader()
  const next = async (): Promise<FeedItem | undefined> => (await reader.read()).value
  return {
    abort,
    reader,
    next,
    take: async (count: number): Promise<FeedItem[]> => {
      const items: FeedItem[] = []
      for (let n = 0; n < count; n++) {
        const item = await next()
        if (item !== undefined) items.push(item)
      }
      return items
    },
  }
}

const message = (item: FeedItem | undefined) =>
  item?.kind === 'event' && 'message' in item.event.payload ? item.event.payload.message : item?.kind
const seq = (item: FeedItem | undefined) => (item?.kind === 'event' ? item.event.seq : Number.NaN)

test('a feed begins with a ping with the load, and then has new events', async () => {
  const log = openLog()
  say(log, 'before')
  const { next, take } = feed(log)
  expect(await next()).toEqual({ kind: 'ping', load, seq: expect.any(Number) })
  say(log, 'one')
  say(log, 'two')
  expect((await take(2)).map(message)).toEqual(['one', 'two'])
})

test('a feed without pings has only the first one, and no timer', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const log = openLog()
  const reader = log.open({ projectId: project, pings: false, signal: new AbortController().signal }).getReader()
  expect(await reader.read()).toMatchObject({ value: { kind: 'ping' } })
  const next = reader.read()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(vi.getTimerCount()).toBe(0)
  say(log, 'after a minute')
  expect(message((await next).value)).toBe('after a minute')
  await reader.cancel()
})

test('numbers grow by one for all events of a compute; a project has its own events, the compute all', async () => {
  const log = openLog()
  log.openProject(other)
  const own = feed(log)
  const all = feed(log, {})
  say(log, 'a')
  say(log, 'b', other)
  say(log, 'c')
  const mine = (await own.take(3)).slice(1)
  expect(mine.map(message)).toEqual(['a', 'c'])
  const everything = (await all.take(4)).slice(1)
  expect(everything.map(message)).toEqual(['a', 'b', 'c'])
  const numbers = everything.map(seq)
  expect(numbers).toEqual([0, 1, 2].map((n) => (numbers[0] ?? 0) + n))
  expect(mine.map(seq)).toEqual([numbers[0], numbers[2]])
})

test('numbers grow over a restart of the service', async () => {
  const before = openLog()
  const all = feed(before, {})
  for (let n = 0; n < 50; n++) say(before, 'x')
  const last = seq((await all.take(51)).at(-1))
  await new Promise((resolve) => setTimeout(resolve, 2))
  const after = feed(openLog(), { since: last })
  expect((await after.take(2)).map(({ kind }) => kind)).toEqual(['ping', 'resync'])
})

test('since gives the events after that number and then new ones, without a gap or a repetition', async () => {
  const log = openLog()
  const first = feed(log)
  for (const text of ['a', 'b', 'c', 'd']) say(log, text)
  const [, , b] = await first.take(5)
  const again = feed(log, { projectId: project, since: seq(b) })
  say(log, 'e')
  expect((await again.take(4)).map(message)).toEqual(['ping', 'c', 'd', 'e'])
})

test('since with the last number gives nothing old and no resync', async () => {
  const log = openLog()
  const first = feed(log)
  say(log, 'a')
  const [, a] = await first.take(2)
  const again = feed(log, { projectId: project, since: seq(a) })
  say(log, 'b')
  expect((await again.take(2)).map(message)).toEqual(['ping', 'b'])
})

test('a since that is too old, or not of this service, is answered with resync and new events', async () => {
  const log = openLog(3)
  const first = feed(log)
  for (const text of ['a', 'b', 'c', 'd', 'e']) say(log, text)
  const items = await first.take(6)
  const [a, b, e] = [seq(items[1]), seq(items[2]), seq(items[5])]
  for (const since of [0, a, e + 1, Number.MAX_SAFE_INTEGER]) {
    const { next } = feed(log, { projectId: project, since })
    await next()
    expect(await next()).toEqual({ kind: 'resync', seq: e })
  }
  const exact = feed(log, { projectId: project, since: b })
  expect((await exact.take(4)).map(message)).toEqual(['ping', 'c', 'd', 'e'])
  const live = feed(log, { projectId: project, since: 0 })
  say(log, 'f')
  expect((await live.take(3)).map(message)).toEqual(['ping', 'resync', 'f'])
})

test('a history that is longer than the queue of a feed is given completely', async () => {
  const log = openLog(1000)
  const first = feed(log)
  say(log, 'begin')
  const [, begin] = await first.take(2)
  for (let n = 0; n < 900; n++) say(log, String(n))
  const items = await feed(log, { projectId: project, since: seq(begin) }).take(901)
  expect(items.slice(1).map(message)).toEqual(Array.from({ length: 900 }, (_, n) => String(n)))
})

test('a slow reader loses the oldest events and gets their number, and never loses a ping or resync', async () => {
  const log = openLog()
  const slow = feed(log)
  const late = feed(log, { projectId: project, since: 0 })
  for (let n = 0; n < 1000; n++) say(log, String(n))
  let lost = 0
  for (const [{ take, next }, head] of [
    [slow, ['ping']],
    [late, ['ping', 'resync']],
  ] as const) {
    expect((await take(head.length)).map(({ kind }) => kind)).toEqual(head)
    const dropped = await next()
    const count = dropped?.kind === 'dropped' ? dropped.count : 0
    expect(count).toBeGreaterThan(700)
    lost += count
    const rest = await take(1000 - count)
    // Exactly those that the count speaks of are missing, and they are the oldest.
    expect(rest.map(message)).toEqual(Array.from({ length: 1000 - count }, (_, n) => String(count + n)))
  }
  say(log, 'after')
  expect(message(await slow.next())).toBe('after')
  expect(log.figures).toEqual({ emitted: 1001, feeds: 2, resyncs: 1, dropped: lost })
})

/** A message of a megabyte. */
const large = (text: string) => text.padEnd(2 ** 20, '.')
const firstWord = (item: FeedItem | undefined) => message(item)?.slice(0, 9).split('.')[0]

test('the history has a limit in bytes, and a since before it is answered with resync', async () => {
  const log = openLog(1000)
  const first = feed(log)
  const numbers: number[] = []
  for (let n = 0; n < 6; n++) {
    say(log, large(String(n)))
    numbers.push(seq((await first.take(n === 0 ? 2 : 1)).at(-1)))
  }
  const late = feed(log, { projectId: project, since: numbers[0] as number })
  expect((await late.take(2)).map(({ kind }) => kind)).toEqual(['ping', 'resync'])
  const again = feed(log, { projectId: project, since: numbers[2] as number })
  expect((await again.take(4)).map(firstWord)).toEqual(['ping', '3', '4', '5'])
  // The whole compute keeps more. What waits of the history makes room for a new event, and no more.
  const all = feed(log, { since: numbers[0] as number })
  say(log, large('6'))
  expect((await all.take(7)).map(firstWord)).toEqual(['ping', 'dropped', '2', '3', '4', '5', '6'])
})

test('the histories of all projects together have a limit in bytes, and the largest ones lose their oldest events', async () => {
  const log = openLog()
  const first = feed(log)
  say(log, 'first')
  const since = seq((await first.take(2)).at(-1))
  say(log, 'small')
  const projects = Array.from({ length: 30 }, () => crypto.randomUUID())
  for (const id of projects) {
    log.openProject(id)
    for (let count = 0; count < 3; count++) say(log, large(String(count)), id)
  }
  expect((await feed(log, { projectId: project, since }).take(2)).map(message)).toEqual(['ping', 'small'])
  const begun = projects.map(async (projectId) => (await feed(log, { projectId, since: since + 1 }).take(2))[1]?.kind)
  expect(await Promise.all(begun)).toContain('resync')
})

test('the queue of a slow reader has a limit in bytes, and always has the last event', async () => {
  const log = openLog()
  const { take } = feed(log)
  for (let n = 0; n < 6; n++) say(log, large(String(n)))
  expect((await take(5)).map(firstWord)).toEqual(['ping', 'dropped', '3', '4', '5'])
  say(log, large('six').repeat(5))
  expect((await take(1)).map((item) => message(item)?.slice(0, 3))).toEqual(['six'])
})

test('one feed more than allowed is refused, and accepted when another was closed', async () => {
  const log = openLog(10, 2)
  log.openProject(other)
  const first = feed(log)
  feed(log)
  expect(() => feed(log)).toThrow(expect.objectContaining({ status: 429 }))
  feed(log, { projectId: other })
  await first.reader.cancel()
  const third = feed(log)
  expect(() => feed(log)).toThrow(expect.objectContaining({ status: 429 }))
  third.abort.abort()
  feed(log)
})

test('there is no feed of a project that is not open', () => {
  expect(() => feed(openLog(), { projectId: other })).toThrow(expect.objectContaining({ status: 404 }))
})

test('the feeds of a project end with it, after the last event', async () => {
  const log = openLog()
  const { take, reader } = feed(log)
  const all = feed(log, {})
  say(log, 'last')
  log.closeProject(project)
  say(log, 'afterwards')
  expect((await take(2)).map(message)).toEqual(['ping', 'last'])
  expect(await reader.read()).toEqual({ done: true, value: undefined })
  expect((await all.take(3)).map(message)).toEqual(['ping', 'last', 'afterwards'])
})

test('a feed ends with its signal, also when it has been aborted before', async () => {
  const log = openLog()
  const { abort, reader, next } = feed(log)
  await next()
  const waiting = reader.read()
  abort.abort()
  expect((await waiting).done).toBe(true)
  const late = log.open({ projectId: project, signal: AbortSignal.abort() }).getReader()
  expect((await late.read()).done).toBe(true)
})

test('a ping comes after every 5 s of silence, and no timer is left after the reader', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const log = openLog()
  const { next, reader, abort } = feed(log)
  await next()
  for (let round = 0; round < 2; round++) {
    const ping = next()
    await vi.advanceTimersByTimeAsync(4999)
    expect(vi.getTimerCount()).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(await ping).toEqual({ kind: 'ping', load, seq: expect.any(Number) })
  }
  const waiting = reader.read()
  await vi.advanceTimersByTimeAsync(0)
  expect(vi.getTimerCount()).toBe(1)
  await reader.cancel()
  await waiting
  expect(vi.getTimerCount()).toBe(0)
  const second = feed(log)
  await second.next()
  const silent = second.next()
  await vi.advanceTimersByTimeAsync(0)
  second.abort.abort()
  await silent
  expect(vi.getTimerCount()).toBe(0)
  abort.abort()
})

test('a busy feed has a ping every 10 s, with a number from which it can be continued', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const log = openLog()
  const { next, take } = feed(log)
  await next()
  say(log, 'a')
  vi.setSystemTime(Date.now() + 9_999)
  const first = seq(await next())
  for (const text of ['b', 'c']) say(log, text)
  vi.setSystemTime(Date.now() + 1)
  expect(await next()).toEqual({ kind: 'ping', load, seq: first })
  expect((await take(2)).map(message)).toEqual(['b', 'c'])
  const again = feed(log, { projectId: project, since: first })
  expect((await again.take(3)).map(message)).toEqual(['ping', 'b', 'c'])
})

test('a feed of an idle project goes on when it is opened again; without one the events are forgotten', async () => {
  const log = openLog()
  const early = feed(log)
  log.idleProject(project)
  say(log, 'closed')
  log.openProject(project)
  say(log, 'open')
  expect((await early.take(3)).map(message)).toEqual(['ping', 'closed', 'open'])
  log.idleProject(project)
  early.abort.abort()
  expect(log.hasReaders(project)).toBe(false)
  expect(() => feed(log)).toThrow('no open project')
  // A feed that leaves late belongs to a channel that is gone.
  log.openProject(project)
  const late = feed(log)
  log.closeProject(project)
  log.openProject(project)
  late.abort.abort()
  expect(message(await feed(log).next())).toBe('ping')
})
