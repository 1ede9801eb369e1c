import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { idling } from '../../stand-in/mips/programs.ts'
import { requireProgram } from '../../support/require.ts'
import type { TestService } from '../../support/service.ts'
import { testWith } from '../../support/test-with.ts'
import { answerOf, gns3Service, heard, startGns3 } from './gns3-service.ts'

type Members = Record<string, unknown>
const qemuTest = testWith(requireProgram('qemu-system-x86_64'))

/** The built-in template of pcs, as every server of that release has it. */
const vpcs = '19021f99-e36f-394d-b4a1-8aaa902ab9cc'

/** A lab of two pcs from that template and a link, by the requests of the web client. */
async function lab(service: TestService) {
  const { project_id } = await service.call('POST', '/v2/projects', { name: 'lab', grid_size: 100 })
  const project = `/v2/projects/${project_id}`
  const nodes: Members[] = []
  for (const x of [-100, 100]) {
    const place = { x, y: 20, compute_id: 'local' }
    nodes.push(await service.call('POST', `${project}/templates/${vpcs}`, place))
  }
  const ends = nodes.map(({ node_id }, at) => ({
    ...{ node_id, adapter_number: 0, port_number: 0 },
    ...(at === 0 && { label: { text: 'e0', x: 1, y: 2, rotation: 0, style: 'font-size: 10' } }),
  }))
  const link = await service.call('POST', `${project}/links`, { nodes: ends })
  return { project, project_id, nodes, link }
}

