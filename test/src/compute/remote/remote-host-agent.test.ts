import { expect, test } from 'vitest'
import type { NodeRef } from '../../../../src/model/kinds/node.ts'
import { agentThatAnswers, isBadGateway } from '../../../support/answering-agent.ts'

const own = '10000000-0000-4000-8000-000000000000'
const other = '20000000-0000-4000-8000-000000000000'
const project = { name: 'lab', path: '/x', location: '/', temporary: false, variables: null }
const ref: NodeRef<'pc'> = { project_id: own, kind: 'pc', node_id: own }
const port = { node_type: 'pc', node_id: own, adapter_number: 0, port_number: 0 } as const

test.for([null, [], 'x', 4, {}, { ...project, project_id: other }])(
  '%j is not the project that was opened',
  async (body) => {
    const { projects } = agentThatAnswers(body)
    for (const asked of [
      projects.create({ project_id: own, name: 'lab' }),
      projects.get(own),
      projects.update(own, { name: 'x' }),
    ])
      await isBadGateway(asked, /sent a malformed answer/)
  },
)

test.for([null, [], 'x', 4, {}, { node_id: other, name: 'PC1', status: 'started' }])(
  '%j is not the node that was asked for',
  async (body) => {
    const { nodes } = agentThatAnswers(body)
    for (const asked of [
      nodes.create(own, 'pc', { node_id: own, name: 'PC1' }, { existing: 'refuse' }),
      nodes.get(ref),
      nodes.update(ref, {}),
      nodes.start(ref),
    ])
      await isBadGateway(asked, /sent a malformed answer/)
  },
)

test('ids are compared without regard to case', async () => {
  const id = 'aaaaaaaa-0000-4000-8000-000000000000'
  expect(await agentThatAnswers({ ...project, project_id: id.toUpperCase() }).projects.get(id)).toMatchObject({
    name: 'lab',
  })
})

test.for([
  ['are missing', []],
  ['are of others', [{ link_id: other, error: null }]],
])('results of links that %s are a bad gateway', async ([, body]) => {
  await isBadGateway(agentThatAnswers(body).links.joinAll(own, [{ link_id: own, nodes: [port, port] }]), /in place of/)
})
