import { expect, inject, test } from 'vitest'
import { body, del, newPc, newProject, post, put, sameHost, send } from '../support/api.ts'

test('a v1 project is created, read, changed and deleted, with the fields of v1', async () => {
  const created = await post('/v1/projects', { name: 'lab' })
  expect(created.status).toBe(201)
  const project = await body(created)
  expect(project).toEqual({
    project_id: expect.any(String),
    name: 'lab',
    path: `${project.location}/${project.project_id}`,
    location: expect.any(String),
    temporary: false,
  })
  const path = `/v1/projects/${project.project_id}`
  const read = await send(path)
  expect(read.headers.get('X-ROUTE')).toBe('/v1/projects/{project_id}')
  expect(read.headers.get('Access-Control-Allow-Origin')).toBe('*')
  expect(await read.json()).toEqual(project)
  expect(await body(put(path, { name: 'other' }))).toEqual({ ...project, name: 'other' })
  expect(await body(put(path, { name: null }))).toMatchObject({ name: 'other' })
  expect((await del(path)).status).toBe(204)
  expect((await send(path)).status).toBe(404)
})

test('v1 refuses the id of an open project, v2 answers with that project', async () => {
  const project_id = crypto.randomUUID()
  expect((await post('/v1/projects', { project_id, name: 'one' })).status).toBe(201)
  const again = await post('/v1/projects', { project_id: project_id.toUpperCase() })
  expect(again.status).toBe(409)
  expect(await again.json()).toEqual({ message: expect.stringContaining(project_id), status: 409 })
  const v2 = await post('/v2/compute/projects', { project_id, name: 'two' })
  expect(v2.status).toBe(201)
  expect(await v2.json()).toEqual({ project_id, name: 'one', variables: null })
})

test('a project that was created by one API version is shown by the other', async () => {
  const project = await newProject()
  const listed = await body<{ project_id: string }[]>(send('/v1/projects'))
  expect(listed.map((it) => it.project_id)).toContain(project.id)
  const pc = await newPc(project)
  expect(await body(send(`${project.v1}/pc/vms/${pc.id}`))).toMatchObject({ vm_id: pc.id, status: 'stopped' })
})

test('a closed project is shown as closed, and a second close is answered with that', async () => {
  const project = await newProject()
  expect((await post(`${project.v1}/close`)).status).toBe(204)
  expect((await post(`${project.v1}/close`)).status).toBe(404)
  expect(await body(send(project.v2))).toMatchObject({ status: 'closed' })
})

test('a closed project is opened again with its nodes and their consoles; v1 may create them again once', async () => {
  const project = await newProject()
  const pc = await newPc(project, { name: 'PC7' })
  const { console } = await body<{ console: number }>(send(pc.path))
  await post(`${project.v1}/close`)
  await post('/v1/projects', { project_id: project.id })
  expect(await body(send(pc.path))).toMatchObject({ name: 'PC7', console })
  const taken = await post(`${project.v1}/pc/vms`, { name: 'PC8', vm_id: pc.id })
  expect(taken.status).toBe(201)
  expect(await taken.json()).toMatchObject({ name: 'PC8', vm_id: pc.id, console })
  expect((await post(`${project.v1}/pc/vms`, { name: 'PC9', vm_id: pc.id })).status).toBe(409)
})

test('a commit is answered without a body, also when there are no changes', async () => {
  const project = await newProject()
  const answer = await post(`${project.v1}/commit`)
  expect(answer.status).toBe(204)
  expect(await answer.text()).toBe('')
})

test('an instance deleted in v1 leaves its files until the commit', async () => {
  const project = await newProject()
  const pc = await newPc(project, { startup_script: 'echo hi' })
  const paths = async () => (await body<{ path: string }[]>(send(`${project.v1}/files`))).map(({ path }) => path)
  const script = `project-files/pc/${pc.id}/startup.vpc`
  expect(await paths()).toContain(script)
  expect((await del(`${project.v1}/pc/vms/${pc.id}`)).status).toBe(204)
  expect(await paths()).toContain(script)
  await post(`${project.v1}/commit`)
  expect(await paths()).not.toContain(script)
})

test('variables are kept by a change that does not name them', async () => {
  const project = await newProject({ name: 'lab', variables: [{ name: 'AS', value: '65000' }], scene_width: 2000 })
  expect(await body(put(project.v2, { name: 'renamed' }))).toEqual({
    project_id: project.id,
    name: 'renamed',
    variables: [{ name: 'AS', value: '65000' }],
  })
})

test('files are written, listed with their sums, and read back', async () => {
  const project = await newProject()
  const written = await send(`${project.v2}/files/configs/a%20b.txt`, { method: 'POST', body: 'hello' })
  expect(written.status).toBe(200)
  expect(await body(send(`${project.v2}/files`))).toEqual([
    { path: 'configs/a b.txt', md5sum: '5d41402abc4b2a76b9719d911017c592' },
  ])
  const read = await send(`${project.v1}/files/configs/a%20b.txt`)
  expect(read.headers.get('content-type')).toBe('application/octet-stream')
  expect(read.headers.get('x-content-type-options')).toBe('nosniff')
  expect(await read.text()).toBe('hello')
  expect((await send(`${project.v1}/files/nothing`)).status).toBe(404)
  expect((await send(`${project.v1}/files/no/parent`, { method: 'POST', body: 'x' })).status).toBe(404)
  expect((await send(`${project.v2}/files/.hidden`, { method: 'POST', body: 'dot' })).status).toBe(200)
  expect(await (await send(`${project.v2}/files/.hidden`)).text()).toBe('dot')
})

