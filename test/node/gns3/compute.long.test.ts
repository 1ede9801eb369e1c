import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { requireProgram } from '../../support/require.ts'
import type { TestService } from '../../support/service.ts'
import { testWith } from '../../support/test-with.ts'
import { requireLibslirp } from '../drivers/nat/nat-lab.ts'
import { answerOf, gns3Service, heard } from './gns3-service.ts'

const compute = '/v2/compute'
const qemuTest = testWith(requireProgram('qemu-system-x86_64'))
const natTest = testWith(requireLibslirp())

/** What a controller of release 2.2.59 sends first: the project, and a node. */
async function withNode(service: TestService) {
  const project_id = randomUUID()
  await service.call('POST', `${compute}/projects`, { name: 'lab', project_id })
  const list = `${compute}/projects/${project_id}/vpcs/nodes`
  const node = await service.call<Record<string, unknown>>('POST', list, {
    ...{ name: 'PC1', node_id: randomUUID(), console_type: 'telnet', startup_script: 'ip 10.0.0.1/24' },
  })
  return { project: `${compute}/projects/${project_id}`, list, node, path: `${list}/${node.node_id}` }
}

describe('a compute of a controller of release 2.2', () => {
  it('reports the version of the controller, and has the words of that release only', async () => {
    const service = await gns3Service()
    const capabilities = await service.call('GET', `${compute}/capabilities`)
    expect(Object.keys(capabilities).sort()).toEqual(['node_types', 'platform', 'version'])
    expect(capabilities).toMatchObject({ version: '2.2.59' })
    expect(capabilities.node_types).toEqual(expect.arrayContaining(['vpcs', 'iou', 'virtualbox']))
    expect(await service.call('GET', `${compute}/version`)).toEqual({ version: '2.2.59', local: true })
    const ports = await service.call('GET', `${compute}/network/ports`)
    expect(Object.keys(ports).sort()).toEqual(['console_port_range', 'console_ports', 'udp_port_range', 'udp_ports'])
  })

  it('shows a node with the members that its schema has there', async () => {
    const { node } = await withNode(await gns3Service())
    expect(Object.keys(node).sort()).toEqual([
      ...['command_line', 'console', 'console_type', 'name', 'node_directory', 'node_id', 'project_id', 'status'],
    ])
  })

  qemuTest('takes the settings of machines that it lacks, and shows them as that release does', async () => {
    const service = await gns3Service()
    const { project } = await withNode(service)
    const given = { uefi: true, tpm: false, create_config_disk: false, replicate_network_connection_state: true }
    const machine = await service.call('POST', `${project}/qemu/nodes`, { name: 'M', platform: 'x86_64', ...given })
    expect(machine).toMatchObject(given)
    expect(machine).not.toHaveProperty('firmware')
  })

  it('has the files of nodes in the directories of that release', async () => {
    const service = await gns3Service()
    const { project, node } = await withNode(service)
    const file = `project-files/vpcs/${node.node_id}/startup.vpc`
    const text = 'ip 10.0.0.9/24\n'
    await service.fetch(`${project}/files/${file}`, { method: 'POST', body: text })
    expect(await (await service.fetch(`${project}/files/${file}`)).text()).toBe(text)
    const files = await service.call<{ path: string }[]>('GET', `${project}/files`)
    expect(files.map(({ path }) => path)).toContain(file)
  })

  it('names the exception of a missing image, so that the controller uploads it', async () => {
    const service = await gns3Service()
    const { project } = await withNode(service)
    const router = { name: 'R1', path: 'router.bin', application_id: 1 }
    expect(await answerOf(service, 'POST', `${project}/iou/nodes`, router)).toEqual([
      409,
      expect.objectContaining({ status: 409, exception: 'ImageMissingError', image: 'router.bin' }),
    ])
  })

  it('answers only with status codes that the controller knows', async () => {
    const service = await gns3Service({ 'limits.json_kb': 1 })
    const large = { name: 'x'.repeat(2000) }
    expect(await answerOf(service, 'POST', `${compute}/projects`, large)).toEqual([
      409,
      expect.objectContaining({ status: 409 }),
    ])
    expect((await answerOf(service, 'DELETE', `${compute}/version`))[0]).toBe(405)
  })

  it('has events of nodes, with their project, without those on which the web client fails', async () => {
    const service = await gns3Service()
    const lines = await heard(service, `${compute}/notifications/ws`)
    const { node, path } = await withNode(service)
    await service.call('POST', `${path}/start`)
    await expect.poll(() => lines.filter(({ action }) => action !== 'ping').length).toBeGreaterThan(0)
    const told = lines.filter(({ action }) => action !== 'ping')
    expect(new Set(told.map(({ action }) => action))).toEqual(new Set(['node.updated']))
    expect(told[0]).toMatchObject({ project_id: node.project_id, event: { node_id: node.node_id } })
    expect(told[0]?.event).not.toHaveProperty('engine')
    expect(lines[0]?.event).toHaveProperty('cpu_usage_percent')
  })

  it('accepts a node as it showed it', async () => {
    const service = await gns3Service()
    const { path, node } = await withNode(service)
    expect(await service.call('PUT', path, { ...node, name: 'Renamed' })).toMatchObject({ name: 'Renamed' })
  })

  it('resets the console of a stopped node without an error, as that of all nodes is reset at once', async () => {
    const service = await gns3Service()
    const { path } = await withNode(service)
    expect((await answerOf(service, 'POST', `${path}/console/reset`))[0]).toBe(204)
  })

  it('has its own words for gateways, and for clients that request them', async () => {
    const service = await gns3Service()
    const { node, list } = await withNode(service)
    const path = `${list.replace('vpcs', 'pc')}/${node.node_id}`
    for (const headers of [{ 'x-patchbay-via': 'user' }, { 'x-patchbay-words': 'neutral' }]) {
      expect(await (await service.fetch(path, { headers })).json()).toHaveProperty('engine', 'embedded')
    }
  })

  it('is a compute of release 3 at /v3/compute', async () => {
    const service = await gns3Service({ clients_version: '3.0.6' })
    expect(await service.call('GET', '/v3/compute/capabilities')).toMatchObject({ version: '3.0.6' })
    const { project } = await withNode(service)
    const list = `${project.replace('/v2', '/v3')}/vpcs/nodes`
    const node = await service.call('POST', list, { name: 'PC2', compute_id: 'there' })
    const port = `${list}/${node.node_id}/adapters/0/ports/0`
    const { udp_port } = await service.call('POST', `${project.replace('/v2', '/v3')}/ports/udp`)
    const nio = { type: 'nio_udp', lport: udp_port, rhost: '127.0.0.1', rport: 9 }
    await service.call('POST', `${port}/nio`, nio)
    const capture = { capture_file_name: 'a.pcap', data_link_type: 'DLT_EN10MB' }
    expect(await service.call('POST', `${port}/capture/start`, capture)).toHaveProperty('pcap_file_path')
    expect((await answerOf(service, 'POST', `${port}/capture/stop`))[0]).toBe(204)
    const [ping] = await heard(service, '/v3/compute/notifications/ws')
    expect(ping?.event).toHaveProperty('disk_usage_percent')
  })

  it('gives the controller at a named address consoles and captures without credentials, and nothing else', async () => {
    const credentials = { user: 'anna', password: 'geheim' }
    const named = await gns3Service({ ...credentials, clients_streams_to: ['127.0.0.0/8'] })
    const other = await gns3Service({ ...credentials, clients_streams_to: ['192.0.2.7'] })
    const node = `${compute}/projects/${randomUUID()}/vpcs/nodes/${randomUUID()}`
    const status = async (service: TestService, end: string, headers = {}) =>
      (await fetch(`${service.url}${node}${end}`, { headers })).status
    expect(await status(named, '/adapters/0/ports/0/pcap')).toBe(404)
    expect(await status(named, '/console/ws')).not.toBe(401)
    expect(await status(named, '')).toBe(401)
    expect(await status(named, '/adapters/0/ports/0/pcap', { Authorization: 'Bearer wrong' })).toBe(401)
    expect(await status(named, '/console/ws', { Origin: 'http://page.example' })).toBe(403)
    expect(await status(other, '/adapters/0/ports/0/pcap')).toBe(401)
    expect(await status(other, '/console/ws')).toBe(401)
  })
})

