import { expect, test } from 'vitest'
import type { Class } from '../../src/model/lab/class.ts'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import type { LabSnapshot } from '../../src/model/lab/snapshot.ts'
import { body, del, post, put, send } from '../support/api.ts'

const projects = '/v2/projects'
const classes = '/v2/classes'
const newName = (word: string) => `${word}${crypto.randomUUID().slice(0, 8)}`

/** A lab with two pcs, closed. */
async function newLab(): Promise<string> {
  const lab = newName('origin')
  const file = `lab: ${lab}\nnodes:\n  PC1: { kind: pc }\n  PC2: { kind: pc }\nlinks: [[PC1, PC2]]\n`
  const headers = { 'content-type': 'application/yaml' }
  const applied = send(`${projects}/${lab}/topology`, { method: 'PUT', body: file, headers })
  expect(await untilEnded(await body<LabJob>(applied))).toMatchObject({ status: 'done' })
  expect((await post(`${projects}/${lab}/close`)).status).toBe(204)
  return lab
}

/** The job of a request, when it has ended. */
async function ended(answer: Response | Promise<Response>): Promise<LabJob> {
  const started = await answer
  const text = await started.clone().text()
  expect([started.status, text]).toMatchObject([201, expect.stringContaining('job_id')])
  return untilEnded(await body<LabJob>(started))
}

