import { beforeAll, expect, test } from 'vitest'
import { body, del, newProject, post, put, send } from '../support/api.ts'

/** What an image of this kind begins with; nothing here is started. */
const header = Buffer.alloc(64)
Buffer.from('7f454c46010101', 'hex').copy(header)
const image = 'handlers.bin'

beforeAll(async () => {
  expect((await send(`/v2/compute/iou/images/${image}`, { method: 'POST', body: header })).status).toBe(204)
})

async function newRouter(project: { v2: string }, input: Record<string, unknown> = {}) {
  const answer = await post(`${project.v2}/iou/nodes`, { name: 'R1', path: image, ...input })
  expect(answer.status).toBe(201)
  const node = await body<Record<string, unknown> & { node_id: string; application_id: number }>(answer)
  return { ...node, at: `${project.v2}/iou/nodes/${node.node_id}` }
}

test('a router is created stopped, with the defaults of every field', async () => {
  const project = await newProject()
  const { at, ...node } = await newRouter(project)
  expect(node).toMatchObject({
    name: 'R1',
    project_id: project.id,
    path: image,
    md5sum: expect.stringMatching(/^[0-9a-f]{32}$/),
    status: 'stopped',
    console: expect.any(Number),
    console_type: 'telnet',
    ethernet_adapters: 2,
    serial_adapters: 2,
    ram: 256,
    nvram: 128,
    l1_keepalives: false,
    use_default_iou_values: true,
    usage: '',
    command_line: '',
    startup_config: 'startup-config.cfg',
    private_config: 'private-config.cfg',
    iourc_path: null,
    status_reason: null,
  })
  expect(await body(send(at))).toEqual(node)
  expect(await body(send(`${project.v2}/iou/nodes`))).toEqual([node])
})

test('application ids are unique on the host, and free again', async () => {
  const [one, two] = [await newProject(), await newProject()]
  const [a, b] = [await newRouter(one), await newRouter(two)]
  expect(a.application_id).not.toBe(b.application_id)
  expect((await del(a.at)).status).toBe(204)
  const c = await newRouter(two)
  expect(c.application_id).not.toBe(b.application_id)
  expect(c.application_id).toBeLessThanOrEqual(a.application_id)
})

test('an image that is not there is a conflict that says which one', async () => {
  const project = await newProject()
  const answer = await post(`${project.v2}/iou/nodes`, { name: 'R1', path: 'missing.bin' })
  expect(answer.status).toBe(409)
  expect(await body(answer)).toMatchObject({ image: 'missing.bin', status: 409 })
  expect(await body(send(`${project.v2}/iou/nodes`))).toEqual([])
})

test('configurations are files of the node, with its name in them, and follow its name', async () => {
  const project = await newProject()
  const { at, node_id } = await newRouter(project, { startup_config_content: 'hostname %h\nbanner R1 of R1\n' })
  const file = `${project.v2}/files/project-files/iou/${node_id}/startup-config.cfg`
  expect(await (await send(file)).text()).toBe('hostname R1\nbanner R1 of R1\n')
  expect((await put(at, { name: 'R2' })).status).toBe(200)
  expect(await (await send(file)).text()).toBe('hostname R2\nbanner R1 of R1\n')
  expect((await put(at, { startup_config_content: '' })).status).toBe(200)
  expect(await (await send(file)).text()).toBe('hostname R2\nbanner R1 of R1\n')
})

test('ethernet adapters come first, then serial ones, each with four ports', async () => {
  const project = await newProject()
  const { at } = await newRouter(project, { ethernet_adapters: 1, serial_adapters: 1 })
  const nio = (adapter: number, port: number) =>
    post(`${at}/adapters/${adapter}/ports/${port}/nio`, { type: 'nio_udp', lport: 1, rhost: '127.0.0.1', rport: 2 })
  for (const [adapter, port] of [
    [2, 0],
    [0, 4],
  ] as const) {
    expect((await nio(adapter, port)).status).toBe(404)
  }
  expect(
    (await post(`${project.v2}/iou/nodes`, { name: 'R9', path: image, ethernet_adapters: 12, serial_adapters: 5 }))
      .status,
  ).toBe(409)
})

test('v1 shows the same router in its own words', async () => {
  const project = await newProject()
  const answer = await post(`${project.v1}/iou/vms`, {
    name: 'R1',
    path: image,
    initial_config_content: 'hostname %h\n',
  })
  expect(answer.status).toBe(201)
  const { vm_id, ...instance } = await body(answer)
  expect(instance).toMatchObject({
    path: image,
    initial_config: `project-files/iou/${vm_id}/startup-config.cfg`,
    iourc_path: null,
  })
  expect('status' in instance).toBe(false)
  expect(await body(send(`${project.v2}/iou/nodes/${vm_id}`))).toMatchObject({ name: 'R1', status: 'stopped' })
  expect((await post(`${project.v1}/iou/vms`, { name: 'R1', path: image, vm_id })).status).toBe(409)
  expect((await put(`${project.v1}/iou/vms/${vm_id}`, { ram: null, ethernet_adapters: 4 })).status).toBe(200)
  expect(await body(send(`${project.v1}/iou/vms/${vm_id}`))).toMatchObject({ ram: 256, ethernet_adapters: 4 })
  expect((await del(`${project.v1}/iou/vms/${vm_id}`)).status).toBe(204)
})

test('what a licence says is never shown', async () => {
  const project = await newProject()
  const { at } = await newRouter(project, { iourc_content: '[license]\nhost = 0123456789abcdef;\n' })
  expect(JSON.stringify(await body(send(at)))).not.toContain('0123456789abcdef')
})
