import type { TSchema } from '@sinclair/typebox'
import type { ServiceEvent } from '../../fleet/events/fleet-feed.ts'
import type { SentLine } from '../../model/feed-line.ts'
import { openFeed, requireUpgrade } from '../../server/feeds/feed.ts'
import { type Context, type Endpoint, endpoint } from '../../server/http/endpoint.ts'
import { encoderOf, feedQuery } from '../v2/views.ts'

interface HostFeed extends Pick<Endpoint, 'tag' | 'summary'> {
  readonly description?: string
  /** The schema of its lines. */
  readonly schema?: TSchema
  /** The line of an event of a compute; absent: the feed has no such events. */
  readonly lineOf?: (event: ServiceEvent, context: Context) => SentLine | undefined
}

/** The feed of all projects at a path, and at `/ws` below it for websockets only. */
export const hostFeed = (base: string, { lineOf, schema, ...about }: HostFeed): Endpoint[] =>
  [base, `${base}/ws`].map((path) =>
    endpoint({
      method: 'GET',
      path,
      owner: 'all',
      scope: 'own',
      ...about,
      query: feedQuery,
      websocket: true,
      replies: path.endsWith('/ws')
        ? {}
        : {
            200: {
              description: 'The feed, one line after the other',
              ...(schema === undefined ? { media: 'application/json' } : { schema }),
            },
          },
      errors: { 404: 'The request is not a websocket upgrade', 429: 'There are too many open feeds' },
      handle({ query, request }, context) {
        if (path.endsWith('/ws')) requireUpgrade(request)
        const computeLine = lineOf && ((event: ServiceEvent) => lineOf(event, context))
        const { projects } = context
        const encoder = encoderOf(query)
        const encode: typeof encoder = (event) => (projects.sees(event.project_id) ? encoder(event) : undefined)
        return openFeed({ request, context, source: context.feeds, encode, query, computeLine })
      },
    }),
  )
