import { beforeAll, describe, expect, inject, test } from 'vitest'
import { idling, ring } from '../stand-in/mips/programs.ts'
import { body, del, newProject, post, put, send } from '../support/api.ts'
import { hex } from '../support/dynamips.ts'
import { requireProgram } from '../support/require.ts'
import { provided, testWith } from '../support/test-with.ts'

const needsDynamips = requireProgram('dynamips')
const image = 'handlers-router.image'
const images = '/v2/compute/dynamips/images'

const store = (name: string, content: Uint8Array, base = images) =>
  send(`${base}/${name}`, { method: 'POST', body: Buffer.from(content) })

beforeAll(async () => {
  expect((await store(image, idling)).status).toBe(204)
})

async function newRouter(project: { v2: string }, input: Record<string, unknown> = {}) {
  const answer = await post(`${project.v2}/dynamips/nodes`, { name: 'R1', platform: 'c7200', image, ram: 64, ...input })
  if (answer.status !== 201) throw new Error(await answer.text())
  const node = await body<Record<string, unknown> & { node_id: string }>(answer)
  return { ...node, at: `${project.v2}/dynamips/nodes/${node.node_id}` }
}

const fault = async (answer: Response | Promise<Response>) => {
  const { status, ...rest } = await body<{ status: number; message: string; image?: string }>(answer)
  return { status, ...rest }
}

describe('images', () => {
  const listed = async (path: string) => (await body<{ path: string }[]>(send(path))).map((it) => it.path)

  test('are files that begin as IOS images do, in both API versions', async () => {
    const elf = Buffer.alloc(64)
    Buffer.from('7f454c46010101', 'hex').copy(elf)
    for (const [name, content] of [
      ['other.bin', elf],
      ['notes.txt', Buffer.from('hostname R1\n')],
      ['cut.bin', idling.subarray(0, 51)],
    ] as const) {
      expect((await store(name, content)).status).toBe(204)
    }
    expect((await store('v1.bin', idling, '/v1/dynamips/vms')).status).toBe(204)
    expect(await listed(images)).toEqual([image, 'v1.bin'])
    expect(await listed('/v1/dynamips/vms')).toEqual([image, 'v1.bin'])
    expect(Buffer.from(await (await send(`${images}/v1.bin`)).arrayBuffer())).toEqual(idling)
  })
})

