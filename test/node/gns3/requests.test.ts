import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, it } from 'vitest'
import { requireLibpcap } from '../../support/require.ts'
import { TestService } from '../../support/service.ts'
import { testWith } from '../../support/test-with.ts'
import { answerOf } from './gns3-service.ts'

type Members = Record<string, unknown>
const withLibpcap = testWith(requireLibpcap())

const service = await TestService.startForAll({ 'pc.engine': 'embedded', clients: 'gns3' })
afterAll(() => service.close())

/** A project with nodes of a type. */
async function project(...types: string[]) {
  const { project_id } = await service.call<Members>('POST', '/v2/projects', { name: `lab ${randomUUID()}` })
  const path = `/v2/projects/${project_id}`
  const nodes: Members[] = []
  for (const [at, node_type] of types.entries())
    nodes.push(await service.call('POST', `${path}/nodes`, { name: `N${at + 1}`, node_type, compute_id: 'local' }))
  return { path, nodes, project_id: String(project_id) }
}

const port = ({ node_id }: Members = {}) => ({ node_id, adapter_number: 0, port_number: 0 })

describe('the filters of a link', () => {
  withLibpcap('are taken as the web client sends them: all five, with those that are off', async () => {
    const { path, nodes } = await project('vpcs', 'vpcs')
    const filters = { bpf: [], corrupt: [0], delay: [80, 0], frequency_drop: [0], packet_loss: [0] }
    const ends = nodes.map(port)
    const [status, link] = await answerOf(service, 'POST', `${path}/links`, { nodes: ends, filters })
    expect([status, link.filters]).toEqual([201, { delay: [80, 0] }])
    const at = `${path}/links/${link.link_id}`
    const [changed, { filters: now }] = await answerOf(service, 'PUT', at, {
      filters: { ...filters, delay: ['90', '5'], bpf: ['icmp\n'] },
    })
    expect([changed, now]).toEqual([201, { delay: [90, 5], bpf: ['icmp'] }])
    expect((await answerOf(service, 'PUT', at, { filters: { ...filters, delay: [0, 0] } }))[1].filters).toEqual({})
    expect((await answerOf(service, 'PUT', at, { filters: { delay: ['x'] } }))[0]).toBe(400)
  })

  it('are taken by a compute as well, with numbers as text', async () => {
    const project_id = randomUUID()
    const path = `/v2/compute/projects/${project_id}`
    await service.call('POST', '/v2/compute/projects', { name: 'filters', project_id })
    const { node_id } = await service.call<Members>('POST', `${path}/vpcs/nodes`, {
      name: 'PC1',
      node_id: randomUUID(),
    })
    const { udp_port } = await service.call<Members>('POST', `${path}/ports/udp`)
    const nio = { type: 'nio_udp', lport: udp_port, rport: 40001, rhost: '127.0.0.1' }
    const filters = { delay: ['80', '0'], bpf: [], packet_loss: [0] }
    const at = `${path}/vpcs/nodes/${node_id}/adapters/0/ports/0/nio`
    expect((await answerOf(service, 'POST', at, { ...nio, filters }))[0]).toBe(201)
  })
})

describe('an import', () => {
  it('takes an archive as a form, as the web client and curl -F send it', async () => {
    const { path } = await project('vpcs')
    const archive = await (await service.fetch(`${path}/export`)).blob()
    const body = new FormData()
    body.append('file', archive, 'lab.gns3project')
    const id = randomUUID()
    const answer = await service.fetch(`/v2/projects/${id}/import?name=form`, { method: 'POST', body })
    expect([answer.status, await answer.json()]).toMatchObject([201, { name: 'form', project_id: id }])
    await service.call('POST', `/v2/projects/${id}/open`)
    expect(await service.call('GET', `/v2/projects/${id}/nodes`)).toMatchObject([{ name: 'N1', node_type: 'vpcs' }])
  })
})

