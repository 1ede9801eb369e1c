import { beforeAll, expect, test } from 'vitest'
import { body, del, newProject, post, sameHost, send } from '../support/api.ts'
import { fileText, iouImage, newRouter, uploadIouImage } from '../support/iou-http.ts'

beforeAll(uploadIouImage)

test('a router is created stopped, with the defaults of every field', async () => {
  const project = await newProject()
  const { view, v2 } = await newRouter(project)
  expect(view).toMatchObject({
    name: 'R1',
    project_id: project.id,
    path: iouImage,
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
    status_reason: null,
  })
  expect(await body(send(v2))).toEqual(view)
  expect(await body(send(`${project.v2}/iou/nodes`))).toEqual([view])
})

test('application ids are unique on the host, and free after the deletion', async () => {
  const input = { name: 'lab', ...sameHost }
  const [one, two] = [await newProject(input), await newProject(input)]
  const [a, b] = [await newRouter(one), await newRouter(two)]
  expect(a.view.application_id).not.toBe(b.view.application_id)
  expect((await del(a.v2)).status).toBe(204)
  const c = await newRouter(two)
  expect(c.view.application_id).not.toBe(b.view.application_id)
})

test('a missing image is a conflict that says which one', async () => {
  const project = await newProject()
  const answer = await post(`${project.v2}/iou/nodes`, { name: 'R1', path: 'missing.bin' })
  expect(answer.status).toBe(409)
  expect(await body(answer)).toMatchObject({ image: 'missing.bin', status: 409 })
  expect(await body(send(`${project.v2}/iou/nodes`))).toEqual([])
})

test('a router without an image does not start in any API version, and its other actions are those of any node', async () => {
  const { v1, v2 } = await newRouter(await newProject())
  for (const at of [v1, v2]) {
    const statuses = []
    for (const action of ['start', 'stop', 'suspend', 'reload', 'resume']) {
      const answer = await post(`${at}/${action}`)
      statuses.push(answer.status)
      if (answer.status === 409)
        expect((await body<{ message: string }>(answer)).message).toMatch(/handlers\.bin|stopped/)
      else expect(await answer.text()).toBe('')
    }
    expect(statuses).toEqual([409, 204, 204, 409, 409])
    expect(await body(send(v2))).toMatchObject({ status: 'stopped', status_reason: expect.stringContaining(iouImage) })
    expect((await post(`${at}/start`, { iourc_content: 7 })).status).toBe(400)
    expect((await post(`${at}/start`, { license_check: 'no' })).status).toBe(400)
  }
})

test('paths of an unknown router, or of one in another project, are 404; paths without a UUID are 400', async () => {
  const [project, other] = [await newProject(), await newProject()]
  const { v1, v2, id } = await newRouter(project)
  const nio = { type: 'nio_udp', lport: 41_000, rhost: '127.0.0.1', rport: 41_001 }
  const requests: readonly (readonly [method: string, path: string, body?: object])[] = [
    ['GET', ''],
    ['PUT', '', { name: 'R2' }],
    ['POST', '/start', {}],
    ['POST', '/stop', {}],
    ['POST', '/suspend', {}],
    ['POST', '/reload', {}],
    ['GET', '/configs'],
    ['POST', '/configs/save', {}],
    ['POST', '/adapters/0/ports/0/nio', nio],
    ['DELETE', '/adapters/0/ports/0/nio'],
    ['POST', '/adapters/0/ports/0/start_capture', { capture_file_name: 'a.pcap' }],
    ['POST', '/adapters/0/ports/0/stop_capture', {}],
    ['DELETE', ''],
  ]
  const statusesOf = (at: string) =>
    Promise.all(
      requests.map(async ([method, path, input]) => {
        const answer = await send(at + path, { method, ...(input !== undefined && { body: JSON.stringify(input) }) })
        expect(await answer.json()).toEqual({ message: expect.any(String), status: answer.status })
        return answer.status
      }),
    )
  for (const at of [v1, v2]) {
    expect(new Set(await statusesOf(at.replace(id, crypto.randomUUID())))).toEqual(new Set([404]))
    expect(new Set(await statusesOf(at.replace(project.id, other.id)))).toEqual(new Set([404]))
    expect(new Set(await statusesOf(at.replace(project.id, crypto.randomUUID())))).toEqual(new Set([404]))
    expect(new Set(await statusesOf(at.replace(id, 'R1')))).toEqual(new Set([400]))
    expect(new Set(await statusesOf(at.replace(project.id, '1')))).toEqual(new Set([400]))
  }
  expect((await send(`${v1}/initial_config`.replace(id, crypto.randomUUID()))).status).toBe(404)
  expect((await send(v2.replace(id, id.toUpperCase()))).status).toBe(200)
})

test('a copy has its own id and application id, and the files of its source', async () => {
  const project = await newProject()
  const a = await newRouter(project, { ram: 333, startup_config_content: 'hostname %h\n' })
  const b = await newRouter(project, { name: 'R2' })
  const copy = await post(`${a.v2}/duplicate`, { destination_node_id: b.id })
  expect(copy.status).toBe(201)
  expect(await body(copy)).toMatchObject({ node_id: b.id, name: 'R2', ram: 333, application_id: b.view.application_id })
  expect(await fileText(`${b.files}/startup-config.cfg`)).toBe('hostname R2\n')
  expect((await post(`${a.v1}/duplicate`, { destination_vm_id: b.id })).status).toBe(201)
  expect((await post(`${a.v2}/duplicate`, { destination_node_id: a.id })).status).toBe(400)
  expect((await post(`${a.v2}/duplicate`, { destination_node_id: crypto.randomUUID() })).status).toBe(404)
  expect((await post(`${a.v2}/duplicate`, {})).status).toBe(400)
})
