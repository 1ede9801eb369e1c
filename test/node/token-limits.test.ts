import { afterAll, beforeAll, expect, test } from 'vitest'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabNode } from '../../src/model/lab/node.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const adminToken = 'admin-of-tests-0123456789'
let service: TestService
beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded', token: adminToken })
})
afterAll(() => service?.close())

const ask = (token: string, method: string, path: string, body?: unknown) =>
  service.fetch(path, {
    method,
    headers: { authorization: `Bearer ${token}` },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })

async function made<T>(answer: Promise<Response>): Promise<T> {
  const response = await answer
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as T
}

const refusal = async (answer: Promise<Response>) => {
  const response = await answer
  const { message } = (await response.json()) as { message: string }
  return { status: response.status, code: response.headers.get('x-patchbay-error'), message }
}

async function tokenOf(limits: object): Promise<string> {
  const input = { name: 'student', role: 'operate', projects: ['class-*'], limits }
  return (await made<{ token: string }>(ask(adminToken, 'POST', '/v2/tokens', input))).token
}

/** A lab of the student with so many pcs, which the administrator makes. */
async function labWith(pcs: number) {
  const name = `class-${crypto.randomUUID().slice(0, 8)}`
  const { project_id } = await made<LabProject>(ask(adminToken, 'POST', '/v2/projects', { name }))
  const at = `/v2/projects/${project_id}`
  const nodes: LabNode[] = []
  for (let index = 1; index <= pcs; index++)
    nodes.push(await made(ask(adminToken, 'POST', `${at}/nodes`, { name: `PC${index}`, node_type: 'pc' })))
  return { project_id, at, nodes }
}

test('the limits of a token are shown with it, and an administrator has none', async () => {
  const limits = { max_nodes: 3, max_running: 2, max_ram_mb: 1024 }
  const input = { name: 'shown', role: 'operate', limits }
  expect(await made(ask(adminToken, 'POST', '/v2/tokens', input))).toMatchObject({ limits })
  const all = await made<{ name: string; limits?: object }[]>(ask(adminToken, 'GET', '/v2/tokens'))
  expect(all.find(({ name }) => name === 'shown')?.limits).toEqual(limits)
  expect(await refusal(ask(adminToken, 'POST', '/v2/tokens', { ...input, role: 'admin' }))).toMatchObject({
    status: 400,
    message: expect.stringContaining('limits: expected for tokens with the role read or operate') as string,
  })
})