/** The built-in templates of pcs and of clouds. */
const [vpcs, cloud] = ['19021f99-e36f-394d-b4a1-8aaa902ab9cc', '39e257dc-8412-3174-b6b3-0ee3ed6a43e9']
const at = { x: 0, y: 0, compute_id: 'local' }
const script = async (path: string, { node_id }: Members): Promise<string> =>
  (await service.fetch(`${path}/nodes/${node_id}/files/startup.vpc`)).text()

describe('a new pc', () => {
  it('has the base script of the built-in template, and of a template or a node that names its file', async () => {
    const { path } = await project()
    const ofTemplate = await service.call<Members>('POST', `${path}/templates/${vpcs}`, at)
    expect(await script(path, ofTemplate)).toBe('set pcname PC1\n')
    const given = { name: `Desk ${randomUUID()}`, template_type: 'vpcs', compute_id: 'local' }
    const { template_id } = await service.call<Members>('POST', '/v2/templates', given)
    const named = await service.call<Members>('POST', `${path}/templates/${template_id}`, { ...at, name: 'Desk' })
    expect(await script(path, named)).toBe('set pcname Desk\n')
    const properties = { base_script_file: 'vpcs_base_config.txt' }
    const node = { name: 'Direct', node_type: 'vpcs', compute_id: 'local', properties }
    const direct = await service.call<Members>('POST', `${path}/nodes`, node)
    expect([await script(path, direct), direct.properties]).toEqual(['set pcname Direct\n', {}])
  })
})

describe('names', () => {
  it('lose blanks, and a taken one gets the first free number', async () => {
    const { path } = await project()
    const names: unknown[] = []
    for (const name of ['PC', 'PC', 'My PC', 'PC1', 'X{0}', 'PC7', 'PC7'])
      names.push(
        (await service.call<Members>('POST', `${path}/nodes`, { name, node_type: 'vpcs', compute_id: 'local' })).name,
      )
    expect(names).toEqual(['PC', 'PC1', 'MyPC', 'PC2', 'X1', 'PC7', 'PC3'])
  })

  it('that are taken become the next one in a rename', async () => {
    const { path, nodes } = await project('vpcs', 'vpcs')
    const renamed = await service.call('PUT', `${path}/nodes/${nodes[1]?.node_id}`, { name: 'N1' })
    expect(renamed).toMatchObject({ name: 'N2' })
    expect(await service.call('PUT', `${path}/nodes/${nodes[1]?.node_id}`, { name: 'A B' })).toMatchObject({
      name: 'AB',
    })
  })

  it('of labs that are taken become NAME-1 in an import and a copy', async () => {
    const { path } = await project('vpcs')
    const archive = await (await service.fetch(`${path}/export`)).arrayBuffer()
    const name = `main ${randomUUID()}`
    const names: unknown[] = []
    for (let round = 0; round < 3; round++) {
      const at = `/v2/projects/${randomUUID()}/import?name=${encodeURIComponent(name)}`
      names.push(((await (await service.fetch(at, { method: 'POST', body: archive })).json()) as Members).name)
    }
    names.push((await service.call<Members>('POST', `${path}/duplicate`, { name })).name)
    expect(names).toEqual([name, `${name}-1`, `${name}-2`, `${name}-3`])
  })
})

describe('a copy of a node', () => {
  it('has the label of the node with its own name', async () => {
    const { path, nodes } = await project('vpcs')
    const node = `${path}/nodes/${nodes[0]?.node_id}`
    await service.call('PUT', node, { label: { text: 'N1', x: 5, y: 40, rotation: 90, style: 'fill: #ff0000' } })
    expect(await service.call('POST', `${node}/duplicate`, { x: 1, y: 2, z: 1 })).toMatchObject({
      name: 'N2',
      label: { text: 'N2', x: 5, y: 40, rotation: 90, style: 'fill: #ff0000' },
    })
  })
})

describe('nodes that always run', () => {
  it('keep running when all nodes, or they themselves, are stopped', async () => {
    const { path, nodes } = await project('ethernet_switch', 'ethernet_hub', 'vpcs')
    await service.call('POST', `${path}/nodes/start`)
    await service.call('POST', `${path}/nodes/stop`)
    const stopped = await service.call('POST', `${path}/nodes/${nodes[0]?.node_id}/stop`)
    expect(stopped).toMatchObject({ status: 'started' })
    const all = await service.call<Members[]>('GET', `${path}/nodes`)
    expect(all.map(({ status }) => status)).toEqual(['started', 'started', 'stopped'])
  })
})