describe('a server for clients of release 2.2', () => {
  it('has the built-in templates with their ids, names and symbols', async () => {
    const service = await gns3Service()
    const templates = await service.call<Members[]>('GET', '/v2/templates')
    expect(templates.find(({ template_id }) => template_id === vpcs)).toEqual({
      ...{ template_id: vpcs, template_type: 'vpcs', name: 'VPCS', category: 'guest', builtin: true },
      ...{ default_name_format: 'PC{0}', symbol: ':/symbols/vpcs_guest.svg', compute_id: null },
      properties: { base_script_file: 'vpcs_base_config.txt' },
    })
    expect(await service.call('GET', `/v2/templates/${vpcs}`)).toMatchObject({ name: 'VPCS' })
    expect(templates.map(({ template_type, template_id }) => [template_type, template_id])).toEqual(
      expect.arrayContaining([
        ['ethernet_switch', '1966b864-93e7-32d5-965f-001384eec461'],
        ['ethernet_hub', 'b4503ea9-d6b6-3695-9fe4-1db3b39290b0'],
        ['cloud', '39e257dc-8412-3174-b6b3-0ee3ed6a43e9'],
      ]),
    )
  })

  it('shows nodes, links and projects with the members of that release', async () => {
    const service = await gns3Service()
    const { project, nodes, link } = await lab(service)
    expect(Object.keys(nodes[0] ?? {}).sort()).toEqual([
      ...['command_line', 'compute_id', 'console', 'console_auto_start', 'console_host', 'console_type'],
      ...['custom_adapters', 'first_port_name', 'height', 'label', 'locked', 'name', 'node_directory', 'node_id'],
      ...[
        'node_type',
        'port_name_format',
        'port_segment_size',
        'ports',
        'project_id',
        'properties',
        'status',
        'symbol',
      ],
      ...['template_id', 'width', 'x', 'y', 'z'],
    ])
    expect(nodes[0]).toMatchObject({
      ...{ name: 'PC1', node_type: 'vpcs', template_id: vpcs, symbol: ':/symbols/vpcs_guest.svg', properties: {} },
      label: { text: 'PC1', x: null, style: null, rotation: 0 },
    })
    expect(Object.keys(link).sort()).toEqual([
      ...['capture_compute_id', 'capture_file_name', 'capture_file_path', 'capturing', 'filters', 'link_id'],
      ...['link_style', 'link_type', 'nodes', 'project_id', 'suspend'],
    ])
    expect(link.nodes).toEqual([
      expect.objectContaining({ label: expect.objectContaining({ text: 'e0' }) }),
      expect.objectContaining({ label: { text: '0/0' } }),
    ])
    expect(await service.call('GET', project)).not.toHaveProperty('revision')
  })

  it('keeps members that only those clients know, and gives them back', async () => {
    const service = await gns3Service()
    const { project, nodes } = await lab(service)
    const path = `${project}/nodes/${nodes[0]?.node_id}`
    const properties = { base_script_file: 'vpcs_base_config.txt' }
    const changed = await service.call('PUT', path, { ...nodes[0], x: 7, properties })
    expect(changed).toMatchObject({ x: 7, properties })
    await service.call('POST', `${project}/close`)
    await service.call('POST', `${project}/open`)
    expect(await service.call('GET', path)).toMatchObject({ properties })
    expect(await service.call('PUT', project, { name: 'lab', nature: 'tame' })).toMatchObject({ nature: 'tame' })
  })

  it('keeps templates with all their fields, and makes nodes of them', async () => {
    const service = await gns3Service()
    const made = await service.call('POST', '/v2/templates', {
      ...{ name: 'Desk', template_type: 'vpcs', compute_id: 'local', category: 2, builtin: false },
      ...{ base_script_file: 'vpcs_base_config.txt', console_type: 'telnet', symbol: ':/symbols/computer.svg' },
    })
    expect(made).toMatchObject({ template_type: 'vpcs', category: 'guest', base_script_file: 'vpcs_base_config.txt' })
    const { project } = await lab(service)
    const node = await service.call('POST', `${project}/templates/${made.template_id}`, { x: 0, y: 0 })
    expect(node).toMatchObject({ node_type: 'vpcs', symbol: ':/symbols/computer.svg' })
    expect((await answerOf(service, 'DELETE', `/v2/templates/${made.template_id}`))[0]).toBe(204)
  })

  qemuTest('gives a machine the adapters of its template', async () => {
    const service = await gns3Service()
    const { project } = await lab(service)
    const custom_adapters = [{ adapter_number: 1, adapter_type: 'virtio-net-pci', port_name: 'wan' }]
    const template = await service.call('POST', '/v2/templates', {
      ...{
        name: 'Box',
        template_type: 'qemu',
        compute_id: 'local',
        platform: 'x86_64',
        adapters: 2,
        ram: 64,
        custom_adapters,
        uefi: false,
      },
    })
    expect(template).toMatchObject({ uefi: false, hda_disk_interface: 'none' })
    expect(template).not.toHaveProperty('firmware')
    const node = await service.call('POST', `${project}/templates/${template.template_id}`, { x: 0, y: 0 })
    expect(node).toMatchObject({ custom_adapters, properties: { custom_adapters, uefi: false, tpm: false } })
    expect((node.ports as Members[]).map(({ name }) => name)).toEqual(['Ethernet0', 'wan'])
    await service.call('DELETE', `/v2/templates/${template.template_id}`)
  })

  it('gives a router the cards of its template', async () => {
    const service = await gns3Service()
    await mkdir(join(service.data, 'images/dynamips'), { recursive: true })
    await writeFile(join(service.data, 'images/dynamips/c1700.bin'), idling)
    const { project } = await lab(service)
    const template = await service.call('POST', '/v2/templates', {
      ...{ name: 'R', template_type: 'dynamips', compute_id: 'local', platform: 'c1700', chassis: '1751', ram: 160 },
      ...{ image: 'c1700.bin', slot0: 'C1700-MB-1FE', slot1: 'C1700-MB-WIC1', wic0: 'WIC-2T', wic1: null, nvram: 32 },
      ...{ iomem: 15, disk0: 0, disk1: 0, idlepc: '', idlemax: 500, mmap: true, sparsemem: true, mac_addr: '' },
      ...{ startup_config: 'ios_base_startup-config.txt', auto_delete_disks: true, system_id: 'FTX0945W0MY' },
    })
    const node = await service.call('POST', `${project}/templates/${template.template_id}`, { x: 0, y: 0 })
    expect(node).toMatchObject({ node_type: 'dynamips', properties: { chassis: '1751', wic0: 'WIC-2T' } })
    expect((node.ports as Members[]).map(({ name }) => name)).toEqual(['FastEthernet0', 'Serial0', 'Serial1'])
    await service.call('DELETE', `/v2/templates/${template.template_id}`)
    await service.call('DELETE', project)
    await service.call('DELETE', '/v2/compute/dynamips/images/c1700.bin')
  })

  it('accepts the settings of the appliance VM as it shows them, also without a name', async () => {
    const service = await gns3Service()
    const shown = await service.call('GET', '/v2/gns3vm')
    expect(shown).toMatchObject({ enable: false, vmname: '' })
    expect(await answerOf(service, 'PUT', '/v2/gns3vm', { ...shown, vcpus: 2 })).toEqual([201, { ...shown, vcpus: 2 }])
  })

  it('answers the requests of the web client as it expects', async () => {
    const service = await gns3Service()
    const { project, nodes, link } = await lab(service)
    const [path, wire] = [`${project}/nodes/${nodes[0]?.node_id}`, `${project}/links/${link.link_id}`]
    const filters = { frequency_drop: [0], packet_loss: [10], delay: [0, 0], corrupt: [0], bpf: [''] }
    const requests: [string, string, unknown, number][] = [
      ['GET', '/v2/computes', undefined, 200],
      ['GET', '/v2/appliances', undefined, 200],
      ['GET', '/v2/statistics', undefined, 200],
      ['GET', '/v2/compute/qemu/images', undefined, 200],
      ['GET', '/v2/computes/local/iou/images', undefined, 200],
      ['GET', '/v2/gns3vm/engines', undefined, 200],
      ['GET', '/v2/symbols/:/symbols/vpcs_guest.svg/raw', undefined, 200],
      ['GET', `${project}/stats`, undefined, 200],
      ['PUT', path, { x: 5, y: 6, z: 2 }, 200],
      ['POST', `${path}/start`, {}, 200],
      ['POST', `${project}/nodes/start`, {}, 204],
      ['POST', `${project}/nodes/console/reset`, {}, 204],
      ['GET', `${wire}/available_filters`, undefined, 200],
      ['PUT', wire, { filters, suspend: false }, 201],
      ['POST', `${wire}/start_capture`, { capture_file_name: 'a.pcap', data_link_type: 'DLT_EN10MB' }, 201],
      ['POST', `${wire}/stop_capture`, {}, 201],
      ['POST', `${path}/resize_disk`, { drive_name: 'hda', extend: 1 }, 409],
      ['POST', `${project}/drawings`, { svg: '<svg width="1" height="1"></svg>', x: 1, y: 1, z: 1 }, 201],
      ['POST', `${project}/nodes/stop`, {}, 204],
      ['POST', '/v2/shutdown', {}, 403],
      ['POST', '/v2/debug', {}, 403],
    ]
    const answers = []
    for (const [method, at, body] of requests) {
      const answer = await service.fetch(at, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
      await answer.arrayBuffer()
      answers.push([method, at, answer.status])
    }
    expect(answers).toEqual(requests.map(([method, at, , status]) => [method, at, status]))
  })

  it('starts switches with the first node that is started, as the desktop client cannot start them', async () => {
    const service = await gns3Service()
    const { project, nodes } = await lab(service)
    const given = { name: 'S', node_type: 'ethernet_switch', compute_id: 'local' }
    const { node_id } = await service.call('POST', `${project}/nodes`, given)
    await service.call('POST', `${project}/nodes/stop`)
    const started = await service.call('POST', `${project}/nodes/${nodes[0]?.node_id}/start`, {})
    expect(started).toMatchObject({ node_type: 'vpcs', status: 'started' })
    expect(await service.call('GET', `${project}/nodes/${node_id}`)).toMatchObject({ status: 'started' })
    expect(await service.call('GET', `${project}/nodes/${nodes[1]?.node_id}`)).toMatchObject({ status: 'stopped' })
  })

  it('has events in the feed of a project, and none that the web client does not know', async () => {
    const service = await gns3Service()
    const { project, nodes } = await lab(service)
    const lines = await heard(service, `${project}/notifications/ws`)
    await service.call('POST', `${project}/nodes/start`)
    const started = () => lines.filter(({ event }) => event.status === 'started').map(({ event }) => event.node_id)
    await expect.poll(() => new Set(started())).toEqual(new Set(nodes.map(({ node_id }) => node_id)))
    expect(lines.find(({ action }) => action === 'node.updated')?.event).toMatchObject({ node_type: 'vpcs' })
    expect(lines.every((line) => Object.keys(line).sort().join() === 'action,event')).toBe(true)
    expect(lines.some(({ action }) => action === 'link.state')).toBe(false)
  })

  describe('with a version of its own and a directory of a web client', () => {
    let directory: string
    let service: TestService
    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), 'patchbay-web-'))
      await mkdir(join(directory, 'ui'))
      await writeFile(join(directory, 'ui', 'index.html'), '<title>client</title>')
      await writeFile(join(directory, 'ui', 'main.js'), 'go()')
      await writeFile(join(directory, 'secret.txt'), 'secret')
      service = await startGns3({ clients_version: '2.2.40', clients_web_ui: join(directory, 'ui') })
      return async () => {
        await service.close()
        await rm(directory, { recursive: true, force: true })
      }
    })

    it('reports the same version as the desktop client', async () => {
      const headers = { 'user-agent': 'GNS3 QT Client v2.2.57' }
      expect(await (await service.fetch('/v2/version', { headers })).json()).toMatchObject({ version: '2.2.57' })
      const check = { method: 'POST', headers, body: JSON.stringify({ version: '2.2.57' }) }
      expect((await service.fetch('/v2/version', check)).status).toBe(200)
      expect(await service.call('GET', '/v2/version')).toMatchObject({ version: '2.2.40' })
    })

    it('serves the web client of a directory, and nothing outside of it', async () => {
      const page = await service.fetch('/')
      expect([page.url, await page.text()]).toEqual([`${service.url}/static/web-ui/bundled`, '<title>client</title>'])
      const script = await service.fetch('/static/web-ui/main.js')
      expect([script.headers.get('content-type'), await script.text()]).toEqual([
        'text/javascript; charset=utf-8',
        'go()',
      ])
      const outside = await service.fetch('/static/web-ui/%2e%2e%2fsecret.txt')
      expect(await outside.text()).not.toContain('secret\n')
      expect(await (await service.fetch('/static/web-ui/..%2fsecret.txt')).text()).not.toBe('secret')
    })
  })
})
