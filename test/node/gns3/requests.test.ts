import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, it } from 'vitest'
import { TestService } from '../../support/service.ts'
import { answerOf } from './gns3-service.ts'

type Members = Record<string, unknown>

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
  it('are taken as the web client sends them: all five, with those that are off', async () => {
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
    ['docker', { image: 'alpine' }, 22, { console_resolution: '1024x768', adapters: 1 }],
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
