import { expect, test } from 'vitest'
import { clientOf, isBadGateway } from '../../../support/answering-client.ts'

const own = '10000000-0000-4000-8000-000000000000'
const other = '20000000-0000-4000-8000-000000000000'
const project = { name: 'lab', path: '/x', location: '/', temporary: false, variables: null }
const place = { project_id: own, node_type: 'pc', node_id: own }

test.for([null, [], 'x', 4, {}, { ...project, project_id: other }])(
  '%j is not the project that was opened',
  async (body) => {
    const client = clientOf(body)
    for (const asked of [
      client.openProject({ project_id: own, name: 'lab' }),
      client.project(own),
      client.renameProject(own, 'x'),
    ])
      await isBadGateway(asked, /sent a malformed answer/)
  },
)

test.for([null, [], 'x', 4, {}, { node_id: other, name: 'PC1', status: 'started' }])(
  '%j is not the node that was asked for',
  async (body) => {
    const client = clientOf(body)
    for (const asked of [
      client.createNode(place, { node_id: own }),
      client.node(place),
      client.updateNode(place, {}),
      client.act(place, 'start'),
    ])
      await isBadGateway(asked, /sent a malformed answer/)
  },
)

test('ids are compared without regard to case', async () => {
  const id = 'aaaaaaaa-0000-4000-8000-000000000000'
  expect(await clientOf({ ...project, project_id: id.toUpperCase() }).project(id)).toMatchObject({ name: 'lab' })
})

test.for([
  ['are missing', []],
  ['are of others', [{ link_id: other, error: null }]],
])('results of links that %s are a bad gateway', async ([, body]) => {
  await isBadGateway(clientOf(body).joinLinks(own, [{ link_id: own }]), /in place of/)
})