test('a lab gets no more nodes from a client than its token allows, also by requests at once, a file, a copy or an archive', async () => {
  const { at, project_id } = await labWith(1)
  const token = await tokenOf({ max_nodes: 3 })
  const pc = { name: 'PC', node_type: 'pc' }
  const answers = await Promise.all([1, 2, 3, 4].map(() => ask(token, 'POST', `${at}/nodes`, pc)))
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409])
  expect(await refusal(ask(token, 'POST', `${at}/nodes`, pc))).toEqual({
    status: 409,
    code: 'limit-reached',
    message: 'Your token is limited to 3 nodes in a lab, and it would have 4',
  })
  const [plain, placeholder] = ['NEW: { kind: pc }', 'ASA: { kind: machine, image: asav.qcow2 }']
  for (const [node, flags] of [
    [plain, ''],
    [placeholder, '&partial=true'],
  ] as const) {
    const applied = await service.fetch(`${at}/topology?take_over=true${flags}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/yaml' },
      body: `lab: class-file\nversion: 1\nnodes:\n  ${node}\n`,
    })
    const { job_id } = (await applied.json()) as { job_id: string }
    const job = () => made<LabJob>(ask(token, 'GET', `/v2/jobs/${job_id}`))
    await expect.poll(async () => (await job()).status).toBe('failed')
    expect((await job()).reason).toContain('Your token is limited to 3 nodes')
  }
  // What an administrator adds is theirs; a copy of all of it is not.
  await made(ask(adminToken, 'POST', `${at}/nodes`, pc))
  expect((await refusal(ask(token, 'POST', `${at}/duplicate`, { name: 'class-copy' }))).code).toBe('limit-reached')
  const archive = await (await ask(adminToken, 'GET', `${at}/export`)).arrayBuffer()
  const imported = await service.fetch(`/v2/projects/${crypto.randomUUID()}/import?name=class-import`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body: archive,
  })
  expect(imported.headers.get('x-patchbay-error')).toBe('limit-reached')
  const nodes = await made<LabNode[]>(ask(token, 'GET', `/v2/projects/${project_id}/nodes`))
  expect(nodes).toHaveLength(4)
})

test('a client runs no more nodes than its token allows: a start of all starts some, and says which not and why', async () => {
  const { at, nodes } = await labWith(4)
  const token = await tokenOf({ max_running: 2 })
  const answer = await ask(token, 'POST', `${at}/nodes/start`)
  expect(await answer.json()).toMatchObject({
    message: expect.stringContaining('Your token is limited to 2 running nodes in a lab, and 2 run') as string,
  })
  const job = (await made<LabJob[]>(ask(token, 'GET', '/v2/jobs'))).at(-1)
  expect(job).toMatchObject({ done: 2, failed: 2 })
  const runs = async () =>
    (await made<LabNode[]>(ask(token, 'GET', `${at}/nodes`))).filter(({ status }) => status === 'started')
  expect(await runs()).toHaveLength(2)
  const [first] = await runs()
  const last = nodes.find(({ node_id }) => node_id !== first?.node_id) as LabNode
  // Nor is a node that is stopped started by a reload, while one that runs may be reloaded.
  const stopped = (await made<LabNode[]>(ask(token, 'GET', `${at}/nodes`))).find(({ status }) => status === 'stopped')
  expect((await refusal(ask(token, 'POST', `${at}/nodes/${stopped?.node_id}/reload`))).code).toBe('limit-reached')
  expect((await ask(token, 'POST', `${at}/nodes/${first?.node_id}/reload`)).status).toBe(200)
  expect((await ask(token, 'POST', `${at}/nodes/${first?.node_id}/stop`)).status).toBe(200)
  expect((await ask(token, 'POST', `${at}/nodes/${stopped?.node_id}/start`)).status).toBe(200)
  // An administrator may start what is left.
  expect((await ask(adminToken, 'POST', `${at}/nodes/start`)).status).toBe(204)
  expect(await runs()).toHaveLength(4)
  expect(last.node_type).toBe('pc')
})

test('a client with limits makes and starts nodes in labs only, where they count', async () => {
  const { at, project_id, nodes } = await labWith(1)
  const token = await tokenOf({ max_running: 1 })
  const there = `/v2/compute/projects/${project_id}/pc/nodes`
  for (const [method, path] of [
    ['POST', there],
    ['POST', `${there}/${nodes[0]?.node_id}/start`],
    ['POST', `/v1/projects/${project_id}/pc/vms`],
    ['POST', `/v2/computes/local/projects/${project_id}/pc/nodes`],
    ['POST', `/v2/compute/projects/${project_id}/snapshots/${crypto.randomUUID()}/restore`],
  ] as const)
    expect(await refusal(ask(token, method, path, { name: 'PC9' })), path).toMatchObject({
      status: 403,
      message: expect.stringContaining('works in labs alone') as string,
    })
  expect((await ask(token, 'GET', there)).status).toBe(200)
  expect((await ask(token, 'POST', `${at}/nodes/start`)).status).toBe(204)
})

testWith(requireProgram('qemu-system-x86_64'))(
  'the memory of nodes that run is limited, too, and a session of the token has its limits',
  async () => {
    const { at } = await labWith(0)
    const machine = (name: string, ram: number) => ({
      name,
      node_type: 'machine-emulator',
      properties: { platform: 'x86_64', ram },
    })
    const small = await made<LabNode>(ask(adminToken, 'POST', `${at}/nodes`, machine('small', 256)))
    const large = await made<LabNode>(ask(adminToken, 'POST', `${at}/nodes`, machine('large', 2048)))
    expect([small, large].map(({ properties }) => properties.ram)).toEqual([256, 2048])
    const token = await tokenOf({ max_ram_mb: 1024 })
    const refused = {
      status: 409,
      code: 'limit-reached',
      message: expect.stringContaining('large needs 2048 MB: stop a node first, or give it less') as string,
    }
    expect(await refusal(ask(token, 'POST', `${at}/nodes/${large.node_id}/start`))).toEqual(refused)
    const session = await service.fetch('/v2/session', { method: 'POST', body: JSON.stringify({ token }) })
    const cookie = session.headers.get('set-cookie')?.split(';')[0] ?? ''
    const headers = { cookie, 'sec-fetch-site': 'same-origin' }
    const bySession = service.fetch(`${at}/nodes/${large.node_id}/start`, { method: 'POST', headers })
    expect(await refusal(bySession)).toEqual(refused)
  },
)
