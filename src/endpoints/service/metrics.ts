import { Type } from '@sinclair/typebox'
import { MetricFamily } from '../../model/metrics.ts'
import { type Endpoint, endpoint, ok } from '../../server/http/endpoint.ts'
import { exposition, expositionMedia } from '../../server/http/exposition.ts'

const self = { owner: 'self', tag: 'server' } as const

/** The path that Prometheus scrapes. */
export const metricsPath = '/metrics'

/** Metrics for monitoring. */
export const metricsEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: metricsPath,
    ...self,
    summary: 'Metrics of the service and its labs, in the text format of Prometheus',
    replies: { 200: { description: 'The metrics, format 0.0.4', media: 'text/plain' } },
    async handle(_, { agent, fleet, requests, logins }) {
      const ofFleet = fleet?.metrics() ?? []
      const text = exposition([
        ...[...(await agent.host.metrics()), ...ofFleet, ...requests.families(), ...logins.families()],
      ])
      return new Response(text, { headers: { 'Content-Type': expositionMedia, 'Cache-Control': 'no-store' } })
    },
  }),
  endpoint({
    method: 'GET',
    path: '/v2/compute/metrics',
    ...self,
    summary: 'Metrics of the labs and of the process that runs them, as JSON',
    replies: { 200: { description: 'The metrics, without those of requests', schema: Type.Array(MetricFamily) } },
    handle: async (_, { agent }) => ok(await agent.host.metrics()),
  }),
]
