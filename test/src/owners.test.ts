import { expect, test } from 'vitest'
import { newerPaths } from '../../src/endpoints/compute/newer-paths.ts'
import { endpoints } from '../../src/endpoints/endpoints.ts'
import type { Owner } from '../../src/server/http/endpoint.ts'

/** What is about the service that is asked, whatever is behind it. */
const ofService: readonly string[] = [
  '/',
  '/app/',
  '/docs',
  '/mcp',
  '/metrics',
  '/openapi.json',
  '/schemas/',
  '/v1/config/reload',
  '/v1/version',
  '/v2/appliance',
  '/v2/classes',
  '/v2/compute/config/reload',
  '/v2/compute/metrics',
  '/v2/compute/tickets',
  '/v2/compute/version',
  '/v2/computes/',
  '/v2/default_symbols',
  '/v2/imports',
  '/v2/jobs',
  '/v2/kinds',
  '/v2/organizations',
  '/v2/projects',
  '/v2/session',
  '/v2/statistics',
  '/v2/symbols',
  '/v2/templates',
  '/v2/tokens',
  '/v2/version',
]

/** By the path as a person reads it; the product reads what the endpoints declare. */
function expected(method: string, path: string): Owner {
  // Labs are the service's own, whatever computes their nodes are on.
  if (path.startsWith('/v2/projects')) return 'self'
  if (path.includes('{project_id}')) return 'project'
  if (path === '/v2/computes') return method === 'GET' ? 'all' : 'self'
  const isOfService = ofService.some((it) => path === it || (it !== '/' && path.startsWith(it)))
  return isOfService ? 'self' : 'all'
}

test.for([...endpoints, ...newerPaths].map(({ method, path, owner }) => [method, path, owner] as const))(
  '%s %s concerns %s',
  ([method, path, owner]) => {
    expect(owner).toBe(expected(method, path))
  },
)

test('exactly the endpoints about a project on a compute have its id as a parameter', () => {
  const onComputes = [...endpoints, ...newerPaths].filter(({ path }) => !path.startsWith('/v2/projects'))
  for (const { owner, params } of onComputes)
    expect(params?.properties.project_id !== undefined).toBe(owner === 'project')
})

test('only closing and deleting a project end it', () => {
  const ends = endpoints
    .filter(({ endsProject }) => endsProject === true)
    .map(({ method, path }) => `${method} ${path}`)
  expect(ends.sort()).toEqual([
    'DELETE /v1/projects/{project_id}',
    'DELETE /v2/compute/projects/{project_id}',
    'POST /v1/projects/{project_id}/close',
    'POST /v2/compute/projects/{project_id}/close',
  ])
})
