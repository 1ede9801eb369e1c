import { expect, test } from 'vitest'
import { type FleetItem, withFleet } from '../../../../src/fleet/events/fleet-feed.ts'
import type { FleetEvent } from '../../../../src/fleet/pool/options.ts'
import type { Compute } from '../../../../src/model/compute.ts'
import type { FeedItem } from '../../../../src/model/event.ts'

const compute = (compute_id: string, name = compute_id) => ({ compute_id, name }) as Compute
const ping: FeedItem = { kind: 'ping', load: { cpu_usage_percent: 0, memory_usage_percent: 0 }, seq: 1 }
const resync: FeedItem = { kind: 'resync', seq: 2 }

function bed() {
  const listeners = new Set<(event: FleetEvent) => void>()
  const over = new AbortController()
  let source: ReadableStreamDefaultController<FeedItem> | undefined
  const items = new ReadableStream<FeedItem>({
    start(controller) {
      source = controller
    },
  })
  const fleet = {
    listen(listener: (event: FleetEvent) => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  const reader = withFleet(items, fleet, over.signal).getReader()
  return {
    listeners,
    over,
    source: source as ReadableStreamDefaultController<FeedItem>,
    reader,
    tell(event: FleetEvent) {
      for (const listener of listeners) listener(event)
    },
    async next(): Promise<FeedItem | FleetItem | undefined> {
      return (await reader.read()).value
    },
  }
}

test('the ping comes first, then events of both sources in turn', async () => {
  const it = bed()
  it.tell({ type: 'compute.created', compute: compute('a') })
  it.tell({ type: 'log.warning', message: 'look' })
  const first = it.next()
  it.source.enqueue(ping)
  expect(await first).toEqual(ping)
  it.source.enqueue(resync)
  expect(await it.next()).toMatchObject({ event: { type: 'compute.created' } })
  expect(await it.next()).toEqual(resync)
  expect(await it.next()).toMatchObject({ event: { message: 'look' } })
  const waits = it.next()
  it.tell({ type: 'compute.deleted', compute: compute('a') })
  expect(await waits).toMatchObject({ event: { type: 'compute.deleted' } })
})

test('a slow reader gets the newest state of each compute, and the number of lost events', async () => {
  const it = bed()
  it.source.enqueue(ping)
  expect(await it.next()).toEqual(ping)
  it.tell({ type: 'compute.created', compute: compute('a') })
  it.tell({ type: 'compute.updated', compute: compute('b', 'old') })
  it.tell({ type: 'compute.updated', compute: compute('a', 'newer') })
  it.tell({ type: 'compute.updated', compute: compute('b', 'new') })
  expect(await it.next()).toMatchObject({ event: { type: 'compute.created', compute: { name: 'newer' } } })
  expect(await it.next()).toMatchObject({ event: { type: 'compute.updated', compute: { name: 'new' } } })
  for (let index = 0; index < 1203; index++) it.tell({ type: 'log.warning', message: String(index) })
  expect(await it.next()).toEqual({ kind: 'dropped', count: 3 })
  expect(await it.next()).toMatchObject({ event: { message: '3' } })
})

test('no listener is left when the feed ends, fails, is cancelled, or its signal is aborted', async () => {
  const [ended, failed, cancelled, left] = [bed(), bed(), bed(), bed()]
  ended.source.close()
  expect(await ended.next()).toBeUndefined()
  failed.source.error(new Error('broke'))
  await expect(failed.next()).rejects.toThrow('broke')
  await cancelled.reader.cancel()
  left.over.abort()
  for (const { listeners } of [ended, failed, cancelled, left]) expect(listeners.size).toBe(0)
})
