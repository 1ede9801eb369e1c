import { randomUUID } from 'node:crypto'
import type { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import yauzl from 'yauzl'
import { requireContainers } from '../../support/container-image.ts'
import { addImage } from '../../support/container-lab.ts'
import type { TestService } from '../../support/service.ts'
import { Terminal } from '../../support/terminal.ts'
import { testWith } from '../../support/test-with.ts'
import { answerOf, startGns3 } from './gns3-service.ts'

type Members = Record<string, unknown>
const containers = await requireContainers()
const withContainers = testWith(containers)

/** The project in an archive. */
async function projectIn(archive: Buffer): Promise<{ topology: { nodes: Members[] } }> {
  const zip = await promisify<Buffer, yauzl.ZipFile>(yauzl.fromBuffer)(archive)
  const found = await new Promise<yauzl.Entry>((resolve) => {
    zip.on('entry', (entry: yauzl.Entry) => entry.fileName === 'project.gns3' && resolve(entry))
  })
  const stream = await new Promise<Readable>((resolve, reject) =>
    zip.openReadStream(found, (error, content) => (error === null ? resolve(content) : reject(error))),
  )
  return (await json(stream)) as Awaited<ReturnType<typeof projectIn>>
}

describe('docker nodes of a client of release 2.2', () => {
  let service: TestService
  beforeAll(async () => {
    if (containers.skip) return
    service = await startGns3()
    // As "patchbay images pull lab/host:1.0" stores it.
    await addImage(service, 'lab_host_1.0.tar')
    await addImage(service, 'alpine_latest.tar')
  })
  afterAll(() => service?.close())

  const newProject = async () =>
    String((await service.call<Members>('POST', '/v2/projects', { name: `lab ${randomUUID()}` })).project_id)

  /** A node as the web client, the desktop client and the collection of Ansible make one. */
  const created = (project: string, properties: object, more: object = {}) =>
    service.call<Members>('POST', `/v2/projects/${project}/nodes`, {
      ...{ name: 'Host', node_type: 'docker', compute_id: 'local', console_type: 'telnet', properties },
      ...more,
    })

  withContainers('have the settings that GNS3 names, and run them', async () => {
    const project = await newProject()
    const node = await created(
      project,
      {
        image: 'lab/host:1.0',
        start_command: "sh -c 'echo ready; exec sh'",
        adapters: 2,
        environment: 'GREETING=hello\nLEVEL=3',
        extra_hosts: 'server:10.0.0.9\nsix:2001:db8::6',
        extra_volumes: ['/data'],
        mac_address: null,
        ...{ memory: 0, cpus: 0, aux: null, console_resolution: '1024x768', console_http_port: 80 },
      },
      { custom_adapters: [{ adapter_number: 1, mac_address: '02:00:00:00:00:77', port_name: 'wan' }] },
    )
    expect(node).toMatchObject({ node_type: 'docker', console_type: 'telnet' })
    expect(node.properties).toEqual({
      image: 'lab/host:1.0',
      start_command: "sh -c 'echo ready; exec sh'",
      adapters: 2,
      environment: 'GREETING=hello\nLEVEL=3',
      extra_hosts: 'server:10.0.0.9\nsix:2001:db8::6',
      extra_volumes: ['/data'],
      mac_address: expect.stringMatching(/^02:/),
      usage: '',
      ...{ memory: 0, cpus: 0, aux: null },
      ...{ console_resolution: '1024x768', console_http_port: 80, console_http_path: '/' },
    })
    expect((node.ports as Members[]).map(({ name }) => name)).toEqual(['eth0', 'wan'])
    const path = `/v2/projects/${project}/nodes/${node.node_id}`
    // "Edit config" of the desktop client.
    const interfaces = 'auto eth0\niface eth0 inet static\n  address 10.0.0.5\n  netmask 255.255.255.0\n'
    const file = await service.fetch(`${path}/files/etc/network/interfaces`, { method: 'POST', body: interfaces })
    expect(file.status).toBe(201)
    await service.call('POST', `${path}/start`, {})
    const terminal = await Terminal.connect(Number(node.console))
    await terminal.expect('ready')
    // As one line: ifup may write to the console meanwhile.
    const line = '$GREETING-$LEVEL $(grep -c 10.0.0.9 /etc/hosts) $(cat /sys/class/net/eth1/address)'
    terminal.type(`echo "${line}"\r`)
    await terminal.expect('hello-3 1 02:00:00:00:00:77')
    terminal.type('until ip address show dev eth0 | grep -c "inet 10.0.0.5"; do sleep 0.1; done\r')
    await terminal.expect('\n1\r')
    await service.call('POST', `${path}/stop`, {})
    // Clients send a node back as it was shown, without its type.
    const { properties, name } = node
    expect((await service.call<Members>('PUT', path, { name, properties })).properties).toEqual(properties)
    const other = { ...(properties as Members), image: 'alpine', start_command: '' }
    expect(await service.call('PUT', path, { properties: other })).toMatchObject({
      properties: { image: 'alpine:latest', start_command: '', extra_hosts: 'server:10.0.0.9\nsix:2001:db8::6' },
    })
    const neutral = await service.fetch(path, { headers: { 'x-patchbay-words': 'neutral' } })
    expect(await neutral.json()).toMatchObject({
      node_type: 'container',
      properties: {
        ...{ image: 'alpine_latest.tar', hosts: '10.0.0.9 server\n2001:db8::6 six' },
        sysctls: 'net.ipv4.ip_forward=1',
      },
    })
  })

  withContainers('say what they cannot have, and which command brings an image', async () => {
    const project = await newProject()
    const refusal = (properties: object, more: object = {}) =>
      answerOf(service, 'POST', `/v2/projects/${project}/nodes`, {
        ...{ name: 'X', node_type: 'docker', compute_id: 'local', properties: { image: 'alpine', ...properties } },
        ...more,
      })
    const missing = await refusal({ image: 'frrouting/frr:v8.4' })
    expect(missing).toEqual([
      409,
      {
        ...{ status: 409, exception: 'ImageMissingError', image: 'frrouting_frr_v8.4.tar' },
        message: expect.stringContaining('"patchbay images pull frrouting/frr:v8.4" fetches it'),
      },
    ])
    expect(await refusal({ memory: -1 })).toMatchObject([400, { message: expect.stringContaining('ram') }])
    expect(await refusal({ extra_hosts: 'server' })).toMatchObject([
      400,
      { message: 'extra_hosts: expected NAME:ADDRESS, got "server"' },
    ])
    expect(await refusal({ adapters: 99 })).toMatchObject([400, { message: expect.stringContaining('adapters') }])
    expect(await refusal({}, { console_type: 'vnc' })).toMatchObject([
      400,
      { message: expect.stringMatching(/console_type.*telnet/) },
    ])
    expect(await service.call('GET', `/v2/projects/${project}/nodes`)).toEqual([])
  })

  withContainers('are made of templates, and of the images in the list', async () => {
    for (const list of ['/v2/computes/local/docker/images', '/v2/compute/docker/images'])
      expect(await service.call('GET', list)).toEqual([{ image: 'alpine:latest' }, { image: 'lab/host:1.0' }])
    const given = { name: `Host ${randomUUID()}`, template_type: 'docker', compute_id: 'local', image: 'lab/host:1.0' }
    const settings = {
      start_command: 'sleep 100',
      extra_hosts: 'a:10.0.0.1',
      environment: 'A=1',
      memory: 64,
      cpus: 0.5,
    }
    const { template_id, ...template } = await service.call<Members>('POST', '/v2/templates', { ...given, ...settings })
    expect(template).toMatchObject({ ...given, ...settings, symbol: ':/symbols/docker_guest.svg' })
    const project = await newProject()
    const place = { x: 10, y: 20, compute_id: 'local' }
    expect(await service.call('POST', `/v2/projects/${project}/templates/${template_id}`, place)).toMatchObject({
      ...{ node_type: 'docker', template_id },
      properties: { image: 'lab/host:1.0', ...settings },
    })
  })

  withContainers('are in a compute of a controller, and in archives, as GNS3 has them', async () => {
    const project = await newProject()
    const node = await created(project, { image: 'lab/host:1.0', start_command: 'sleep 99', extra_hosts: 'a:10.0.0.1' })
    const archive = await service.fetch(`/v2/projects/${project}/export`)
    const bytes = Buffer.from(await archive.arrayBuffer())
    const [archived] = (await projectIn(bytes)).topology.nodes
    expect(archived).toMatchObject({ node_type: 'docker', node_id: node.node_id })
    expect(archived?.properties).toEqual({
      ...{ image: 'lab/host:1.0', start_command: 'sleep 99', extra_hosts: 'a:10.0.0.1', environment: '', adapters: 1 },
      ...{ mac_address: expect.any(String), usage: '', aux: null, memory: 0, cpus: 0 },
    })
    const copy = randomUUID()
    const imported = await service.fetch(`/v2/projects/${copy}/import?name=copy`, { method: 'POST', body: bytes })
    expect([imported.status, await imported.json()]).toMatchObject([201, { name: 'copy' }])
    await service.call('POST', `/v2/projects/${copy}/open`)
    const [again] = await service.call<Members[]>('GET', `/v2/projects/${copy}/nodes`)
    expect(again?.properties).toMatchObject({
      ...{ image: 'lab/host:1.0', start_command: 'sleep 99', extra_hosts: 'a:10.0.0.1' },
    })

    const list = `/v2/compute/projects/${project}/docker/nodes`
    const sent = { name: 'C1', image: 'lab/host:1.0', start_command: null, console_http_port: 80, aux: null, memory: 0 }
    const made = await service.call<Members>('POST', list, { ...sent, extra_volumes: ['/x'] })
    expect(Object.keys(made).sort()).toEqual([
      ...['adapters', 'aux', 'console', 'console_type', 'cpus', 'environment', 'extra_hosts', 'image'],
      ...[
        'mac_address',
        'memory',
        'name',
        'node_directory',
        'node_id',
        'project_id',
        'start_command',
        'status',
        'usage',
      ],
    ])
    expect(made.node_directory).toMatch(/\/project-files\/docker\//)
    expect(await service.call('PUT', `${list}/${made.node_id}`, made)).toEqual(made)
  })
})
