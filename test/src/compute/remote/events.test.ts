import type { ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { ClientLimits } from '../../../../src/compute/remote/options.ts'
import type { FeedItem } from '../../../../src/model/event.ts'
import { lyingCompute, refusal } from '../../../support/lying-compute.ts'

const id = '10000000-0000-4000-8000-000000000000'
const load = { cpu_usage_percent: 1, memory_usage_percent: 2 }
const node = {
  ...{ node_id: id, project_id: id, name: 'PC1', node_directory: '/x', status: 'started', console: 5001 },
  ...{ command_line: '', status_reason: null, console_type: 'telnet', startup_script: null, startup_script_path: null },
  ...{ mac_address: '00:50:79:66:68:00', engine: 'embedded' },
}
const project = { project_id: id, name: 'lab', path: '/x', location: '/', temporary: false, variables: null }

/** A feed of what is written, in these pieces; it stays open unless it ends. */
async function feed(pieces: readonly (string | Buffer)[], { ends = true, ...more }: Open = {}) {
  const { limits = {}, projectId, since, over = new AbortController() } = more
  const tell = async (res: ServerResponse) => {
    res.writeHead(200, { 'content-type': 'application/json' })
    res.flushHeaders()
    for (const piece of pieces) {
      res.write(piece)
      await setImmediate()
    }
    if (ends) res.end()
  }
  const compute = await lyingCompute((_, res) => void tell(res), { limits })
  const stream = await compute.agent.events.open({
    ...(projectId !== undefined && { projectId }),
    ...(since !== undefined && { since }),
    signal: over.signal,
  })
  return { ...compute, stream }
}
interface Open {
  readonly ends?: boolean
  readonly limits?: Partial<ClientLimits>
  readonly projectId?: string
  readonly since?: number
  readonly over?: AbortController
}

/** Which kind a node is of is known by its members; the wire does not say it. */
const ofKind = (node: object) => ({ kind: 'pc', ...node })
const line = (value: unknown) => `${JSON.stringify(value)}\n`
const all = async (stream: ReadableStream<FeedItem>) => {
  const items: FeedItem[] = []
  for await (const item of stream) items.push(item)
  return items
}

test('every line is decoded to its item, and unknown events without a project are skipped', async () => {
  const { stream, requests } = await feed([
    line({ action: 'ping', event: load, seq: 7 }),
    line({ action: 'resync', event: { message: 'x' }, seq: 8 }),
    line({ action: 'compute.updated', event: { whatever: 1 }, seq: 9 }),
    line({ action: 'node.updated', event: node, seq: 10, project_id: id, change: 'started' }),
    line({ action: 'node.deleted', event: { ...node, more: 1 }, seq: 11, project_id: id }),
    line({ action: 'project.closed', event: project, seq: 12, project_id: id }),
    '\n',
    line({ action: 'log.error', event: { message: 'bad' }, seq: 13, project_id: id }),
    line({ action: 'log.warning', event: { message: 'slow', dropped: 3 } }),
  ])
  const event = (seq: number, payload: object) => ({ kind: 'event', event: { seq, project_id: id, payload } })
  expect(await all(stream)).toEqual([
    { kind: 'ping', load, seq: 7 },
    { kind: 'resync', seq: 8 },
    event(10, { type: 'node.updated', node: ofKind(node), change: 'started' }),
    event(11, { type: 'node.deleted', node: ofKind({ ...node, more: 1 }) }),
    event(12, { type: 'project.closed', project }),
    event(13, { type: 'log.error', message: 'bad' }),
    { kind: 'dropped', count: 3 },
  ])
  expect(requests[0]?.url).toBe('/v2/compute/notifications?view=full')
})

test('unknown events of a project are handed on unchanged, and do not end the feed', async () => {
  const told = [
    { action: 'node.migrated', event: { to: 'c2' }, seq: 1, project_id: id, reason: 'load' },
    { action: 'node.created', event: { node_id: id, project_id: id, name: 'Q1', qubits: 5 }, seq: 2, project_id: id },
    { action: 'project.updated', event: { project_id: id, name: { en: 'lab' } }, seq: 3, project_id: id },
  ]
  const moved = {
    action: 'node.updated',
    event: { ...node, status: 'migrating' },
    seq: 4,
    project_id: id,
    change: 'moved',
  }
  const { stream } = await feed([...told, moved, { action: 'node.updated', event: node }].map(line))
  const other = ({ action, event, seq, project_id, ...more }: (typeof told)[number]) => ({
    ...{ kind: 'event', event: { seq, project_id, payload: { type: 'other', action, event, more } } },
  })
  expect(await all(stream)).toEqual([
    ...told.map(other),
    {
      kind: 'event',
      event: { seq: 4, project_id: id, payload: { type: 'node.updated', node: ofKind(moved.event), change: 'moved' } },
    },
  ])
})

test('a feed of one project begins at the requested number, and its lines need not name the project', async () => {
  const { stream, requests } = await feed([line({ action: 'log.info', event: { message: 'x' }, seq: 4 })], {
    projectId: id,
    since: 3,
  })
  expect(await all(stream)).toMatchObject([{ event: { seq: 4, project_id: id } }])
  expect(requests[0]?.url).toBe(`/v2/compute/projects/${id}/notifications?since=3&view=full`)
})

test('lines are found in pieces of any size, and an incomplete line at the end is ignored', async () => {
  const bytes = Buffer.from(
    line({ action: 'log.info', event: { message: 'ö'.repeat(5) }, seq: 1, project_id: id }).repeat(3),
  )
  const pieces = Array.from({ length: bytes.length }, (_, at) => bytes.subarray(at, at + 1))
  const { stream } = await feed([...pieces.slice(0, -1)])
  expect(await all(stream)).toHaveLength(2)
})

test.for<[name: string, lines: string[], message: string]>([
  ['not JSON', ['<html>\n'], 'not JSON'],
  ['another shape', [line([1])], 'expected an object'],
  ['a line without end', ['x'.repeat(60), 'x'.repeat(60)], 'a line of more than 100 bytes'],
])('a feed with %s ends with an error', async ([name, lines, message]) => {
  const limits = name === 'a line without end' ? { lineBytes: 100 } : {}
  const { stream, left } = await feed(lines, { ends: false, limits })
  expect(await refusal(all(stream))).toMatchObject({ status: 502, message: expect.stringContaining(message) })
  await left
})

test('a feed that is silent for too long ends with an error', async () => {
  const ping = line({ action: 'ping', event: load, seq: 7 })
  const { stream, left } = await feed([ping], { ends: false, limits: { feedMs: 100 } })
  expect(await refusal(all(stream))).toMatchObject({ status: 504 })
  await left
})

test('a feed requests pings, unless the connection is checked by other means', async () => {
  const ping = (seq: number) => line({ action: 'ping', event: load, seq })
  const open = async (isWatched: boolean) => {
    const compute = await lyingCompute((_, res) => res.end(ping(7) + ping(7)), { isWatched })
    const stream = await compute.agent.events.open({ pings: false, signal: new AbortController().signal })
    return { url: compute.requests[0]?.url, told: (await all(stream)).map(({ kind }) => kind) }
  }
  expect(await open(false)).toEqual({ url: '/v2/compute/notifications?view=full', told: ['ping'] })
  expect(await open(true)).toEqual({ url: '/v2/compute/notifications?view=full&pings=false', told: ['ping'] })
})

test('a closed feed is closed at the compute, too', async () => {
  for (const how of ['signal', 'cancel']) {
    const over = new AbortController()
    const { stream, left } = await feed([line({ action: 'ping', event: load, seq: 7 })], { ends: false, over })
    const reader = stream.getReader()
    expect(await reader.read()).toMatchObject({ value: { kind: 'ping' } })
    const next = reader.read()
    if (how === 'signal') over.abort()
    else await reader.cancel()
    expect(await next).toMatchObject({ done: true })
    await left
  }
})