describe('a router', () => {
  test('is created stopped, with the memory of its platform', async () => {
    const project = await newProject()
    const { at, ...node } = await newRouter(project, { ram: null, platform: 'c3745' })
    expect(node).toEqual({
      node_id: expect.any(String),
      project_id: project.id,
      name: 'R1',
      node_directory: expect.stringContaining(`dynamips/${node.node_id}`),
      status: 'stopped',
      console: expect.any(Number),
      console_host: expect.any(String),
      console_type: 'telnet',
      command_line: '',
      status_reason: null,
      platform: 'c3745',
      image,
      ram: 256,
      idlepc: null,
      usage: '',
      ...{ chassis: '', slot0: 'GT96100-FE', slot1: '', slot2: '', slot3: '', slot4: '', slot5: '', slot6: '' },
      ...{ wic0: '', wic1: '', wic2: '', npe: 'npe-400', nvram: 0, iomem: 0, disk0: 0, disk1: 0 },
      mac_addr: `c4${node.node_id.slice(-6, -4)}.${node.node_id.slice(-4)}.0000`,
    })
    expect(await body(send(at))).toEqual(node)
    expect(await body(send(`${project.v2}/dynamips/nodes`))).toEqual([node])
  })

  test('can be changed, and an empty text removes the idle PC', async () => {
    const project = await newProject()
    const { at } = await newRouter(project)
    const changes = { name: 'R2', ram: 128, idlepc: '0x600ABCD0', usage: 'for tests', slot2: 'PA-8T' }
    expect(await body(put(at, changes))).toMatchObject({ ...changes, idlepc: '0x600abcd0', slot0: 'C7200-IO-FE' })
    expect(await body(put(at, { slot2: '', mac_addr: 'CA12.3456.0000' }))).toMatchObject({
      ...{ slot2: '', mac_addr: 'ca12.3456.0000' },
    })
    expect(await body(put(at, { console_type: 'none' }))).toMatchObject({ console: null, console_type: 'none' })
    expect(await body(put(at, { idlepc: null, ram: null }))).toMatchObject({ idlepc: '0x600abcd0', ram: 128 })
    expect(await body(put(at, { idlepc: '' }))).toMatchObject({ idlepc: null })
  })

  test('has the member names of v1 in v1', async () => {
    const project = await newProject()
    const vms = `${project.v1}/dynamips/vms`
    const answer = await post(vms, { name: 'R1', platform: 'c7200', image, ram: 64 })
    expect(answer.status).toBe(201)
    const instance = await body<{ vm_id: string }>(answer)
    expect(instance).toMatchObject({ name: 'R1', platform: 'c7200', ram: 64, idlepc: null, status: 'stopped' })
    expect('console_type' in instance || 'node_id' in instance).toBe(false)
    expect(await body(send(`${project.v2}/dynamips/nodes/${instance.vm_id}`))).toMatchObject({ name: 'R1' })
    expect(await body(put(`${vms}/${instance.vm_id}`, { idlepc: '0x60008120' }))).toMatchObject({
      idlepc: '0x60008120',
    })
    expect((await del(`${vms}/${instance.vm_id}`)).status).toBe(204)
  })

  test('is copied with its settings', async () => {
    const project = await newProject()
    const [from, to] = [await newRouter(project, { idlepc: '0x60008120' }), await newRouter(project, { name: 'R2' })]
    expect((await post(`${from.at}/duplicate`, { destination_node_id: to.node_id })).status).toBe(201)
    expect(await body(send(to.at))).toMatchObject({ name: 'R2', idlepc: '0x60008120', status: 'stopped' })
  })

  test.for([
    ['platform', { platform: 'c9000' }],
    ['ram', { ram: 5000 }],
    ['idlepc', { idlepc: 'soon' }],
    ['image', { image: '' }],
    ['console_type', { console_type: 'vnc' }],
    ['adapters', { adapters: 2 }],
    ['slot1', { slot1: 'NM-4T' }],
    ['slot9', { slot9: 'PA-8T' }],
    ['wic0', { wic0: 'WIC-2T' }],
    ['chassis', { chassis: '3640' }],
    ['mac_addr', { mac_addr: '00:11:22:33:44:55' }],
  ] as const)('with a wrong %s is refused', async ([field, input]) => {
    const project = await newProject()
    const answer = post(`${project.v2}/dynamips/nodes`, { name: 'R1', platform: 'c7200', image, ...input })
    expect(await fault(answer)).toMatchObject({
      status: 400,
      message: expect.stringMatching(new RegExp(`^${field}: `)),
    })
    expect(await body(send(`${project.v2}/dynamips/nodes`))).toEqual([])
  })

  test('needs an existing file that is an image', async () => {
    const project = await newProject()
    const create = (name: string) =>
      fault(post(`${project.v2}/dynamips/nodes`, { name: 'R1', platform: 'c7200', image: name }))
    expect(await create('missing.bin')).toMatchObject({ status: 409, image: 'missing.bin' })
    expect((await store('text.bin', Buffer.from('no image'))).status).toBe(204)
    expect(await create('text.bin')).toEqual({ status: 409, message: expect.stringContaining('is not an IOS image') })
    expect(await body(send(`${project.v2}/dynamips/nodes`))).toEqual([])
  })

  test('has the ports of its cards, and no others', async () => {
    const { at } = await newRouter(await newProject(), { slot3: 'PA-2FE-TX' })
    const nio = { type: 'nio_udp', lport: 1, rhost: '127.0.0.1', rport: 2 }
    const faultOf = async (port: string) =>
      (await fault(post(`${at}/adapters/${port.replace('/', '/ports/')}/nio`, nio))).message
    expect(await faultOf('3/2')).toContain('port_number: adapter 3 has no port 2')
    expect(await faultOf('1/0')).toContain('adapter_number: the node has no adapter 1')
  })

  testWith(needsDynamips)(
    'keeps its cards while it runs, and its console when it was started without one',
    async () => {
      const { at } = await newRouter(await newProject(), { idlepc: hex(ring[3] ?? 0), nvram: 32, console_type: 'none' })
      expect((await post(`${at}/start`)).status).toBe(200)
      for (const [changes, status] of [
        [{ slot1: 'PA-8T' }, 409],
        [{ console_type: 'telnet' }, 409],
        [{ slot1: '', ram: 128, slot0: 'C7200-IO-FE', startup_config_content: 'hostname %h\n' }, 200],
        // There is no room for it in the NVRAM, which keeps what it has.
        [{ startup_config_content: 'x'.repeat(40_000) }, 409],
      ] as const)
        expect([Object.keys(changes), (await put(at, changes)).status]).toEqual([Object.keys(changes), status])
      const configs = { startup_config_content: 'hostname R1\n' }
      expect(await body(send(`${at}/configs`))).toEqual(configs)
      expect((await post(`${at}/stop`)).status).toBe(204)
      expect(await body(send(`${at}/configs`))).toEqual(configs)
      expect(await body(send(at))).toMatchObject({ ram: 128, slot1: '', console_type: 'none', console: null })
    },
  )

  testWith(needsDynamips)('runs, stands still and goes on', async () => {
    const { at } = await newRouter(await newProject(), { idlepc: hex(ring[3] ?? 0) })
    const status = async () => (await body(send(at))).status
    expect(await body(post(`${at}/start`))).toMatchObject({
      status: 'started',
      command_line: expect.stringMatching(/dynamips -N1 --noctrl .*-H 127(\.\d+){3}:\d+$/),
    })
    for (const [action, expected] of [
      ['suspend', 'suspended'],
      ['resume', 'started'],
      ['reload', 'started'],
      ['suspend', 'suspended'],
      ['reload', 'started'],
      ['stop', 'stopped'],
    ] as const) {
      expect((await post(`${at}/${action}`)).status).toBe(204)
      expect([action, await status()]).toEqual([action, expected])
    }
  })
})

