import { Type } from '@sinclair/typebox'
import { notFound } from '../../lib/errors/api-error.ts'
import { Uuid } from '../../model/schema/fields.ts'
import { type Endpoint, endpoint } from '../../server/http/endpoint.ts'

/** Paths of projects that this version does not have: a gateway forwards them to the compute, which may be newer. */
export const newerPaths: readonly Endpoint[] = ['/v1/projects', '/v2/compute/projects'].flatMap((base) =>
  (['GET', 'POST', 'PUT', 'DELETE'] as const).map((method) =>
    endpoint({
      method,
      path: `${base}/{project_id}/{action}`,
      owner: 'project',
      // A GET may open a console.
      role: 'operate',
      tag: 'newer paths',
      summary: 'A path of a project that only a newer compute has',
      params: Type.Object({ project_id: Uuid, action: Type.String() }),
      websocket: method === 'GET',
      bodyKind: 'raw',
      replies: {},
      handle({ path }) {
        throw notFound(`No such endpoint: ${path.slice(0, 200)}`, { code: 'no-such-path' })
      },
    }),
  ),
)
