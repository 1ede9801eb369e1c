import { isEventVisible, type ServiceEvent } from '../../../fleet/events/fleet-feed.ts'
import type { SentLine } from '../../../model/feed-line.ts'
import type { Context, Endpoint } from '../../../server/http/endpoint.ts'
import { computeView } from '../../compute/compute-view.ts'
import { hostFeed } from '../../compute/host-feed.ts'
import { ServiceFeedLine } from '../feed-lines.ts'

/** The feed of all projects, and of the computes of the fleet. */
export const notificationEndpoints: readonly Endpoint[] = hostFeed('/v2/notifications', {
  tag: 'v2 computes',
  summary: 'Feed of the events of all projects and of all computes',
  description:
    'The lines of /v2/compute/notifications, and between them events of computes, of projects as a whole, of templates and of jobs of ' +
    'several projects. These have no `seq` and are not repeated: read the lists when the feed is open.',
  schema: ServiceFeedLine,
  lineOf,
})

function lineOf(event: ServiceEvent, context: Context): SentLine | undefined {
  const { projects } = context
  if (!projects.isWhole && !isEventVisible(event, (id, name) => projects.sees(id, name))) return undefined
  if ('message' in event) return { action: event.type, event: { message: event.message } }
  if ('resource' in event) return { action: event.type, event: event.resource }
  return { action: event.type, event: computeView(event.compute, context) }
}