describe('the idle PC of an image', () => {
  const compute = '/v2/computes/local'
  const question = { platform: 'c7200', image, ram: 64 }
  const ask = (input: Record<string, unknown>, at = compute) => post(`${at}/auto_idlepc`, input)
  const projects = async () =>
    (await body<{ name: string; project_id: string }[]>(send('/v2/compute/projects'))).filter(
      ({ name }) => name === 'AUTOIDLEPC',
    )

  test.for([
    ['platform', { platform: undefined }],
    ['platform', { platform: 'c9000' }],
    ['image', { image: undefined }],
    ['image', { image: 5 }],
    ['ram', { ram: undefined }],
    ['ram', { ram: '64' }],
    ['ram', { ram: 0 }],
    ['rom', { rom: 4 }],
  ] as const)('is not searched for with a wrong %s: %o', async ([field, input]) => {
    expect(await fault(ask({ ...question, ...input }))).toMatchObject({
      status: 400,
      message: expect.stringMatching(new RegExp(`^${field}: `)),
    })
  })

  test('is not searched for on an unknown compute', async () => {
    expect(await fault(ask(question, `/v2/computes/${crypto.randomUUID()}`))).toMatchObject({ status: 404 })
  })

  test('is not searched for in a missing file, or in one that is not an image', async () => {
    expect(await fault(ask({ ...question, image: 'missing.bin' }))).toMatchObject({ status: 409, image: 'missing.bin' })
    expect((await store('text.bin', Buffer.from('no image'))).status).toBe(204)
    expect(await fault(ask({ ...question, image: 'text.bin' }))).toMatchObject({ status: 409 })
    expect(await projects()).toEqual([])
  })

  test('is not searched for on an unknown node', async () => {
    const project = await newProject()
    const id = crypto.randomUUID()
    for (const node of [`${project.v1}/dynamips/vms/${id}`, `${project.v2}/dynamips/nodes/${id}`]) {
      for (const name of ['idlepc_proposals', 'auto_idlepc']) {
        expect([name, (await send(`${node}/${name}`)).status]).toEqual([name, 404])
      }
    }
  })

  /** One that is looked for: the project of it, and its router, which runs. */
  async function looking() {
    const answer = ask(question)
    await expect.poll(projects).toHaveLength(1)
    const [project] = await projects()
    const nodes = `/v2/compute/projects/${project?.project_id}/dynamips/nodes`
    const running = async () =>
      (await body<Record<string, string>[]>(send(nodes))).filter((it) => it.status === 'started')
    await expect.poll(running).toHaveLength(1)
    const [router] = await running()
    return { answer, router: `${nodes}/${router?.node_id}` }
  }

  const oneHost = provided(inject('computes') === 1, 'a gateway puts the question to any of its computes')
  testWith(needsDynamips, oneHost)(
    'is looked for once at a time, in a project that is gone with the answer',
    async () => {
      const { answer, router } = await looking()
      const other = await newRouter(await newProject())
      for (const busy of [ask(question), send(`${other.at}/idlepc_proposals`)]) {
        expect(await fault(busy)).toMatchObject({ status: 409, message: expect.stringContaining('is running') })
      }
      expect(await body(send(other.at))).toMatchObject({ status: 'stopped' })
      // What is measured is left alone, but can be read.
      expect((await post(`${router}/suspend`)).status).toBe(409)
      expect((await put(router, { idlepc: '0x60008120' })).status).toBe(409)
      expect((await post(`${router}/stop`)).status).toBe(204)
      expect(await fault(answer)).toMatchObject({ status: 409, message: expect.stringContaining('ended while') })
      expect(await projects()).toEqual([])
    },
  )

  // Dynamips looks at it for 10 s in which it takes a whole processor.
  const once = provided(!inject('isWorker'), 'a measurement takes 10 s, and is tested without a gateway')
  testWith(needsDynamips, once)('is found by running it', async () => {
    const { idlepc } = await body<{ idlepc: string }>(ask(question))
    expect(ring.map(hex)).toContain(idlepc)
    expect(await projects()).toEqual([])
  })
})
