import { expect, test } from 'vitest'
import { endpoint, noContent } from '../../../../src/server/http/endpoint.ts'
import { Routes } from '../../../../src/server/http/router.ts'

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

function templateAt(table: Routes, path: string): string {
  try {
    const found = table.find('GET', path)
    return 'endpoint' in found ? found.endpoint.path : found.methods
  } catch (error) {
    return (error as Error).message
  }
}

test('a path has the first matching route, whichever paths were requested before', () => {
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
      expect(templateAt(routes(), path)).toBe(template)
      expect(templateAt(together, path)).toBe(template)
    }
  }
})

test('a word that leaves its name is one for its own methods only', () => {
  const at = (method: 'GET' | 'POST' | 'DELETE', path: string, leavesName = false) =>
    endpoint({ method, path, leavesName, tag: '', summary: '', replies: {}, handle: async () => noContent })
  const table = new Routes([
    at('POST', '/v2/projects/load', true),
    at('GET', '/v2/projects/{project_id}'),
    at('DELETE', '/v2/projects/{project_id}'),
  ])
  expect(table.find('POST', '/v2/projects/load')).toMatchObject({ endpoint: { path: '/v2/projects/load' }, params: {} })
  for (const method of ['GET', 'HEAD', 'DELETE'])
    expect(table.find(method, '/v2/projects/load')).toMatchObject({ params: { project_id: 'load' } })
  expect(table.find('OPTIONS', '/v2/projects/load')).toEqual({ methods: 'GET, HEAD, DELETE, POST, OPTIONS' })
  expect(() => table.find('PUT', '/v2/projects/load')).toThrow('Method PUT is not allowed')
  expect(() => table.find('POST', '/v2/projects/other')).toThrow('use GET, HEAD, DELETE or OPTIONS')
})

test('parameters are those of the requested path', () => {
  const table = routes()
  for (const id of ['1', '2', 'pc', '%41'])
    expect(table.find('GET', `/v2/compute/projects/${id}/pc/nodes/${id}`)).toMatchObject({
      params: { project_id: decodeURIComponent(id), node_id: decodeURIComponent(id) },
    })
})

test('an empty segment is not a parameter, a dot is a segment like any other, and neither changes its shape', () => {
  const table = routes()
  for (const path of ['/v2/./computes/vm', '/v2//computes/vm', '/v2/computes/', '/v2/compute/projects//files/a'])
    expect(templateAt(table, path)).toMatch(/^No such endpoint:/)
  expect(templateAt(table, '/v2/computes/vm')).toBe('/v2/computes/{compute_id}')
  expect(templateAt(table, '/v2/compute/projects/1/files/a')).toBe('/v2/compute/projects/{project_id}/files/{path}')
})

test.for([
  ['a', 'a'],
  ['a/', 'a/'],
  ['/etc', '/etc'],
  ['a//b', 'a//b'],
  ['a%2F%20b', 'a/ b'],
])('the rest of a path is a parameter with its slashes: %s', ([rest, path]) => {
  expect(routes().find('GET', `/v2/compute/projects/1/files/${rest}`)).toMatchObject({ params: { path } })
})
