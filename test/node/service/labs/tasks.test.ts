import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import type { LabJob } from '../../../../src/model/lab/job.ts'
import type { LabTasks } from '../../../../src/model/lab/task.ts'
import type { LabPlan } from '../../../../src/model/lab/topology.ts'
import { TestService } from '../../../support/service.ts'

const [user, password] = ['teacher', 'geheim-geheim']
const teacher = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
let service: TestService
/** Headers of a token for the labs of the class, and of one that may only read. */
let student = ''
let reader = ''

beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded', user, password })
  const token = async (fields: Record<string, unknown>) => {
    const made = await ask(teacher, 'POST', '/v2/tokens', fields)
    return `Bearer ${((await made.json()) as { token: string }).token}`
  }
  student = await token({ name: 'ada', role: 'operate', projects: ['class-*'] })
  reader = await token({ name: 'eve', role: 'read' })
  return () => service.close()
})

const ask = (authorization: string, method: string, path: string, body?: unknown): Promise<Response> =>
  service.fetch(path, {
    method,
    headers: { authorization, ...(typeof body === 'string' && { 'content-type': 'application/yaml' }) },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })

const read = async <T>(authorization: string, path: string): Promise<T> =>
  (await ask(authorization, 'GET', path)).json() as Promise<T>

const newName = () => `class-${randomUUID().slice(0, 8)}`
const fileOf = (name: string, tasks = tasksOfTeacher) => `# The printer must have 10.0.0.99.
lab: ${name}
nodes: { PC1: { kind: pc, config: { text: ip 10.0.0.1/24 } } }
checks: [{ name: the printer answers, from: PC1, ping: 10.0.0.99, within: 1s }]
${tasks}`
const tasksOfTeacher =
  'tasks: [{ name: Repair it, text: Reach the *printer*, checks: [the printer answers], points: 4 }]\n'

/** Whatever tells how the task is solved. */
const solution = /10\.0\.0\.99|printer answers|ping/

async function made(who: string, file: string, name: string, query = '?start=true'): Promise<LabPlan> {
  const answer = await ask(who, 'PUT', `/v2/projects/${name}/topology${query}`, file)
  const plan = (await answer.json()) as LabPlan
  expect(answer.ok, JSON.stringify(plan)).toBe(true)
  if (plan.job_id !== undefined) await ended(who, plan.job_id)
  return plan
}

async function ended(who: string, id: string): Promise<LabJob> {
  let job = await read<LabJob>(who, `/v2/jobs/${id}`)
  while (job.status === 'running') {
    await new Promise((resolve) => setTimeout(resolve, 50))
    job = await read<LabJob>(who, `/v2/jobs/${id}`)
  }
  return job
}

test('who does not own the lab gets its tasks, and nothing that solves them', async () => {
  const name = newName()
  await made(teacher, fileOf(name), name)
  const lab = `/v2/projects/${name}`
  const text = async (who: string, path: string) => (await ask(who, 'GET', path)).text()

  expect(await text(teacher, `${lab}/topology?format=yaml`)).toContain('ping: 10.0.0.99')
  for (const who of [student, reader]) {
    const exported = await text(who, `${lab}/topology?format=yaml`)
    expect(exported).toContain('{ name: Repair it, text: Reach the *printer*, points: 4 }')
    expect(exported).not.toMatch(solution)
    expect(await read<LabTasks>(who, `${lab}/tasks`)).toMatchObject({ of: 4, tasks: [{ name: 'Repair it' }] })
    expect(await text(who, `${lab}/tasks`)).not.toMatch(solution)
  }

  const started = await ask(student, 'POST', `${lab}/tasks/check`)
  const job = await ended(student, ((await started.json()) as LabJob).job_id)
  expect(job.tasks).toEqual([{ name: 'Repair it', points: 4, state: 'open', reason: 'It does not work yet' }])
  expect(JSON.stringify(job)).not.toMatch(solution)
  // Who may only read checks nothing, and sees the result.
  expect((await ask(reader, 'POST', `${lab}/tasks/check`)).status).toBe(403)
  expect(await read<LabTasks>(reader, `${lab}/tasks`)).toMatchObject({ points: 0, tasks: [{ state: 'open' }] })
})

test('a job of the checks of a lab file shows them to who started it, and to owners', async () => {
  const name = newName()
  await made(teacher, fileOf(name), name)
  const run = async (who: string) => {
    const started = await ask(who, 'POST', `/v2/projects/${name}/checks`, fileOf(name))
    return ended(who, ((await started.json()) as LabJob).job_id)
  }
  const { job_id, checks } = await run(teacher)
  expect(checks).toMatchObject([{ name: 'the printer answers', state: 'failed' }])
  const seen = await read<LabJob>(student, `/v2/jobs/${job_id}`)
  expect(seen).toMatchObject({ status: 'failed', reason: '1 of 1 check failed', by: user })
  expect(JSON.stringify([seen, await read(student, '/v2/jobs')])).not.toMatch(solution)
  expect((await run(student)).checks).toMatchObject([{ name: 'the printer answers' }])
})

test('an archive has the checks for who owns the lab, and only texts and points for others', async () => {
  const name = newName()
  await made(teacher, fileOf(name), name, '')
  const archiveFor = async (who: string) =>
    Buffer.from(await (await ask(who, 'GET', `/v2/projects/${name}/export?compression=none`)).arrayBuffer())
  const [ofTeacher, ofStudent] = [await archiveFor(teacher), await archiveFor(student)]
  expect(ofTeacher.includes('10.0.0.99')).toBe(true)
  expect(ofStudent.includes('Repair it')).toBe(true)
  expect(ofStudent.includes('10.0.0.99')).toBe(false)

  const imported = async (archive: Buffer) => {
    const id = randomUUID()
    const path = `/v2/projects/${id}/import?name=${newName()}`
    const init = { method: 'POST', headers: { authorization: teacher }, body: new Uint8Array(archive) }
    expect((await service.fetch(path, init)).status).toBe(201)
    return read<LabTasks>(teacher, `/v2/projects/${id}/tasks`)
  }
  expect(await imported(ofTeacher)).toMatchObject({ of: 4, tasks: [{ name: 'Repair it', state: 'unchecked' }] })
  // Without its checks a task is one that is only read.
  expect(await imported(ofStudent)).toMatchObject({ of: 0, tasks: [{ name: 'Repair it', state: 'text' }] })
})

test('the tasks of another stay for who does not own the lab; its own tasks a token may change', async () => {
  const [name, own] = [newName(), newName()]
  const easy = 'tasks: [{ name: Nothing to do }]\n'
  await made(teacher, fileOf(name), name, '')
  await made(student, fileOf(name, easy), name, '?take_over=true')
  expect(await read<LabTasks>(teacher, `/v2/projects/${name}/tasks`)).toMatchObject({ tasks: [{ name: 'Repair it' }] })
  await made(student, fileOf(own), own, '')
  await made(student, fileOf(own, easy), own, '')
  expect(await read<LabTasks>(student, `/v2/projects/${own}/tasks`)).toMatchObject({
    tasks: [{ name: 'Nothing to do' }],
  })
})