async function untilEnded({ job_id }: Pick<LabJob, 'job_id'>): Promise<LabJob> {
  for (;;) {
    const job = await body<LabJob>(send(`/v2/jobs/${job_id}`))
    if (job.status !== 'running') return job
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const refused = async (answer: Promise<Response>) => {
  const { status, message } = await body<{ status: number; message: string }>(answer)
  return [status, message]
}
const classOf = async (name: string) =>
  (await body<Class[]>(send(classes))).find((it) => it.name.toLowerCase() === name.toLowerCase())
const nodesOf = async (lab: string) => (await body<{ name: string }[]>(send(`${projects}/${lab}/nodes`))).length

test('each student of a class gets a lab of their own, and more students can come', async () => {
  const [lab, name] = [await newLab(), newName('class')]
  const job = await ended(post(classes, { name, project_id: lab, students: ['Grace', 'ada'] }))
  expect(job).toMatchObject({
    action: 'class-create',
    class: name,
    status: 'done',
    total: 2,
    done: 2,
    project_id: null,
  })
  expect(job.projects?.map(({ name, state }) => [name, state])).toEqual([
    ...[`${name}-Grace`, `${name}-ada`].map((it) => [it, 'done']),
  ])
  const more = await ended(post(classes, { name: name.toUpperCase(), project_id: lab, students: ['ADA', 'Alan'] }))
  expect(more).toMatchObject({ status: 'done', class: name, total: 2, done: 2 })
  expect((await classOf(name))?.students).toMatchObject([
    { student: 'ada', project: `${name}-ada`, token: null },
    { student: 'Alan', project: `${name}-Alan` },
    { student: 'Grace', project: `${name}-Grace` },
  ])
  const own = await body<LabProject>(send(`${projects}/${name}-Alan`))
  expect(own).toMatchObject({ status: 'closed', counts: { nodes: 2, links: 1 }, class: { name, student: 'Alan' } })
  const listed = await body<LabProject[]>(send(projects))
  expect(listed.filter((it) => it.class?.name === name)).toHaveLength(3)
  // Neither the lab that was copied nor a copy of a copy belongs to the class.
  expect(listed.find((it) => it.name === lab)).not.toHaveProperty('class')
  const copy = await body<LabProject>(post(`${projects}/${name}-Alan/duplicate`, { name: newName('copy') }))
  expect(copy).not.toHaveProperty('class')
  expect(await ended(del(`${classes}/${name}`))).toMatchObject({ action: 'class-delete', status: 'done', done: 3 })
  expect(await classOf(name)).toBeUndefined()
  expect(await refused(send(`${projects}/${name}-ada`))).toEqual([404, expect.any(String)])
  for (const it of [lab, copy.project_id]) await del(`${projects}/${it}`)
})

test('a reset puts labs back to how they were handed out', async () => {
  const [lab, name] = [await newLab(), newName('class')]
  await ended(post(classes, { name, project_id: lab, students: ['ada', 'grace'] }))
  for (const student of ['ada', 'grace']) {
    expect((await post(`${projects}/${name}-${student}/open`)).status).toBe(201)
    const made = await post(`${projects}/${name}-${student}/nodes`, { name: 'PC3', node_type: 'pc' })
    expect(made.status).toBe(201)
  }
  expect(await ended(post(`${classes}/${name}/reset`, { students: ['ADA'] }))).toMatchObject({
    ...{ action: 'class-reset', status: 'done', total: 1 },
    projects: [{ name: `${name}-ada`, state: 'done', reason: null }],
  })
  expect([await nodesOf(`${name}-ada`), await nodesOf(`${name}-grace`)]).toEqual([2, 3])
  await ended(post(`${classes}/${name}/reset`))
  expect(await nodesOf(`${name}-grace`)).toBe(2)
  // A reset does not take the lab out of its class, and works again.
  expect((await classOf(name))?.students).toHaveLength(2)
  expect(await ended(post(`${classes}/${name}/reset`))).toMatchObject({ status: 'done', done: 2 })

  const [snapshot] = await body<LabSnapshot[]>(send(`${projects}/${name}-ada/snapshots`))
  await del(`${projects}/${name}-ada/snapshots/${snapshot?.snapshot_id}`)
  expect(await ended(post(`${classes}/${name}/reset`))).toMatchObject({
    ...{ status: 'failed', done: 1, failed: 1 },
    reason: `${name}-ada: The project ${name}-ada cannot be reset: it has no snapshot "Start of the class"`,
  })
  await ended(del(`${classes}/${name}`))
  await del(`${projects}/${lab}`)
})

test('what a class cannot be is refused, and nothing is made', async () => {
  const [lab, name] = [await newLab(), newName('class')]
  const make = (more: Record<string, unknown>) =>
    refused(post(classes, { name, project_id: lab, students: ['ada'], ...more }))
  expect(await make({ students: ['ada', 'Ada'] })).toEqual([
    ...[400, 'students: Ada is there twice; give each student another name'],
  ])
  expect(await make({ students: [] })).toEqual([400, expect.stringContaining('students: ')])
  expect(await make({ students: ['a/b'] })).toEqual([403, expect.stringContaining('name: ')])
  expect(await make({ students: ['two\nlines'] })).toEqual([400, expect.stringContaining('students[0]: ')])
  expect(await make({ students: Array.from({ length: 201 }, (_, index) => `s${index}`) })).toEqual([
    ...[400, expect.stringContaining('students: ')],
  ])
  expect(await make({ project_id: newName('none') })).toEqual([404, expect.stringContaining('there is no project')])
  expect(await make({ project_id: crypto.randomUUID() })).toEqual([404, expect.stringContaining('there is no project')])
  await post(projects, { name: `${name}-grace` })
  expect(await make({ students: ['ada', 'grace'] })).toEqual([409, expect.stringContaining(`${name}-grace`)])
  expect(await classOf(name)).toBeUndefined()
  for (const [path, method] of [
    ['links', 'POST'],
    ['reset', 'POST'],
    ['', 'DELETE'],
  ] as const)
    expect(await refused(send(`${classes}/${name}${path && `/${path}`}`, { method }))).toEqual([
      ...[404, `class: there is no class ${name}`],
    ])
  await del(`${projects}/${name}-grace`)

  await ended(post(classes, { name, project_id: lab, students: ['ada'] }))
  expect(await refused(post(`${classes}/${name}/reset`, { students: ['bob'] }))).toEqual([
    ...[404, `students: the class ${name} has no student bob`],
  ])
  // No client says of which class a lab is.
  await put(`${projects}/${name}-ada`, { class: { name: 'x', student: 'y' } })
  expect(await body(send(`${projects}/${name}-ada`))).toMatchObject({ class: { name, student: 'ada' } })
  await ended(del(`${classes}/${name}`))
  await del(`${projects}/${lab}`)
})

test('a lab whose nodes run is not copied: the job says so', async () => {
  const [lab, name] = [await newLab(), newName('class')]
  await post(`${projects}/${lab}/open`)
  await post(`${projects}/${lab}/nodes/start`)
  const job = await ended(post(classes, { name, project_id: lab, students: ['ada'] }))
  expect(job).toMatchObject({ status: 'failed', failed: 1, reason: expect.stringContaining('running') })
  expect(await classOf(name)).toBeUndefined()
  await del(`${projects}/${lab}`)
})
