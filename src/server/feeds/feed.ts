import type { FeedSource, FleetItem, ServiceEvent } from '../../fleet/events/fleet-feed.ts'
import { onAbort } from '../../lib/async/abort.ts'
import { badRequest, notFound } from '../../lib/errors/api-error.ts'
import { isUpgrade, type Socket } from '../../lib/http/socket.ts'
import type { EventPayload, FeedItem, NumberedEvent } from '../../model/event.ts'
import type { SentLine } from '../../model/feed-line.ts'
import type { Context } from '../http/endpoint.ts'

/** How an API version shows an event; undefined: that version does not have it. */
export type EventEncoder<P = EventPayload> = (
  event: NumberedEvent<P>,
) => Pick<SentLine, 'action' | 'event' | 'change'> | undefined

interface FeedOptions<P> {
  readonly request: Request
  readonly context: Context
  readonly source: FeedSource<P>
  readonly encode: EventEncoder<P>
  /** Undefined: the feed of the whole compute, whose lines name the project too. */
  readonly projectId?: string
  readonly query: { readonly since?: string | undefined; readonly pings?: 'false' | undefined }
  /** Given when the feed has the events of computes too. */
  readonly computeLine?: ((event: ServiceEvent) => SentLine | undefined) | undefined
}

type Item<P> = FeedItem<P> | FleetItem
type ToLine<P> = (item: Item<P>) => SentLine | undefined

/** Answers with a feed: as JSON lines, server-sent events, or a websocket, as the request asks. */
export async function openFeed<P>(options: FeedOptions<P>): Promise<Response> {
  const { request, context, source, encode, projectId, query, computeLine } = options
  const aborter = new AbortController()
  try {
    const from = request.headers.get('last-event-id') ?? query.since
    const items = await source({
      ...(projectId !== undefined && { projectId }),
      ...(from !== undefined && { since: sequence(from) }),
      pings: query.pings === undefined,
      computes: computeLine !== undefined,
      key: context.identity.key,
      ...(context.identity.projects !== undefined && { projects: context.identity.projects }),
      signal: aborter.signal,
    })
    const line: ToLine<P> = (item) =>
      item.kind === 'fleet' ? computeLine?.(item.event) : lineOf(item, encode, projectId === undefined)
    if (isUpgrade(request)) {
      return context.upgrade(request, {
        open: (socket) => void pump(items, line, socket, aborter),
        abandon: () => aborter.abort(),
      })
    }
    onAbort(request.signal, () => aborter.abort())
    const isSse = request.headers.get('accept')?.includes('text/event-stream') ?? false
    return new Response(encoded(items, line, isSse ? sse : jsonLine, aborter), {
      headers: {
        'Content-Type': isSse ? 'text/event-stream' : 'application/json',
        'Cache-Control': 'no-store',
        'X-Accel-Buffering': 'no',
      },
    })
  } catch (error) {
    aborter.abort()
    throw error
  }
}

/** Throws 404 for a plain GET of a path that is only for websockets. */
export function requireUpgrade(request: Request): void {
  if (!isUpgrade(request)) throw notFound('This endpoint is a websocket: send "Upgrade: websocket"')
}

function sequence(text: string): number {
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(number)) return number
  throw badRequest(`since: expected the seq of an event, got ${JSON.stringify(text.slice(0, 40))}`)
}

function lineOf<P>(item: FeedItem<P>, encode: EventEncoder<P>, isComputeWide: boolean): SentLine | undefined {
  switch (item.kind) {
    case 'ping':
      return { action: 'ping', event: item.load, seq: item.seq }
    case 'resync':
      return { action: 'resync', event: { message: 'Events were missed: read the resources again' }, seq: item.seq }
    case 'dropped':
      return {
        action: 'log.warning',
        event: { message: `This feed was read too slowly: ${item.count} events were dropped`, dropped: item.count },
      }
    case 'event': {
      const { seq, project_id, by } = item.event
      const named = encode(item.event)
      return named && { ...named, seq, ...(isComputeWide && { project_id }), ...(by !== undefined && { by }) }
    }
  }
}

const jsonLine = (line: SentLine): string => `${JSON.stringify(line)}\n`
const sse = (line: SentLine): string =>
  `${line.seq === undefined ? '' : `id: ${line.seq}\n`}event: ${line.action}\ndata: ${JSON.stringify(line)}\n\n`

/** One chunk for each event, pulled by the client: the agent's queue bounds a slow client. */
function encoded<P>(
  items: ReadableStream<Item<P>>,
  line: ToLine<P>,
  format: (line: SentLine) => string,
  aborter: AbortController,
): ReadableStream<Uint8Array> {
  const reader = items.getReader()
  const encoder = new TextEncoder()
  return new ReadableStream(
    {
      async pull(controller) {
        for (;;) {
          const { done, value } = await reader.read()
          if (done) return controller.close()
          const it = line(value)
          if (it !== undefined) return controller.enqueue(encoder.encode(format(it)))
        }
      },
      cancel: () => aborter.abort(),
    },
    { highWaterMark: 0 },
  )
}

async function pump<P>(
  items: ReadableStream<Item<P>>,
  line: ToLine<P>,
  socket: Socket,
  aborter: AbortController,
): Promise<void> {
  socket.onClose(() => aborter.abort())
  try {
    for await (const item of items) {
      const it = line(item)
      if (it !== undefined) socket.send(JSON.stringify(it))
      await socket.drained()
    }
    socket.close(1000, 'The project was closed')
  } catch {
    socket.close(1001, 'The service is shutting down')
  } finally {
    aborter.abort()
  }
}