describe('a cloud', () => {
  it('without ports has one for every device of the host', async () => {
    const { path } = await project()
    const made = (properties?: object) =>
      service.call<Members>('POST', `${path}/nodes`, { name: 'C', node_type: 'cloud', compute_id: 'local', properties })
    // Other tests make and remove devices meanwhile.
    const lasting = ({ ports }: Members) =>
      (ports as readonly { name: string }[]).map(({ name }) => name).filter((name) => !name.startsWith('pbt'))
    const names = lasting(await made())
    expect(lasting(await made({ ports_mapping: [] }))).toEqual(names)
    expect(lasting(await service.call<Members>('POST', `${path}/templates/${cloud}`, at))).toEqual(names)
  })
})

describe('the statistics of computes', () => {
  it('have all figures that the page of the client draws', async () => {
    const [shown] = await service.call<Members[]>('GET', '/v2/statistics')
    const names = [
      ...['cpu_usage_percent', 'disk_usage_percent', 'load_average_percent', 'memory_free', 'memory_total'],
      ...['memory_usage_percent', 'memory_used', 'swap_free', 'swap_total', 'swap_usage_percent', 'swap_used'],
    ]
    for (const statistics of [
      shown?.statistics as Members,
      await service.call<Members>('GET', '/v2/compute/statistics'),
    ]) {
      expect(Object.keys(statistics).sort()).toEqual(names)
      expect(statistics.load_average_percent).toHaveLength(3)
      expect(statistics.memory_total).toBeGreaterThan(Number(statistics.memory_used))
      expect(Number.isInteger(statistics.disk_usage_percent)).toBe(true)
    }
    expect(shown).toMatchObject({ compute_id: 'local', compute_name: expect.any(String) })
  })
})

describe('templates', () => {
  it.each([
    ['a setting of another form', { template_type: 'qemu', ram: 'x' }, 'ram'],
    ['an unknown member', { template_type: 'vpcs', colour: 'red' }, 'colour'],
    ['an unknown platform', { template_type: 'dynamips', platform: 'c9999', image: 'x.bin' }, 'platform'],
    ['an unknown type', { template_type: 'nonsense' }, 'template_type'],
    ['a missing image', { template_type: 'iou' }, 'path'],
  ])('with %s are refused', async (_, given, field) => {
    const [status, body] = await answerOf(service, 'POST', '/v2/templates', {
      name: 'k',
      compute_id: 'local',
      ...given,
    })
    expect([status, body.message]).toEqual([400, expect.stringContaining(field)])
  })

  it.each([
    [
      'vpcs',
      {},
      11,
      { default_name_format: 'PC{0}', base_script_file: 'vpcs_base_config.txt', symbol: ':/symbols/vpcs_guest.svg' },
    ],
    ['qemu', {}, 46, { hda_disk_interface: 'none', ram: 256, default_name_format: '{name}-{0}', linked_clone: true }],
    ['ethernet_switch', {}, 10, { default_name_format: 'Switch{0}', category: 'switch', console_type: 'none' }],
    ['ethernet_hub', {}, 9, { default_name_format: 'Hub{0}' }],
    ['cloud', {}, 13, { default_name_format: 'Cloud{0}', remote_console_port: 23, ports_mapping: [] }],
    [
      'iou',
      { path: 'x.bin' },
      20,
      { ram: 1024, default_name_format: 'IOU{0}', symbol: ':/symbols/multilayer_switch.svg' },
    ],
    [
      'dynamips',
      { platform: 'c7200', image: 'x.bin' },
      30,
      { default_name_format: 'R{0}', npe: 'npe-400', midplane: 'vxr' },
    ],
    ['dynamips', { platform: 'c1700', image: 'x.bin' }, 30, { ram: 160, chassis: '1760', iomem: 15, sparsemem: false }],
    ['virtualbox', { vmname: 'x' }, 23, { adapter_type: 'Intel PRO/1000 MT Desktop (82540EM)' }],
    ['docker', { image: 'alpine' }, 24, { console_resolution: '1024x768', adapters: 1 }],
  ])('of the type %s are completed with its members', async (template_type, given, count, members) => {
    const name = `t ${randomUUID()}`
    const made = await service.call<Members>('POST', '/v2/templates', {
      name,
      template_type,
      compute_id: 'local',
      ...given,
    })
    expect(made).toMatchObject(members)
    expect(Object.keys(made)).toHaveLength(count)
    // The client sends it back as it was shown.
    expect(await service.call('PUT', `/v2/templates/${made.template_id}`, made)).toEqual(made)
    expect((await answerOf(service, 'POST', '/v2/templates', { ...made, template_id: randomUUID() }))[0]).toBe(201)
  })
})