describe('switches, hubs and clouds of a controller of release 2.2', () => {
  it.each([
    ['ethernet_switch', { console_type: 'telnet' }, ['console', 'console_type', 'ports_mapping']],
    ['ethernet_hub', {}, ['ports_mapping']],
    ['cloud', {}, ['interfaces', 'node_directory', 'ports_mapping']],
  ])('a node of the type %s has the members of that type', async (type, given, members) => {
    const service = await gns3Service()
    const { project } = await withNode(service)
    const node = await service.call('POST', `${project}/${type}/nodes`, { name: 'N', ...given })
    expect(Object.keys(node).sort()).toEqual([...members, 'name', 'node_id', 'project_id', 'status'].sort())
  })
  it('shows ports of switches and nats so that a compute of release 3 takes them', async () => {
    const service = await gns3Service({ clients_version: '3.0.6' })
    const { project } = await withNode(service)
    const ports = async (type: string) =>
      (await service.call<{ ports_mapping: object[] }>('POST', `${project}/${type}/nodes`, { name: type }))
        .ports_mapping
    expect((await ports('ethernet_switch'))[0]).toEqual({
      ...{ name: 'Ethernet0', port_number: 0, type: 'access', vlan: 1 },
    })
    expect(await ports('nat')).toEqual([{ name: 'nat0', port_number: 0, type: 'ethernet', interface: 'virbr0' }])
  })

  it.each(['ethernet_switch', 'ethernet_hub', 'cloud'])(
    'a node of the type %s runs from its creation on, also when all are stopped',
    (type) => runsAlways(type),
  )
  natTest('a nat runs from its creation on, also when all are stopped', () => runsAlways('nat'))
})

async function runsAlways(type: string): Promise<void> {
  const service = await gns3Service()
  const { project } = await withNode(service)
  const { node_id } = await service.call('POST', `${project}/${type}/nodes`, { name: 'N' })
  const path = `${project}/${type}/nodes/${node_id}`
  const runs = async () => expect(await service.call('GET', path)).toMatchObject({ status: 'started' })
  await runs()
  expect((await answerOf(service, 'POST', `${path}/stop`))[0]).toBe(204)
  await runs()
  await service.call('POST', `${project}/close`)
  await service.call('POST', `${compute}/projects`, { name: 'lab', project_id: project.split('/').at(-1) })
  await runs()
}
