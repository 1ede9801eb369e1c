import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import type { EventAgent } from '../../host-agent.ts'
import { onAbort } from '../../lib/async/abort.ts'
import { DirectLink } from '../../model/direct-link.ts'
import type { EventPayload, FeedItem } from '../../model/event.ts'
import { FeedLimit } from '../../model/feed-limit.ts'
import { Load } from '../../model/host.ts'
import { Project } from '../../model/project.ts'
import { Uuid } from '../../model/schema/fields.ts'
import type { Connection } from './connection.ts'
import { Lines } from './lines.ts'
import { anyNode } from './nodes.ts'
import { path, search } from './paths.ts'
import { tolerant } from './tolerant.ts'

export const remoteEvents = (connection: Connection): EventAgent => ({
  async open({ projectId, since, pings = true, limit = new FeedLimit(), signal }) {
    const base = projectId === undefined ? '/v2/compute' : path`/v2/compute/projects/${projectId}`
    // Without another watch, pings show that the compute is alive.
    const longLived = !pings && connection.isWatched
    const query = search({ since, view: 'full', pings: longLived ? 'false' : undefined })
    const { body } = await connection.stream(
      { method: 'GET', path: `${base}/notifications${query}`, longLived, signal },
      { idleMs: longLived ? undefined : connection.limits.feedMs },
    )
    return items(connection, body, { projectId, pings, limit, signal })
  },
})

interface Reading {
  readonly projectId: string | undefined
  readonly pings: boolean
  readonly limit: FeedLimit
  readonly signal: AbortSignal
}

/** The items of a feed, each as it is asked for. */
function items(
  connection: Connection,
  body: ReadableStream<Uint8Array>,
  { projectId, pings, limit, signal }: Reading,
): ReadableStream<FeedItem> {
  let isPinged = false
  const tooLong = () => connection.wrong(`a line of more than ${connection.limits.lineBytes} bytes`)
  const source = new Lines(body, connection.limits.lineBytes, tooLong, limit)
  const over = new AbortController()
  const stop = () => {
    over.abort()
    source.cancel()
  }
  // The body ends with the signal by itself, but not a wait of the limit.
  const forget = onAbort(signal, stop)
  const end = () => {
    forget()
    stop()
  }
  return new ReadableStream<FeedItem>(
    {
      async pull(controller) {
        try {
          for (;;) {
            const text = await source.next()
            if (text === undefined) break
            const item = itemOf(connection, connection.parse(text), projectId)
            if (item === undefined || (item.kind === 'ping' && isPinged && !pings)) continue
            isPinged ||= item.kind === 'ping'
            if (item.kind === 'resync' || item.kind === 'dropped') await limit.gap(over.signal)
            if (over.signal.aborted) break
            return controller.enqueue(item)
          }
          end()
          controller.close()
        } catch (error) {
          end()
          // The reader has left.
          if (signal.aborted) controller.close()
          else controller.error(error)
        }
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  )
}

const seq = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const AnyLine = Type.Object({ action: Type.String(), seq: Type.Optional(seq) })
const Message = Type.Object({ message: Type.String() })
const by = Type.Optional(Type.String())
const line = <T extends TSchema>(event: T) => Type.Object({ seq, project_id: Type.Optional(Uuid), by, event })
const Ping = Type.Object({ seq, event: Load })
const Resync = Type.Object({ seq })
const Dropped = Type.Object({ event: Type.Object({ dropped: Type.Integer({ minimum: 1 }) }) })
const OfNode = Type.Object({
  ...line(Type.Unknown()).properties,
  change: Type.Optional(
    Type.Union([Type.Literal('started'), Type.Literal('stopped'), Type.Literal('suspended'), Type.Literal('resumed')]),
  ),
})
const OfLink = line(DirectLink)
const OfProject = line(Project)
const OfAny = Type.Object({
  ...AnyLine.properties,
  project_id: Type.Optional(Uuid),
  by,
  event: Type.Optional(Type.Unknown()),
})
const OfLog = line(Message)

/** `Check` with the tolerance for newer computes. */
const fits = <T extends TSchema>(schema: T, value: unknown): value is Static<T> => Check(tolerant(schema), value)

/** The item of a line; undefined for an unknown event without a project, of a newer compute. */
function itemOf(connection: Connection, value: unknown, projectId: string | undefined): FeedItem | undefined {
  const { action, seq } = connection.fitting(AnyLine, value)
  const event = (
    { seq, by, ...at }: { seq: number; project_id?: string; by?: string },
    payload: EventPayload,
  ): FeedItem | undefined => {
    const project_id = projectId ?? at.project_id
    if (project_id === undefined) return undefined
    return { kind: 'event', event: { seq, project_id, payload, ...(by !== undefined && { by }) } }
  }
  switch (action) {
    case 'ping': {
      const ping = connection.fitting(Ping, value)
      return { kind: 'ping', load: ping.event, seq: ping.seq }
    }
    case 'resync':
      return { kind: 'resync', seq: connection.fitting(Resync, value).seq }
    case 'node.created':
    case 'node.updated':
    case 'node.deleted': {
      const node = fits(OfNode, value) ? anyNode(value.event) : undefined
      if (!fits(OfNode, value) || node === undefined) return other(connection, value, projectId)
      const { change, ...it } = value
      return event(it, { type: action, node, ...(change !== undefined && { change }) })
    }
    case 'project.updated':
    case 'project.closed': {
      if (!fits(OfProject, value)) return other(connection, value, projectId)
      return event(value, { type: action, project: value.event })
    }
    case 'link.updated':
    case 'link.deleted': {
      if (!fits(OfLink, value)) return other(connection, value, projectId)
      return event(value, { type: action, link: value.event })
    }
    case 'log.error':
    case 'log.warning':
    case 'log.info': {
      // A message about the feed itself has no number.
      if (seq === undefined) return { kind: 'dropped', count: connection.fitting(Dropped, value).event.dropped }
      if (!fits(OfLog, value)) return other(connection, value, projectId)
      return event(value, { type: action, message: value.event.message })
    }
    default:
      return other(connection, value, projectId)
  }
}

/** An unknown event, or a known one in an unknown form, unchanged. Undefined for one without a project. */
function other(connection: Connection, value: unknown, projectId: string | undefined): FeedItem | undefined {
  const { action, seq, project_id: named, by, event, ...more } = connection.fitting(OfAny, value)
  const project_id = projectId ?? named
  if (project_id === undefined || seq === undefined) return undefined
  const payload = { type: 'other', action, event, more } as const
  return { kind: 'event', event: { seq, project_id, payload, ...(by !== undefined && { by }) } }
}
