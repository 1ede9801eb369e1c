import { Type } from '@sinclair/typebox'
import { notFound } from '../../../lib/errors/api-error.ts'
import { type Endpoint, endpoint, ok } from '../../../server/http/endpoint.ts'
import { computeNameView } from '../../compute/compute-view.ts'

const percent = Type.Number({ description: 'Percent' })

export const statisticsEndpoint: Endpoint = endpoint({
  ...{ method: 'GET', path: '/v2/statistics', owner: 'self', tag: 'v2 computes', scope: 'shared' },
  summary: 'The load of each connected compute',
  replies: {
    200: {
      description: 'The computes, `local` first',
      schema: Type.Array(
        Type.Object(
          {
            compute_id: Type.String(),
            compute_name: Type.String(),
            statistics: Type.Object({ cpu_usage_percent: percent, memory_usage_percent: percent }),
          },
          { $id: 'ComputeStatistics', description: 'The load of a compute' },
        ),
      ),
    },
  },
  errors: { 404: 'This service has no fleet' },
  async handle(_, { fleet, projects }) {
    if (fleet === undefined) throw notFound('This service is a compute only, and has no fleet')
    const computes = (await fleet.list()).filter(({ connected }) => connected)
    return ok(
      computes.map((compute) => ({
        compute_id: compute.compute_id,
        compute_name: computeNameView(compute, { projects }),
        statistics: {
          cpu_usage_percent: compute.cpu_usage_percent ?? 0,
          memory_usage_percent: compute.memory_usage_percent ?? 0,
        },
      })),
    )
  },
})