describe('the statuses of answers', () => {
  it('are those of that release', async () => {
    const { path, nodes, project_id } = await project('vpcs')
    const [node] = nodes
    const upload = (to: string) => service.fetch(to, { method: 'POST', body: 'content' })
    const statuses: [string, number][] = []
    const ask = async (method: string, to: string, body?: unknown) => {
      const [status, answer] = await answerOf(service, method, to, body)
      statuses.push([`${method} ${to.replace(project_id, 'P')}`, status])
      return answer
    }
    const ends = { nodes: [port(node), port(node)] }
    await ask('POST', `${path}/links`, ends)
    const lan = { name: 'lan', node_type: 'ethernet_switch', compute_id: 'local' }
    const { node_id } = await service.call('POST', `${path}/nodes`, lan)
    const ofLan = [0, 1].map((port_number) => ({ node_id, adapter_number: 0, port_number }))
    expect((await ask('POST', `${path}/links`, { nodes: ofLan })).message).toBe('nodes: lan cannot be linked to itself')
    await ask('DELETE', `/v2/templates/${vpcs}`)
    await ask('PATCH', '/v2/version')
    expect(await ask('GET', `${path}/files/missing.txt`)).toEqual({ message: '404: Not Found', status: 404 })
    expect(await ask('GET', '/v2/nonsense')).toEqual({ message: '404: Not Found', status: 404 })
    await ask('GET', '/v2/computes/local/docker/images')
    const again = await ask('POST', `${path}/nodes`, { ...node, name: 'other' })
    expect(again).toMatchObject({ name: 'N1', node_id: node?.node_id })
    const drawing = { svg: '<svg width="1" height="1"></svg>', x: 1, y: 1, z: 1, drawing_id: randomUUID() }
    await ask('POST', `${path}/drawings`, drawing)
    expect(await ask('POST', `${path}/drawings`, { ...drawing, x: 9 })).toMatchObject({ x: 1 })
    expect(await ask('GET', `${path}/stats`)).toEqual({ nodes: 2, links: 0, drawings: 1, snapshots: 0 })
    expect((await upload(`${path}/files/README.txt`)).status).toBe(201)
    expect((await upload('/v2/computes/local/qemu/images/through.img')).status).toBe(200)
    expect((await upload('/v2/compute/qemu/images/direct.img')).status).toBe(204)
    expect(await ask('GET', '/v2/computes/endpoint/local/qemu/images')).toEqual({
      endpoint: expect.stringMatching(/\/v2\/compute\/qemu\/images$/),
    })
    await service.call('POST', `${path}/close`)
    await ask('POST', `${path}/nodes`, { name: 'late', node_type: 'vpcs', compute_id: 'local' })
    await ask('GET', `/v2/compute/projects/${project_id}`)
    expect(statuses.map(([, status]) => status)).toEqual([
      409, 409, 409, 405, 404, 404, 200, 201, 201, 201, 200, 200, 403, 404,
    ])
  })

  it('have paths of files in the words of that release', async () => {
    const { nodes } = await project('vpcs')
    expect(nodes[0]?.node_directory).toMatch(/\/project-files\/vpcs\//)
  })
})
