import { expect, test } from 'vitest'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabNode } from '../../src/model/lab/node.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import type { LabTasks } from '../../src/model/lab/task.ts'
import type { LabPlan } from '../../src/model/lab/topology.ts'
import { body, del, post, put, send } from '../support/api.ts'

const projects = '/v2/projects'
const newName = () => `lab-${crypto.randomUUID().slice(0, 8)}`

/** Two pcs that reach each other, and a task that is not done. */
const fileOf = (name: string, tasks = allTasks) => `lab: ${name}
nodes:
  PC1: { kind: pc, config: { text: "ip 10.0.0.1/24" } }
  PC2: { kind: pc, config: { text: "ip 10.0.0.2/24" } }
links: [{ name: cable, ends: [PC1, PC2] }]
checks:
  - { from: PC1, ping: PC2, within: 5s }
  - { name: the far one, from: PC1, ping: 10.0.0.9, within: 1s }
  - { name: it carries, link: cable, verdict: ok, within: 5s }
${tasks}`
const allTasks = `tasks:
  - { name: Read this, text: "Two *PCs*" }
  - { name: The cable, text: Let it carry frames, checks: [it carries, PC1 pings PC2], points: 3 }
  - { name: The far host, checks: [it carries, the far one], points: 2 }
`

async function applied(file: string, lab: string, query = '?start=true'): Promise<LabPlan> {
  const headers = { 'content-type': 'application/yaml' }
  const plan = await body<LabPlan>(send(`${projects}/${lab}/topology${query}`, { method: 'PUT', body: file, headers }))
  if (plan.job_id !== undefined) expect(await ended(plan.job_id)).toMatchObject({ status: 'done' })
  return plan
}

