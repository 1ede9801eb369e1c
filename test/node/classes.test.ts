import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Class, ClassLink } from '../../src/model/lab/class.ts'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabNode } from '../../src/model/lab/node.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import type { LabSnapshot } from '../../src/model/lab/snapshot.ts'
import { TestService } from '../support/service.ts'

const teacher = 'teacher-of-tests-0123456789'
let service: TestService
beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded', token: teacher })
})
afterAll(() => service?.close())

const ask = (token: string, method: string, path: string, body?: unknown) =>
  service.fetch(path, {
    method,
    headers: { authorization: `Bearer ${token}` },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })

async function answerOf<T>(answer: Promise<Response>): Promise<T> {
  const response = await answer
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as T
}
const refusal = async (answer: Promise<Response>) => {
  const response = await answer
  return [response.status, ((await response.json()) as { message: string }).message]
}

async function ended(answer: Promise<Response>): Promise<LabJob> {
  const { job_id } = await answerOf<LabJob>(answer)
  for (;;) {
    const job = await answerOf<LabJob>(ask(teacher, 'GET', `/v2/jobs/${job_id}`))
    if (job.status !== 'running') return job
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** A class of two students, each with two pcs. */
async function newClass() {
  const id = crypto.randomUUID().slice(0, 8)
  const [lab, name] = [`origin${id}`, `class${id}`]
  await answerOf(ask(teacher, 'POST', '/v2/projects', { name: lab }))
  for (const pc of ['PC1', 'PC2'])
    await answerOf(ask(teacher, 'POST', `/v2/projects/${lab}/nodes`, { name: pc, node_type: 'pc' }))
  const made = ask(teacher, 'POST', '/v2/classes', { name, project_id: lab, students: ['ada', 'grace'] })
  expect(await ended(made)).toMatchObject({ status: 'done', done: 2 })
  return { name, at: `/v2/classes/${name}` }
}
const linksOf = (at: string, input: object = {}) => answerOf<ClassLink[]>(ask(teacher, 'POST', `${at}/links`, input))
const studentsOf = async (name: string) =>
  (await answerOf<Class[]>(ask(teacher, 'GET', '/v2/classes'))).find((it) => it.name === name)?.students

test('the link of a student is shown once, and a new one takes its place', async () => {
  const { name, at } = await newClass()
  const limits = { max_nodes: 5, max_running: 2 }
  const made = await linksOf(at, { limits, expires_in_s: 3600 })
  expect(made).toMatchObject([
    { student: 'ada', project: `${name}-ada`, expires_at: expect.stringContaining('Z') as string },
    { student: 'grace', project: `${name}-grace` },
  ])
  for (const { token, path } of made) expect(path).toBe(`/#/class/${token}`)
  const [ada, grace] = (await studentsOf(name)) ?? []
  expect(ada?.token).toMatchObject({
    ...{ name: 'ada', role: 'operate', projects: [ada?.project_id], limits, token_id: made[0]?.token_id },
  })
  expect(JSON.stringify(await studentsOf(name))).not.toContain(made[0]?.token)

  const [again] = await linksOf(at, { students: ['ADA'], role: 'read' })
  const knows = async (link: ClassLink | undefined) =>
    (await ask(link?.token ?? '', 'GET', `/v2/projects/${link?.project_id}`)).status
  expect([await knows(made[0]), await knows(made[1]), await knows(again)]).toEqual([401, 200, 200])
  expect(await studentsOf(name)).toMatchObject([
    { token: { token_id: again?.token_id, role: 'read' } },
    { token: { token_id: grace?.token?.token_id } },
  ])
  await ended(ask(teacher, 'DELETE', at))
  expect([await knows(made[1]), await knows(again)]).toEqual([401, 401])
  expect(await studentsOf(name)).toBeUndefined()
})

test('a student has the lab of the link alone, and cannot take it out of the class', async () => {
  const { name, at } = await newClass()
  const [ada, grace] = await linksOf(at, { limits: { max_nodes: 2 } })
  const own = (method: string, path: string, body?: unknown) =>
    ask(ada?.token ?? '', method, `/v2/projects/${ada?.project_id}${path}`, body)
  const seen = await answerOf<LabProject[]>(ask(ada?.token ?? '', 'GET', '/v2/projects'))
  expect(seen).toMatchObject([{ name: `${name}-ada`, class: { name, student: 'ada' } }])
  // By that the page of a student leaves out what is about the service.
  const session = await answerOf<{ projects?: string[] }>(ask(ada?.token ?? '', 'GET', '/v2/session'))
  expect(session.projects).toEqual([ada?.project_id])
  expect((await ask(ada?.token ?? '', 'GET', `/v2/projects/${grace?.project_id}`)).status).toBe(404)
  for (const [method, path] of [
    ...[['GET', '/v2/classes'] as const, ['DELETE', at] as const],
    ...[['POST', `${at}/links`] as const, ['POST', `${at}/reset`] as const],
  ])
    expect((await ask(ada?.token ?? '', method, path)).status).toBe(403)

  await answerOf(own('POST', '/open'))
  expect((await own('POST', '/nodes', { name: 'PC3', node_type: 'pc' })).status).toBe(409)
  const [pc] = await answerOf<LabNode[]>(own('GET', '/nodes'))
  expect((await own('DELETE', `/nodes/${pc?.node_id}`)).status).toBe(204)
  const refused = [403, `This is of the class ${name}: only who may change all projects can delete or rename it`]
  expect(await refusal(own('PUT', '', { ttl_s: 1, ttl_deletes: true }))).toEqual(refused)
  expect(await refusal(own('PUT', '', { name: `${name}-zoe` }))).toEqual(refused)
  for (const [file, ttl_deletes] of [
    [`lab: ${name}-ada`, true],
    [`lab: ${name}-zoe`, false],
  ] as const)
    expect(await refusal(own('PUT', '/topology', { document: `${file}\nnodes: {}`, ttl_s: 60, ttl_deletes }))).toEqual(
      refused,
    )
  expect(await refusal(own('DELETE', ''))).toEqual(refused)
  const [start] = await answerOf<LabSnapshot[]>(own('GET', '/snapshots'))
  expect(start).toMatchObject({ name: 'Start of the class' })
  expect(await refusal(own('DELETE', `/snapshots/${start?.snapshot_id}`))).toEqual(refused)
  const later = await answerOf<LabSnapshot>(own('POST', '/snapshots', { name: 'mine' }))
  expect((await own('DELETE', `/snapshots/${later.snapshot_id}`)).status).toBe(204)
  // Nor by the interface of computes, where the lab is a project and a snapshot is files.
  const there = `/v2/compute/projects/${ada?.project_id}`
  for (const [method, path] of [
    ...[['DELETE', there] as const, ['POST', `${there}/close`] as const],
    ['DELETE', `${there}/snapshots/${start?.snapshot_id}`] as const,
    ['DELETE', `/v1/projects/${ada?.project_id}`] as const,
  ])
    expect([path, (await ask(ada?.token ?? '', method, path)).status]).toEqual([path, 403])
  // A student may begin again without the teacher.
  expect((await own('POST', `/snapshots/${start?.snapshot_id}/restore`)).status).toBe(201)
  expect(await answerOf<LabNode[]>(own('GET', '/nodes'))).toHaveLength(2)
  await ended(ask(teacher, 'DELETE', at))
})

test('the list of labs says who has a lab open, and its feed who comes and goes', async () => {
  const { name, at } = await newClass()
  const [ada] = await linksOf(at)
  const path = `/v2/projects/${ada?.project_id}`
  await answerOf(ask(ada?.token ?? '', 'POST', `${path}/open`))
  const over = new AbortController()
  const feed = await service.fetch('/v2/notifications', {
    headers: { authorization: `Bearer ${teacher}` },
    signal: over.signal,
  })
  const reader = feed.body?.pipeThrough(new TextDecoderStream()).getReader()
  expect((await answerOf<LabProject>(ask(teacher, 'GET', path))).present).toBeUndefined()
  await answerOf(ask(ada?.token ?? '', 'POST', `${path}/presence`, { selection: [] }))
  let text = ''
  while (!/"action":"project.updated".*"present":\["ada"\]/.test(text)) text += (await reader?.read())?.value ?? ''
  over.abort()
  const listed = await answerOf<LabProject[]>(ask(teacher, 'GET', '/v2/projects'))
  expect(listed.find((it) => it.name === `${name}-ada`)).toMatchObject({ present: ['ada'] })
  await answerOf(ask(teacher, 'GET', '/v2/projects'))
  expect((await ask(teacher, 'POST', `${path}/close`)).status).toBe(204)
  expect((await answerOf<LabProject>(ask(teacher, 'GET', path))).present).toBeUndefined()
  await ended(ask(teacher, 'DELETE', at))
})

test('a link ends with its lab, and cannot make it again', async () => {
  const { name, at } = await newClass()
  const [ada] = await linksOf(at)
  const again = { name: 'anything', project_id: ada?.project_id }
  expect(await refusal(ask(ada?.token ?? '', 'POST', '/v2/projects', again))).toEqual([
    ...[403, 'project_id: "ada" has limits, and cannot choose the id of a project'],
  ])
  expect((await ask(teacher, 'DELETE', `/v2/projects/${ada?.project_id}`)).status).toBe(204)
  expect((await ask(ada?.token ?? '', 'GET', '/v2/session')).status).toBe(401)
  expect((await studentsOf(name))?.map(({ student }) => student)).toEqual(['grace'])
  await ended(ask(teacher, 'DELETE', at))
})

test('of links that are made at the same time one stays, and other tokens for the lab stay as they are', async () => {
  const { name, at } = await newClass()
  const [student] = (await studentsOf(name)) ?? []
  const grader = { name: 'grader', role: 'operate', projects: [student?.project_id] }
  const { token } = await answerOf<{ token: string }>(ask(teacher, 'POST', '/v2/tokens', grader))
  expect((await studentsOf(name))?.map((it) => it.token)).toEqual([null, null])
  const made = (await Promise.all([linksOf(at), linksOf(at), linksOf(at)])).flat()
  const statuses = await Promise.all(
    made.map(async (link) => (await ask(link.token, 'GET', `/v2/projects/${link.project_id}`)).status),
  )
  expect(statuses.filter((status) => status === 200)).toHaveLength(2)
  // One that has ended is no link.
  await linksOf(at, { students: ['ada'], expires_in_s: 1 })
  await expect.poll(async () => (await studentsOf(name))?.map((it) => it.token === null)).toEqual([true, false])
  await ended(ask(teacher, 'DELETE', at))
  expect((await ask(token, 'GET', '/v2/session')).status).toBe(200)
})

test('names that look the same are one student, and a class has a name that a path can have', async () => {
  const { name, at } = await newClass()
  const [first] = (await studentsOf(name)) ?? []
  const add = (students: string[]) =>
    ask(teacher, 'POST', '/v2/classes', { name, project_id: first?.project_id, students })
  expect(await ended(add(['Jose\u0301']))).toMatchObject({ status: 'done' })
  expect(await ended(add(['Jos\u00e9']))).toMatchObject({ status: 'done' })
  expect((await studentsOf(name))?.map(({ student }) => student)).toEqual(['ada', 'grace', 'Jos\u00e9'])
  expect((await add(['Jose\u0301', 'jos\u00e9'])).status).toBe(400)
  const dots = ask(teacher, 'POST', '/v2/classes', { name: '..', project_id: first?.project_id, students: ['ada'] })
  expect(await refusal(dots)).toEqual([400, expect.stringContaining('name: a class cannot be named . or ..')])
  const jobs = await Promise.all([ask(teacher, 'POST', `${at}/reset`), ask(teacher, 'DELETE', at)])
  expect(jobs.map(({ status }) => status).sort()).toEqual([201, 409])
  expect((await ask(teacher, 'GET', '/v2/classes')).status).toBe(200)
})
