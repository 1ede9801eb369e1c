import type { FleetEvent } from '../../fleet/options.ts'
import { type Context, type Endpoint, endpoint } from '../../http/endpoint.ts'
import { type Line, openFeed, requireUpgrade } from '../../http/feed.ts'
import { shownCompute } from './computes.ts'
import { faceOf, feedQuery } from './faces.ts'

/** The feed of everything that this service knows of: its projects, and the computes of its fleet. */
export const notificationEndpoints: readonly Endpoint[] = ['/v2/notifications', '/v2/notifications/ws'].map((path) =>
  endpoint({
    method: 'GET',
    path,
    tag: 'v2 computes',
    summary: 'Feed of the events of all projects and of all computes',
    description:
      'The lines of /v2/compute/notifications, and between them `compute.created`, `compute.updated` and `compute.deleted` with ' +
      'the compute, and `log.warning`. Those have no `seq` and are not told again: read /v2/computes when the feed is open.',
    query: feedQuery,
    websocket: true,
    replies: path.endsWith('/ws') ? {} : { 200: { description: 'The feed', media: 'application/json' } },
    errors: { 404: 'The request is no websocket upgrade', 429: 'There are too many open feeds' },
    handle({ query, request }, context) {
      if (path.endsWith('/ws')) requireUpgrade(request)
      const { fleet } = context
      const computes = fleet && { fleet, line: (event: FleetEvent) => lineOf(event, context) }
      return openFeed({ request, context, face: faceOf(query), since: query.since, computes })
    },
  }),
)

function lineOf(event: FleetEvent, context: Context): Line {
  if (event.type === 'log.warning') return { action: event.type, event: { message: event.message } }
  return { action: event.type, event: shownCompute(event.compute, context) }
}
