import { expect, test } from 'vitest'
import { endpoints } from '../../../../src/endpoints/endpoints.ts'
import { Routes } from '../../../../src/server/http/router.ts'
import { findRead } from '../../../../src/server/steps/direct-reads.ts'

const id = '6A1C6E1A-0c3f-4f0c-9d9b-1f1e2d3c4b5a'
const project = `/v2/compute/projects/${id}`
const parts = { routes: new Routes(endpoints), options: { aliases: { vpcs: 'pc' } } }
const readOf = (path: string) => findRead(parts, path)

test.for([
  ['', '/v2/compute/projects/{project_id}', true],
  [`/pc/nodes/${id}`, '/v2/compute/projects/{project_id}/pc/nodes/{node_id}', true],
  ['/files/a/b.txt', '/v2/compute/projects/{project_id}/files/{path}', false],
] as const)('a GET of %s of a project is handed on directly', ([path, template, isJson]) => {
  expect(readOf(project + path)).toMatchObject({
    path: project + path,
    ...{ projectId: id.toLowerCase(), isJson },
    match: { endpoint: { method: 'GET', path: template } },
  })
})

test('the words of clients for kinds are those of the service at the compute', () => {
  expect(readOf(`${project}/vpcs/nodes/${id}`)?.path).toBe(`${project}/pc/nodes/${id}`)
})

test('no GET is handed on directly that opens a websocket, needs more than the role read, or is not of a project', () => {
  const filled = (path: string) => path.replace(/\{\w+\}/g, id)
  const others = endpoints.filter(
    ({ method, owner, role = 'read', websocket, forwardPath }) =>
      method !== 'GET' || owner !== 'project' || role !== 'read' || websocket === true || forwardPath !== undefined,
  )
  const gets = others.filter(({ method }) => method === 'GET')
  expect(gets.length).toBeGreaterThan(30)
  expect(gets.filter(({ path }) => readOf(filled(path)) !== undefined).map(({ path }) => path)).toEqual([])
})

test.for(['/files/../..', '/files/a/%2e%2E/b', '/nothing', '/files/%zz'])(
  'a GET of a path that a compute could read as another, or that is none, goes the usual way: %s',
  (path) => {
    expect(readOf(project + path)).toBeUndefined()
  },
)