test.for([
  '..%2f..%2fetc%2fpasswd',
  '%2e%2e%2f%2e%2e%2fetc%2fpasswd',
  '/etc/passwd',
  '//etc/passwd',
  '%2fetc%2fpasswd',
  'a/..%2f..%2f..%2fetc/passwd',
  '..%5c..%5cetc',
  'x%00.txt',
  '.patchbay/project.json',
  'a%2f..%2f.patchbay%2fproject.json',
])('no file outside the project is reached by %s', async (path) => {
  const project = await newProject()
  for (const init of [{}, { method: 'POST', body: 'x' }]) {
    const answer = await send(`${project.v2}/files/${path}`, init)
    expect([400, 403, 404]).toContain(answer.status)
    expect(await answer.json()).toMatchObject({ status: answer.status })
  }
})

test('a UDP port is reserved and shown', async () => {
  const project = await newProject()
  const answer = await post(`${project.v1}/ports/udp`)
  expect(answer.status).toBe(201)
  const { udp_port } = await body<{ udp_port: number }>(answer)
  const ports = await body<{ udp_ports: number[] }>(send('/v2/compute/network/ports'))
  expect(ports.udp_ports).toContain(udp_port)
  await del(project.v2)
  expect((await body<{ udp_ports: number[] }>(send('/v2/compute/network/ports'))).udp_ports).not.toContain(udp_port)
})

test('a project is deleted while files are uploaded to it, and its id can be used again', async () => {
  const project_id = crypto.randomUUID()
  const path = `/v2/compute/projects/${project_id}`
  const content = 'x'.repeat(100_000)
  const answers = new Set<number>()
  // Through a gateway a round takes several times as long.
  for (let round = 0; round < (inject('isWorker') ? 10 : 40); round++) {
    expect((await post('/v2/compute/projects', { project_id, name: 'lab', ...sameHost })).status).toBe(201)
    const uploads = Array.from({ length: 4 }, (_, index) => post(`${path}/files/deep/er/${round}/${index}`, content))
    // Some of them have begun by then.
    if (round % 2 === 0) await Promise.race(uploads)
    const deleted = await del(path)
    expect([deleted.status, await deleted.text()]).toEqual([204, ''])
    for (const upload of uploads) answers.add((await upload).status)
    expect((await send(path)).status).toBe(404)
  }
  expect([200, 201, 204, 404, 409]).toEqual(expect.arrayContaining([...answers]))
})

test('a closed project is shown as closed in both API versions, and actions on it say how to open it', async () => {
  const open = await newProject({ name: 'open', ...sameHost })
  const closed = await newProject({ name: 'shut', variables: [{ name: 'A', value: 'b' }], ...sameHost })
  const pc = await newPc(closed)
  expect((await post(`${closed.v2}/close`)).status).toBe(204)

  const ids = async (path: string) => (await body<{ project_id: string }[]>(send(path))).map((it) => it.project_id)
  for (const version of ['/v1/projects', '/v2/compute/projects']) {
    const [usual, ofOpen, ofClosed, all] = await Promise.all(
      ['', '?status=open', '?status=closed', '?status=all'].map((query) => ids(version + query)),
    )
    for (const list of [usual, ofOpen, all]) expect(list).toContain(open.id)
    for (const list of [ofClosed, all]) expect(list?.filter((id) => id === closed.id)).toEqual([closed.id])
    for (const list of [usual, ofOpen]) expect(list).not.toContain(closed.id)
    expect(ofClosed).not.toContain(open.id)
    expect((await send(`${version}?status=shut`)).status).toBe(400)
  }
  expect(await body(send(closed.v2))).toEqual({
    project_id: closed.id,
    name: 'shut',
    variables: [{ name: 'A', value: 'b' }],
    status: 'closed',
  })
  expect(await body(send(closed.v1))).toMatchObject({ project_id: closed.id, name: 'shut', status: 'closed' })
  expect(await body(send(`${closed.v2}?view=full`))).toMatchObject({ temporary: false, status: 'closed' })
  expect(await body(send(`${open.v2}?view=full`))).toMatchObject({ status: 'open' })

  for (const answer of [
    put(closed.v2, { name: 'other' }),
    del(closed.v1),
    post(`${closed.v2}/close`),
    send(`${closed.v2}/files`),
    send(`${closed.v2}/pc/nodes`),
    send(pc.path),
    send(`${closed.v2}/notifications`),
    post(`${closed.v2}/ports/udp`),
  ]) {
    expect(await body(answer)).toEqual({
      message: expect.stringMatching(/is closed; open it first with POST/),
      status: 404,
    })
  }

  expect((await post('/v2/compute/projects', { project_id: closed.id, name: null })).status).toBe(201)
  expect(await body(send(closed.v2))).not.toHaveProperty('status')
  expect((await send(pc.path)).status).toBe(200)
  expect((await del(closed.v2)).status).toBe(204)
  expect((await send(closed.v2)).status).toBe(404)
  expect(await ids('/v2/compute/projects?status=all')).not.toContain(closed.id)
})

test('messages about closed and unknown projects name the paths of the version that asks', async () => {
  const { id, v1, v2 } = await newProject()
  await post(`${v2}/close`)
  const messageOf = async (path: string) => (await body<{ message: string }>(send(path))).message
  const [closed, unknown] = [`${v1}/pc/vms/${crypto.randomUUID()}`, `/v1/projects/${crypto.randomUUID()}`]
  expect(await messageOf(closed)).toContain('POST /v1/projects ')
  // A gateway has none of its own.
  expect(await messageOf(unknown)).toMatch(/GET \/v1\/projects |no compute has an open project/)
  expect(await messageOf(`${v2}/pc/nodes`)).toContain('POST /v2/compute/projects ')
  await post('/v2/compute/projects', { project_id: id, name: 'lab' })
  await del(v2)
})
