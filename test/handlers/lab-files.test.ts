import { expect, test } from 'vitest'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabLink } from '../../src/model/lab/link.ts'
import type { LabNode } from '../../src/model/lab/node.ts'
import type { LabPlan } from '../../src/model/lab/topology.ts'
import { body, del, post, send } from '../support/api.ts'

const projects = '/v2/projects'
const topology = (lab: string) => `${projects}/${lab}/topology`
const newName = () => `lab-${crypto.randomUUID().slice(0, 8)}`

const apply = (lab: string, file: string, query = ''): Promise<Response> =>
  send(`${topology(lab)}${query}`, { method: 'PUT', body: file, headers: { 'content-type': 'application/yaml' } })

async function applied(lab: string, file: string): Promise<void> {
  const { job_id } = await body<LabPlan>(apply(lab, file))
  for (;;) {
    const job = await body<LabJob>(send(`/v2/jobs/${job_id}`))
    if (job.status === 'done') return
    if (job.status !== 'running') throw new Error(String(job.reason))
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const fileOf = async (lab: string): Promise<string> => {
  const answer = await send(`${topology(lab)}?format=yaml`)
  expect(answer.headers.get('content-type')).toContain('application/yaml')
  return answer.text()
}

test('a project is exported as a lab file, and an apply of this file changes nothing', async () => {
  const lab = newName()
  await applied(
    lab,
    `lab: ${lab}
nodes:
  PC1: { kind: pc, at: [0, 40], config: { text: "ip 10.0.0.1/24" }, labels: { site: a } }
  PC2: { kind: pc, at: [0, 80], after: [PC1] }
  PC3: { kind: pc, at: [9, 80] }
segments:
  hub: { kind: hub, at: [200, 0], members: [PC3] }
  lan:
    kind: switch
    at: [100, 0]
    members: [{ end: PC1, vlan: 20 }, { end: PC2, name: core, delay: 20ms, there: { loss: 1% } }, { end: hub, trunk: true }]
`,
  )
  const file = await fileOf(lab)
  expect(file.split('\n').slice(1)).toEqual(
    `lab: ${lab}
version: 1

nodes:
  PC1: { kind: pc, at: [ 0, 40 ], labels: { site: a }, config: { text: ip 10.0.0.1/24 } }
  PC2: { kind: pc, at: [ 0, 80 ], after: [ PC1 ] }
  PC3: { kind: pc, at: [ 9, 80 ] }

segments:
  hub: { kind: hub, at: [ 200, 0 ], members: [ PC3 ] }
  lan:
    kind: switch
    at: [ 100, 0 ]
    ports: { "2": { trunk: true } }
    members: [ { end: PC1, vlan: 20 }, { end: PC2, name: core, delay: 20ms, there: { loss: 1% } }, { end: hub:1, port: 2 } ]
`.split('\n'),
  )
  expect(file).toMatch(/^# yaml-language-server: \$schema=http:\/\/[^/]+\/schemas\/lab-1\.json\n/)
  expect(await body(apply(lab, file, '?dry_run=true'))).toMatchObject({ steps: [], withheld: [], extra: [] })
  await del(`${projects}/${lab}`)
})

test('a project that was made without a lab file is exported as one, with a list of what it lacks', async () => {
  const lab = newName()
  await post(projects, { name: lab })
  const at = `${projects}/${lab}`
  const add = (node: object) => body<LabNode>(post(`${at}/nodes`, node))
  const a = await add({ name: 'A:1', node_type: 'pc', x: 1, y: 2 })
  await add({ name: 'B', node_type: 'pc', x: 3, y: 4 })
  const end = (node_id: string) => ({ node_id, adapter_number: 0, port_number: 0 })
  await body<LabLink>(
    post(`${at}/links`, { nodes: [end(a.node_id), 'B:e0'], filters: { rate: [10_000, 64] }, suspend: true }),
  )
  const file = await fileOf(lab)
  expect(file).toContain('# * The node A:1 is named A-1 here')
  expect(file).toContain('- { ends: [ A-1, B ], down: true, rate: 10mbit, burst: 64kb }')
  const copy = newName()
  await applied(copy, file.replace(`lab: ${lab}`, `lab: ${copy}`))
  expect((await fileOf(copy)).replace(copy, lab).split('\n').slice(1)).toEqual(
    file.split('\n').filter((line) => !line.startsWith('#')),
  )
  for (const name of [lab, copy]) await del(`${projects}/${name}`)
})

test('the JSON Schema of lab files is served', async () => {
  const schema = await send('/schemas/lab-1.json')
  expect(schema.headers.get('content-type')).toBe('application/schema+json')
  expect(await schema.json()).toMatchObject({ required: ['lab', 'nodes'] })
})