async function ended(id: string): Promise<LabJob> {
  for (;;) {
    const job = await body<LabJob>(send(`/v2/jobs/${id}`))
    if (job.status !== 'running') return job
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const tasksOf = (lab: string) => body<LabTasks>(send(`${projects}/${lab}/tasks`))
const exported = async (lab: string) => (await send(`${projects}/${lab}/topology?format=yaml`)).text()

test('a lab keeps the tasks of its file, and shows them without their checks', async () => {
  const lab = newName()
  await applied(fileOf(lab), lab)
  expect(await tasksOf(lab)).toEqual({
    ...{ points: 0, of: 5 },
    tasks: [
      { name: 'Read this', text: 'Two *PCs*', points: 1, state: 'text', reason: null },
      { name: 'The cable', text: 'Let it carry frames', points: 3, state: 'unchecked', reason: null },
      { name: 'The far host', text: '', points: 2, state: 'unchecked', reason: null },
    ],
  })
  expect(await body<LabProject>(send(`${projects}/${lab}`))).toMatchObject({ score: { tasks: 3, points: 0, of: 5 } })
  // The same file again changes nothing, and its export is the same lab.
  expect((await applied(fileOf(lab), lab)).steps).toEqual([])
  expect((await applied(await exported(lab), lab)).steps).toEqual([])
  await del(`${projects}/${lab}`)
})

test('a check shows what is done, and not what the checks are; the lab keeps the result', async () => {
  const lab = newName()
  await applied(fileOf(lab), lab)
  const started = await post(`${projects}/${lab}/tasks/check`)
  expect(started.status).toBe(201)
  const { job_id } = await body<LabJob>(started)
  expect(await ended(job_id)).toMatchObject({
    ...{ action: 'check', status: 'done', total: 2, done: 2, failed: 0, reason: null },
    tasks: [
      { name: 'The cable', points: 3, state: 'done', reason: null },
      { name: 'The far host', points: 2, state: 'open', reason: '1 of 2 parts work' },
    ],
  })
  const shown = await (await send(`/v2/jobs/${job_id}`)).text()
  expect(shown).not.toMatch(/10\.0\.0|carries|ping/)
  expect(await tasksOf(lab)).toMatchObject({
    ...{ points: 3, of: 5, checked_at: expect.stringMatching(/^\d{4}-.*Z$/) },
    tasks: [{ state: 'text' }, { state: 'done' }, { state: 'open', reason: '1 of 2 parts work' }],
  })
  expect(await body<LabProject>(send(`${projects}/${lab}`))).toMatchObject({ score: { points: 3, of: 5 } })
  // A check is no edit: there is nothing to undo but the edits before it.
  expect((await applied(fileOf(lab), lab)).steps).toEqual([])

  const nodes = await body<LabNode[]>(send(`${projects}/${lab}/nodes`))
  const pc1 = nodes.find(({ name }) => name === 'PC1')?.node_id
  await post(`${projects}/${lab}/nodes/${pc1}/stop`)
  const again = await body<LabJob>(post(`${projects}/${lab}/tasks/check`))
  const [first] = (await ended(again.job_id)).tasks ?? []
  expect(first).toMatchObject({
    state: 'open',
    reason: 'A node that it is about is not running: start it, and check again',
  })
  await del(`${projects}/${lab}`)
})

test('tasks follow nodes and links that are renamed', async () => {
  const lab = newName()
  await applied(fileOf(lab), lab)
  const nodes = await body<LabNode[]>(send(`${projects}/${lab}/nodes`))
  const pc1 = nodes.find(({ name }) => name === 'PC1')?.node_id
  expect((await put(`${projects}/${lab}/nodes/${pc1}`, { name: 'Desk' })).ok).toBe(true)
  const text = await exported(lab)
  expect(text).toContain('checks: [ it carries, Desk pings PC2 ]')
  expect(text).toContain('- { from: Desk, ping: PC2, within: 5s }')
  const { job_id } = await body<LabJob>(post(`${projects}/${lab}/tasks/check`))
  expect((await ended(job_id)).tasks?.[0]).toMatchObject({ state: 'done' })
  await del(`${projects}/${lab}`)
})

test('a file that says nothing of tasks leaves them, and one with an empty list removes them', async () => {
  const lab = newName()
  await applied(fileOf(lab), lab)
  expect((await applied(fileOf(lab, ''), lab)).steps).toEqual([])
  expect((await tasksOf(lab)).tasks).toHaveLength(3)
  expect((await applied(fileOf(lab, 'tasks: []\n'), lab)).steps).toMatchObject([
    { do: 'update', what: 'project', because: 'its tasks' },
  ])
  expect(await tasksOf(lab)).toEqual({ tasks: [], points: 0, of: 0 })
  expect(await body<LabProject>(send(`${projects}/${lab}`))).not.toHaveProperty('score')
  const refused = await post(`${projects}/${lab}/tasks/check`)
  expect([refused.status, await body<{ message: string }>(refused)]).toMatchObject([
    409,
    { message: `The project ${lab} has no tasks that can be checked` },
  ])
  await del(`${projects}/${lab}`)
})

test('a snapshot and a copy have the tasks, and not what was done of them', async () => {
  const lab = newName()
  await applied(fileOf(lab), lab, '')
  const { snapshot_id } = await body<{ snapshot_id: string }>(post(`${projects}/${lab}/snapshots`, { name: 'first' }))
  await applied(fileOf(lab, 'tasks: [{ name: Another }]\n'), lab, '')
  expect((await post(`${projects}/${lab}/snapshots/${snapshot_id}/restore`)).ok).toBe(true)
  expect(await tasksOf(lab)).toMatchObject({ points: 0, of: 5, tasks: { length: 3 } })

  const copy = await body<LabProject>(post(`${projects}/${lab}/duplicate`, { name: newName() }))
  expect(copy).toMatchObject({ score: { tasks: 3, points: 0, of: 5 } })
  expect((await tasksOf(copy.project_id)).tasks.map(({ name }) => name)).toEqual([
    ...['Read this', 'The cable', 'The far host'],
  ])
  await del(`${projects}/${copy.project_id}`)
  await del(`${projects}/${lab}`)
})

test('an unknown check is refused with its place, and nothing is made', async () => {
  const lab = newName()
  const wrong = fileOf(lab, 'tasks: [{ name: a, checks: [the fra one] }]\n')
  const headers = { 'content-type': 'application/yaml' }
  const refused = await send(`${projects}/${lab}/topology`, { method: 'PUT', body: wrong, headers })
  expect(refused.status).toBe(400)
  expect(await body<{ message: string }>(refused)).toMatchObject({
    message: '10:29: tasks[0].checks[0]: there is no check "the fra one"; did you mean "the far one"?',
  })
  expect((await send(`${projects}/${lab}`)).status).toBe(404)
})
