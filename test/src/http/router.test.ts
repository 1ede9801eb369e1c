import { expect, test } from 'vitest'
import { endpoint, noContent } from '../../../src/http/endpoint.ts'
import { Routes } from '../../../src/http/router.ts'

const paths = [
  '/v2/computes/{compute_id}',
  '/v2/computes/endpoint/{compute_id}/{emulator}/{action}',
  '/v2/computes/{compute_id}/{emulator}/images',
  '/v2/computes/{compute_id}/{emulator}/{action}',
  '/v2/compute/projects/{project_id}/pc/nodes',
  '/v2/compute/projects/{project_id}/pc/nodes/{node_id}',
  '/v2/compute/projects/{project_id}/files/{path}',
]
const routes = () =>
  new Routes(
    paths.map((path) =>
      endpoint({ method: 'GET', path, tag: '', summary: '', replies: {}, handle: async () => noContent }),
    ),
  )

async function templateAt(table: Routes, path: string): Promise<string> {
  const found = await table.find('GET', path).catch(({ message }: Error) => ({ methods: message }))
  return 'endpoint' in found ? found.endpoint.path : found.methods
}

test('a path has the route that comes first, whichever paths were asked for before', async () => {
  const asked: readonly (readonly [path: string, template: string])[] = [
    ['/v2/computes/vm', '/v2/computes/{compute_id}'],
    ['/v2/computes/images', '/v2/computes/{compute_id}'],
    ['/v2/computes/vm/', '/v2/computes/{compute_id}'],
    ['/v2/computes/vm/pc/images', '/v2/computes/{compute_id}/{emulator}/images'],
    ['/v2/computes/vm/pc/images/a/b', '/v2/computes/{compute_id}/{emulator}/{action}'],
    ['/v2/computes/vm/pc/nodes', '/v2/computes/{compute_id}/{emulator}/{action}'],
    ['/v2/computes/endpoint/vm/images', '/v2/computes/{compute_id}/{emulator}/images'],
    ['/v2/computes/endpoint/vm/pc/images', '/v2/computes/endpoint/{compute_id}/{emulator}/{action}'],
    ['/v2/compute/projects/1/pc/nodes/2', '/v2/compute/projects/{project_id}/pc/nodes/{node_id}'],
    ['/v2/compute/projects/nodes/pc/nodes/pc', '/v2/compute/projects/{project_id}/pc/nodes/{node_id}'],
    ['/v2/compute/projects/1/files/pc/nodes', '/v2/compute/projects/{project_id}/files/{path}'],
    ['/v2/compute/projects/1/files/a//b', '/v2/compute/projects/{project_id}/files/{path}'],
  ]
  const together = routes()
  for (let round = 0; round < 2; round++) {
    for (const [path, template] of asked) {
      expect(await templateAt(routes(), path)).toBe(template)
      expect(await templateAt(together, path)).toBe(template)
    }
  }
})

test('parameters are those of the path that is asked for', async () => {
  const table = routes()
  for (const id of ['1', '2', 'pc', '%41'])
    expect(await table.find('GET', `/v2/compute/projects/${id}/pc/nodes/${id}`)).toMatchObject({
      params: { project_id: decodeURIComponent(id), node_id: decodeURIComponent(id) },
    })
})

test('a path that a runtime reads as a shorter one does not change what others of its shape are', async () => {
  const table = routes()
  expect(await templateAt(table, '/v2/./computes/vm')).toBe('/v2/computes/{compute_id}')
  expect(await templateAt(table, '/v2/x/computes/vm')).toMatch(/^There is nothing at/)
  expect(await templateAt(table, '/v2/computes/vm')).toBe('/v2/computes/{compute_id}')
})
