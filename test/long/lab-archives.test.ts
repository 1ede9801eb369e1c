import { randomBytes, randomUUID } from 'node:crypto'
import { readdir, watch } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { deflateRawSync } from 'node:zlib'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import yauzl from 'yauzl'
import type { LabLink } from '../../src/model/lab/link.ts'
import type { LabNode } from '../../src/model/lab/node.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import type { LabSnapshot } from '../../src/model/lab/snapshot.ts'
import { TestService } from '../support/service.ts'
import { type ZipMember, zipOf } from '../support/zip.ts'

const projects = '/v2/projects'
const campus = `${projects}/campus`

/** A service with a lab of two pcs, a link, a drawing and a file of 1 MB. */
async function lab() {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  await service.call('POST', projects, { name: 'Campus', grid_size: 50 })
  for (const name of ['PC1', 'PC2'])
    await service.call('POST', `${campus}/nodes`, { name, node_type: 'pc', x: 7, after: name === 'PC2' ? ['PC1'] : [] })
  await service.call('PUT', `${campus}/nodes/PC1`, { properties: { startup_script: 'ip 10.0.0.1/24\n' } })
  await service.call('POST', `${campus}/links`, { nodes: ['PC1:e0', 'PC2:e0'], filters_ab: { delay: [10] } })
  await service.call('POST', `${campus}/drawings`, { svg: '<svg/>', x: 3 })
  const disk = randomBytes(1 << 20)
  await service.fetch(`${campus}/nodes/PC2/files/disk.img`, { method: 'POST', body: disk })
  return { service, disk }
}

const exported = async (service: TestService, query = ''): Promise<Buffer<ArrayBuffer>> => {
  const answer = await service.fetch(`${campus}/export${query}`)
  expect(answer.status).toBe(200)
  return Buffer.from(await answer.arrayBuffer())
}

const imported = (service: TestService, body: Buffer, { id = randomUUID() as string, query = '' } = {}) =>
  service.fetch(`${projects}/${id}/import${query}`, { method: 'POST', body: new Uint8Array(body) })

/** Names in a zip archive, with how each is stored. */
async function listOf(archive: Buffer): Promise<Map<string, yauzl.Entry>> {
  const zip = await promisify<Buffer, yauzl.ZipFile>(yauzl.fromBuffer)(archive)
  const entries = new Map<string, yauzl.Entry>()
  await new Promise((resolve, reject) => {
    zip
      .on('entry', (entry: yauzl.Entry) => entries.set(entry.fileName, entry))
      .on('end', resolve)
      .on('error', reject)
  })
  return entries
}

describe('an archive of a lab', () => {
  it.each([
    ['no', true],
    ['yes', false],
  ])(
    'keeps the MAC addresses of nodes, as a copy does, except with reset_mac_addresses: %s',
    async (resets, isKept) => {
      const { service } = await lab()
      const mac_address = '00:50:79:66:68:42'
      await service.call('POST', `${campus}/nodes`, { name: 'PC9', node_type: 'pc', properties: { mac_address } })
      await imported(service, await exported(service, `?reset_mac_addresses=${resets}`), { query: '?name=Import' })
      await service.call('POST', `${campus}/duplicate`, { name: 'Copy', reset_mac_addresses: resets === 'yes' })
      const addresses: unknown[] = []
      for (const name of ['import', 'copy']) {
        await service.call('POST', `${projects}/${name}/open`)
        const { properties }: LabNode = await service.call('GET', `${projects}/${name}/nodes/PC9`)
        addresses.push(properties.mac_address)
      }
      expect(addresses.map((address) => address === mac_address)).toEqual([isKept, isKept])
      expect(addresses).not.toContain(undefined)
    },
  )

  it('has the document and files in the form of release 2.2, with its words for kinds', async () => {
    const { service, disk } = await lab()
    const archive = await exported(service, '?compression=none')
    const names = await listOf(archive)
    const [, pc2]: LabNode[] = await service.call('GET', `${campus}/nodes`)
    const file = names.get(`project-files/vpcs/${pc2?.node_id}/disk.img`)
    expect([file?.uncompressedSize, file?.compressionMethod]).toEqual([disk.length, 0])
    const { start, size } = await placeOf(archive, 'project.gns3')
    const document = JSON.parse(archive.subarray(start, start + size).toString())
    expect(document).toMatchObject({ name: 'Campus', revision: 9, type: 'topology', grid_size: 50 })
    expect(document.topology.nodes.map((it: { node_type: string }) => it.node_type)).toEqual(['vpcs', 'vpcs'])
    // A program of release 2.2 refuses members that it does not know.
    expect(Object.keys(document.topology.nodes[0])).not.toContain('after')
    expect(Object.keys(document.topology.links[0]).sort()).toEqual(['filters', 'link_id', 'nodes', 'suspend'])
  })

  it('becomes a closed project with the same nodes, links, drawings and files', async () => {
    const { service, disk } = await lab()
    const archive = await exported(service)
    const answer = await imported(service, archive, { query: '?name=Copy' })
    expect(answer.status).toBe(201)
    expect(await answer.json()).toMatchObject({ name: 'Copy', status: 'closed', grid_size: 50 })
    await service.call('POST', `${projects}/copy/open`)
    const nodes: LabNode[] = await service.call('GET', `${projects}/copy/nodes`)
    expect(nodes.map(({ name, x, after }) => [name, x, after])).toEqual([
      ['PC1', 7, []],
      ['PC2', 7, ['PC1']],
    ])
    expect(nodes[0]?.properties.startup_script).toBe('ip 10.0.0.1/24\n')
    const [link]: LabLink[] = await service.call('GET', `${projects}/copy/links`)
    expect(link?.filters_ab).toEqual({ delay: [10] })
    const file = await service.fetch(`${projects}/copy/nodes/PC2/files/disk.img`)
    expect(Buffer.from(await file.arrayBuffer()).equals(disk)).toBe(true)
    await service.call('POST', `${projects}/copy/nodes/start`)
    expect(await service.call('GET', `${projects}/copy/stats`)).toMatchObject({ nodes: 2, links: 1, drawings: 1 })
  })

  it('is made while switches run, and so is a copy', async () => {
    const { service } = await lab()
    for (const node_type of ['switch', 'hub'])
      await service.call('POST', `${campus}/nodes`, { name: node_type, node_type })
    await service.call('POST', `${campus}/nodes/start`)
    for (const name of ['PC1', 'PC2']) await service.call('POST', `${campus}/nodes/${name}/stop`)
    expect((await service.call<LabNode>('GET', `${campus}/nodes/switch`)).status).toBe('started')
    const archive = await exported(service, '?compression=none')
    const { start, size } = await placeOf(archive, 'project.gns3')
    const { topology } = JSON.parse(archive.subarray(start, start + size).toString())
    // GNS3 2.2 opens no project with a property that it does not know.
    for (const { node_type, properties } of topology.nodes.slice(2))
      expect([node_type, Object.keys(properties)]).toEqual([expect.stringContaining('ethernet_'), ['ports_mapping']])
    expect((await imported(service, archive, { query: '?name=Moved' })).status).toBe(201)
    await service.call('POST', `${campus}/duplicate`, { name: 'Copy' })
    for (const name of ['moved', 'copy'])
      expect(await service.call('GET', `${projects}/${name}/stats`)).toMatchObject({ nodes: 4, links: 1 })
  })

  it('has no files of a deleted node, and has the members of other clients of the project and of links', async () => {
    const { service } = await lab()
    await service.call('PUT', campus, { kept: { theme: 'dark' } })
    const [, pc2]: LabNode[] = await service.call('GET', `${campus}/nodes`)
    await service.call('DELETE', `${campus}/nodes/PC2`)
    await service.call('POST', `${campus}/nodes`, { name: 'PC3', node_type: 'pc' })
    await service.call('POST', `${campus}/links`, { nodes: ['PC1:e0', 'PC3:e0'], kept: { weight: 3 } })
    const archive = await exported(service)
    const names = [...(await listOf(archive)).keys()]
    expect(names.filter((name) => name.includes(pc2?.node_id ?? ''))).toEqual([])
    const answer = await imported(service, archive, { query: '?name=Copy' })
    expect([answer.status, await answer.json()]).toMatchObject([201, { kept: { theme: 'dark' } }])
    await service.call('POST', `${projects}/copy/open`)
    expect(await service.call('GET', `${projects}/copy/links`)).toMatchObject([{ kept: { weight: 3 } }])
    const copy = await service.fetch(`${campus}/duplicate`, { method: 'POST', body: '{"name":"Twin"}' })
    expect(await copy.json()).toMatchObject({ kept: { theme: 'dark' } })
  })

  it('gets the next free name, and is refused when its id exists', async () => {
    const { service } = await lab()
    const archive = await exported(service)
    expect(await (await imported(service, archive)).json()).toMatchObject({ name: 'Campus2' })
    const { project_id }: LabProject = await service.call('GET', campus)
    const again = await imported(service, archive, { id: project_id })
    expect([again.status, again.headers.get('x-patchbay-error')]).toEqual([409, 'project-exists'])
    expect((await service.call<LabNode[]>('GET', `${campus}/nodes`)).length).toBe(2)
  })

  it('is made of a closed project for several clients at once', async () => {
    const { service } = await lab()
    await service.fetch(`${campus}/nodes/PC2/files/more.img`, { method: 'POST', body: randomBytes(16 << 20) })
    await service.call('POST', `${campus}/close`)
    const slow = await service.fetch(`${campus}/export?compression=none`)
    await exported(service)
    expect((await listOf(Buffer.from(await slow.arrayBuffer()))).size).toBeGreaterThan(3)
    expect((await service.call<LabProject>('GET', campus)).status).toBe('closed')
  })

  it('is made while a switch runs, which always does, and so is a copy of the project and of the switch', async () => {
    const { service } = await lab()
    const ports_mapping = [{ port_number: 0, name: 'up', type: 'access', vlan: 7 }]
    const made = { name: 'SW1', node_type: 'switch', properties: { ports_mapping } }
    expect(await service.call('POST', `${campus}/nodes`, made)).toMatchObject({ status: 'started' })
    expect((await imported(service, await exported(service))).status).toBe(201)
    await service.call('POST', `${campus}/duplicate`, { name: 'Copy' })
    await service.call('POST', `${projects}/Copy/open`)
    expect(await service.call('GET', `${projects}/Copy/nodes/SW1`)).toMatchObject({
      ...{ status: 'started', properties: { ports_mapping: [{ vlan: 7 }] } },
    })
    const twin = await service.call('POST', `${campus}/nodes/SW1/duplicate`, { x: 0, y: 0, z: 0 })
    expect(twin).toMatchObject({ status: 'started', properties: { ports_mapping: [{ vlan: 7 }] } })
  })

  it('is made of a closed project, and refused while a node runs', async () => {
    const { service } = await lab()
    await service.call('POST', `${campus}/nodes/PC1/start`)
    const refused = await service.fetch(`${campus}/export`)
    expect([refused.status, refused.headers.get('x-patchbay-error')]).toEqual([409, 'node-running'])
    await service.call('POST', `${campus}/close`)
    expect((await listOf(await exported(service))).has('project.gns3')).toBe(true)
    expect((await service.call<LabProject>('GET', campus)).status).toBe('closed')
  })
})

describe('images of an archive', () => {
  const images = '/v2/compute/machine-emulator/images'
  const namesOf = async (service: TestService) =>
    (await service.call<{ path: string }[]>('GET', images)).map(({ path }) => path)
  /** A service whose images go with the test, so that it can serve the next one. */
  async function serviceOfImages(): Promise<TestService> {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    onTestFinished(async () => {
      for (const { project_id } of await service.call<LabProject[]>('GET', projects))
        await service.call('DELETE', `${projects}/${project_id}`)
      for (const name of await namesOf(service)) await service.call('DELETE', `${images}/${name}`)
    })
    return service
  }
  /** A lab with a machine whose disk is that image, and its archive. */
  async function machineLab(query: string) {
    const service = await serviceOfImages()
    const disk = randomBytes(4096)
    await service.fetch(`${images}/disk.img`, { method: 'POST', body: disk })
    await service.call('POST', projects, { name: 'Campus' })
    const properties = { platform: 'x86_64', hda_disk_image: 'disk.img' }
    await service.call('POST', `${campus}/nodes`, { name: 'M1', node_type: 'machine-emulator', properties })
    return { service, disk, archive: await exported(service, query) }
  }
  const machineIn = async (service: TestService): Promise<unknown[]> => {
    await service.call('POST', `${projects}/copy/open`)
    const { properties, status_reason }: LabNode = await service.call('GET', `${projects}/copy/nodes/M1`)
    return [properties.hda_disk_image, status_reason]
  }

  it('are stored where they are missing, and under another name beside a different image', async () => {
    const { archive } = await machineLab('?include_images=yes')
    const other = await serviceOfImages()
    expect((await imported(other, archive, { query: '?name=Copy' })).status).toBe(201)
    expect([await machineIn(other), await namesOf(other)]).toEqual([['disk.img', null], ['disk.img']])
    await other.call('DELETE', `${projects}/copy`)
    await other.fetch(`${images}/disk.img`, { method: 'POST', body: randomBytes(4096) })
    expect((await imported(other, archive, { query: '?name=Copy' })).status).toBe(201)
    expect(await machineIn(other)).toEqual([expect.stringMatching(/^disk-[0-9a-f]{8}\.img$/), null])
  })

  it('are found by their digests under other names, also when the archive has the digests alone', async () => {
    const { disk, archive } = await machineLab('')
    const other = await serviceOfImages()
    await other.fetch(`${images}/named-otherwise.img`, { method: 'POST', body: disk })
    expect((await imported(other, archive, { query: '?name=Copy' })).status).toBe(201)
    expect(await machineIn(other)).toEqual(['named-otherwise.img', null])
  })

  it('with other digests than the archive says are refused, and so is the archive', async () => {
    const { archive } = await machineLab('?include_images=yes&compression=none')
    const { start, size } = await placeOf(archive, 'patchbay.json')
    const more = JSON.parse(archive.subarray(start, start + size).toString())
    const members = await Promise.all(
      [...(await listOf(archive)).keys()].map(async (name): Promise<ZipMember> => {
        const place = await placeOf(archive, name)
        return { name, data: archive.subarray(place.start, place.start + place.size) }
      }),
    )
    more.images['QEMU/disk.img'] = '0'.repeat(64)
    const forged = members.map((it) => (it.name === 'patchbay.json' ? { ...it, data: JSON.stringify(more) } : it))
    const other = await serviceOfImages()
    expect((await imported(other, zipOf(forged))).status).toBe(400)
    expect([await other.call('GET', projects), await namesOf(other), await placesOf(other)]).toEqual([[], [], []])
  })
})

describe('an import or a copy of a lab', () => {
  it('leaves nothing when the disk is full', async () => {
    const { service } = await lab()
    const archive = await exported(service)
    const { project_id }: LabProject = await service.call('GET', campus)
    await service.end()
    await service.configure({ 'pc.engine': 'embedded', min_free_space_mb: 1_000_000_000 })
    await service.restart()
    expect((await imported(service, archive)).status).toBe(507)
    const copied = await service.fetch(`${campus}/duplicate`, { method: 'POST', body: '{"name":"Copy"}' })
    expect(copied.status).toBe(507)
    expect((await service.call<LabProject[]>('GET', projects)).map(({ name }) => name)).toEqual(['Campus'])
    expect(await placesOf(service)).toEqual([project_id, `${project_id}.jsonl`])
  })

  it.each([
    ['import', 'labs'],
    ['import', 'projects'],
    ['duplicate', 'labs'],
    ['duplicate', 'projects'],
  ])('is whole or gone when the service is killed during %s, with the first of its %s', async (what, place) => {
    const { service } = await lab()
    await service.fetch(`${campus}/nodes/PC2/files/more.img`, { method: 'POST', body: randomBytes(16 << 20) })
    const archive = await exported(service, '?compression=none')
    const began = changeIn(join(service.data, place))
    const answer = (
      what === 'import'
        ? imported(service, archive, { query: '?name=Copy' })
        : service.fetch(`${campus}/duplicate`, { method: 'POST', body: '{"name":"Copy"}' })
    ).then(
      ({ status }) => status,
      () => 'none',
    )
    await began
    await service.kill('SIGKILL')
    const isWhole = (await answer) === 201
    await service.restart()
    await service.call('POST', `${campus}/open`)
    const found: LabProject[] = await service.call('GET', projects)
    if (isWhole) expect(found.map(({ name }) => name)).toEqual(['Campus', 'Copy'])
    // What was begun is removed after the start, and not shown meanwhile.
    const own = [found[0]?.project_id, `${found[0]?.project_id}.jsonl`]
    if (found.length === 1) await expect.poll(() => placesOf(service)).toEqual(own)
    else expect(await service.call('GET', `${projects}/copy/stats`)).toMatchObject({ nodes: 2, links: 1 })
  })
})

describe('a docker node of GNS3', () => {
  it('is a container that waits for its image, with the configuration of its interfaces', async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const id = randomUUID()
    const properties = { image: 'alpine', adapters: 2, start_command: 'sh', memory: 64, extra_hosts: 'db:10.0.0.9' }
    const nodes = [{ node_id: id, name: 'Box', node_type: 'docker', console_type: 'vnc', properties }]
    const text = 'auto eth0\niface eth0 inet dhcp\n'
    const body = zipOf([
      documentOf({ nodes }),
      { name: `project-files/docker/${id}/etc/network/interfaces`, data: text },
    ])
    const answer = await imported(service, body)
    expect([answer.status, await answer.json()]).toMatchObject([
      201,
      {
        left_out: ['console_type of Box'],
        cannot_run: [{ name: 'Box', kind: 'container', reason: expect.stringContaining('alpine_latest.tar') }],
      },
    ])
    await service.call('POST', `${projects}/hostile/open`)
    const shown: LabNode = await service.call('GET', `${projects}/hostile/nodes/Box`)
    expect(shown).toMatchObject({
      node_type: 'container',
      console_type: 'telnet',
      properties: {
        image: 'alpine_latest.tar',
        adapters: 2,
        command: 'sh',
        ...{ hosts: '10.0.0.9 db', ram: 64 },
        files: [{ path: '/etc/network/interfaces', text }],
      },
    })
    expect(shown.ports.map(({ name }) => name)).toEqual(['eth0', 'eth1'])
  })
})

describe('a placeholder', () => {
  it('is a node of an unknown kind: it keeps its fields, ports and links, and says why it does not start', async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const [pc, box] = [randomUUID(), randomUUID()]
    const ends = [pc, box].map((node_id) => ({ node_id, adapter_number: 0, port_number: 0 }))
    const nodes = [
      { node_id: pc, name: 'PC1', node_type: 'vpcs' },
      { node_id: box, name: 'Box', node_type: 'traceng', properties: { ip_address: '10.0.0.1' } },
    ]
    const links = [{ link_id: randomUUID(), nodes: ends, filters: {} }]
    const body = zipOf([documentOf({ nodes, links })])
    const answer = await imported(service, body)
    expect(answer.status).toBe(201)
    expect(await answer.json()).toMatchObject({
      cannot_run: [{ name: 'Box', kind: 'traceng', images: [], reason: 'there is no kind traceng here' }],
    })
    await service.call('POST', `${projects}/hostile/open`)
    const shown: LabNode = await service.call('GET', `${projects}/hostile/nodes/Box`)
    expect(shown).toMatchObject({ node_type: 'traceng', properties: { ip_address: '10.0.0.1' } })
    expect(shown.ports.map(({ name }) => name)).toEqual(['0/0'])
    expect(shown.status_reason).toContain('this service has no kind traceng')
    const start = await service.fetch(`${projects}/hostile/nodes/Box/start`, { method: 'POST' })
    expect([start.status, await start.text()]).toEqual([
      409,
      expect.stringContaining('this service has no kind traceng'),
    ])
    const [path, json] = [`${projects}/hostile/nodes/Box`, (value: object) => JSON.stringify(value)]
    const requests = [
      ...[
        ['POST', 'stop'],
        ['POST', 'reload'],
        ['POST', 'console/reset'],
        ['GET', 'console/log'],
        ['GET', 'config'],
      ],
      ...[
        ['POST', 'duplicate', json({ x: 1, y: 1 })],
        ['POST', 'console/expect', json({ expect: 'x' })],
        ['POST', 'ready', json({ seconds: 0 })],
        ['PUT', 'config', 'text'],
      ],
    ]
    for (const [method, what, body] of requests) {
      const answer = await service.fetch(`${path}/${what}`, {
        method,
        ...(body !== undefined && { body }),
      } as RequestInit)
      const said = [method, what, answer.status, await answer.text()]
      expect(said).toEqual([method, what, 409, expect.stringContaining('this service has no kind traceng')])
    }
    await service.call('POST', `${projects}/hostile/nodes/start`)
    const [link]: LabLink[] = await service.call('GET', `${projects}/hostile/links`)
    expect(link?.nodes.map((it) => it.port_number)).toEqual([0, 0])
    await service.call('DELETE', `${projects}/hostile/nodes/Box`)
    expect(await service.call('GET', `${projects}/hostile/links`)).toEqual([])
  })
})

const documentOf = (topology: object = {}, more: object = {}): ZipMember => ({
  name: 'project.gns3',
  data: JSON.stringify({
    ...{ name: 'Hostile', revision: 9, type: 'topology' },
    topology: { nodes: [], links: [], drawings: [], computes: [], ...topology },
    ...more,
  }),
})

describe('snapshots in an archive', () => {
  const notes = async (service: TestService, at: string) => (await service.fetch(`${at}/nodes/PC1/files/notes`)).text()
  const write = (service: TestService, text: string) =>
    service.fetch(`${campus}/nodes/PC1/files/notes`, { method: 'POST', body: text })

  it('are restored in the imported project, with its ids; they have their names and times', async () => {
    const { service } = await lab()
    await service.call('POST', `${campus}/nodes`, { name: 'Switch', node_type: 'switch' })
    await write(service, 'first')
    const first: LabSnapshot = await service.call('POST', `${campus}/snapshots`, { name: 'Anfänge: 1' })
    await write(service, 'second')
    await service.call('DELETE', `${campus}/nodes/PC2`)
    await service.call('POST', `${campus}/nodes/PC1/start`)
    const second: LabSnapshot = await service.call('POST', `${campus}/snapshots`, { name: 'running' })
    await service.call('POST', `${campus}/nodes/PC1/stop`)
    await write(service, 'third')
    expect([...(await listOf(await exported(service))).keys()].filter((it) => it.startsWith('snapshots/'))).toEqual([])
    const archive = await exported(service, '?include_snapshots=yes')
    const names = [...(await listOf(archive)).keys()].filter((it) => it.startsWith('snapshots/'))
    expect(names).toEqual([
      'snapshots/snapshots.conf',
      expect.stringMatching(/^snapshots\/Anf_nge_ 1_\d{6}_\d{6}\.gns3project$/),
      expect.stringMatching(/^snapshots\/running_\d{6}_\d{6}\.gns3project$/),
    ])
    await (await imported(service, archive, { query: '?name=Copy' })).json()
    const copy = `${projects}/copy`
    await service.call('POST', `${copy}/open`)
    const [one, two]: LabSnapshot[] = await service.call('GET', `${copy}/snapshots`)
    expect([one, two]).toMatchObject([
      { name: 'Anfänge: 1', created_at: first.created_at, running: 0 },
      { name: 'running', created_at: second.created_at, running: 0 },
    ])
    const nodes = async () => (await service.call<LabNode[]>('GET', `${copy}/nodes`)).map((it) => [it.name, it.node_id])
    const [pc1, box] = await nodes()
    expect([pc1?.[0], box?.[0], await notes(service, copy)]).toEqual(['PC1', 'Switch', 'third'])
    await service.call('POST', `${copy}/snapshots/${one?.snapshot_id}/restore`)
    expect(await nodes()).toEqual([pc1, ['PC2', expect.any(String)], box])
    expect(await notes(service, copy)).toBe('first')
    expect(await service.call('GET', `${copy}/links`)).toMatchObject([{ filters_ab: { delay: [10] } }])
    await service.call('POST', `${copy}/nodes/start`)
    await service.call('POST', `${copy}/snapshots/${two?.snapshot_id}/restore`)
    expect([await nodes(), await notes(service, copy)]).toEqual([[pc1, box], 'second'])
    expect(await service.call('GET', copy)).toMatchObject({ name: 'Copy', path: expect.stringContaining('/') })
  })

  const id = randomUUID()
  const pc = (name: string) => ({ nodes: [{ node_id: id, name, node_type: 'vpcs' }] })
  const nested = (member: Buffer, name = 'snapshots/Base_241225_101112.gns3project') =>
    zipOf([documentOf(pc('PC9')), { name, data: member }])

  it('of release 2.2 have their names and times in the names of their files', async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const answer = await imported(service, nested(zipOf([documentOf(pc('PC1'))])))
    expect([answer.status, await answer.text()]).toEqual([201, expect.any(String)])
    const [base]: LabSnapshot[] = await service.call('GET', `${projects}/hostile/snapshots`)
    expect(base).toMatchObject({ name: 'Base', created_at: Date.UTC(2025, 11, 24, 10, 11, 12) / 1000 })
    await service.call('POST', `${projects}/hostile/snapshots/${base?.snapshot_id}/restore`)
    expect(await service.call('GET', `${projects}/hostile/nodes`)).toMatchObject([{ name: 'PC1' }])
  })

  it('since release 2.2.58 have them in a list', async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const data = zipOf([documentOf(pc('PC1'))])
    const list = [{ snapshot_id: id, name: 'Größe', created_at: 12, filename: 'a.gns3snapshot', description: '' }]
    const archive = zipOf([
      documentOf(pc('PC9')),
      { name: 'snapshots/snapshots.conf', data: JSON.stringify(list) },
      { name: 'snapshots/a.gns3snapshot', data },
      { name: 'snapshots/b.gns3snapshot', data },
    ])
    expect((await imported(service, archive)).status).toBe(201)
    expect(await service.call('GET', `${projects}/hostile/snapshots`)).toMatchObject([
      { name: 'Größe', created_at: 12 },
      { name: 'b' },
    ])
  })

  it.for([
    ['no zip file', Buffer.from('no zip file'), 400, 'is not a zip archive'],
    ['of another version', zipOf([documentOf({}, { revision: 12 })]), 409, 'revision 12'],
    ['without a document', zipOf([{ name: 'a' }]), 400, 'no project.gns3'],
  ] as const)('that are %s are refused with the archive, and nothing is left', async ([, member, status, why]) => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const fine = { name: 'snapshots/A.gns3project', data: zipOf([documentOf(pc('PC1'))]) }
    const answer = await imported(
      service,
      zipOf([documentOf(pc('PC9')), fine, { name: 'snapshots/B.gns3project', data: member }]),
    )
    expect([answer.status, (await answer.json()).message]).toEqual([status, expect.stringContaining(why)])
    expect(await service.call('GET', projects)).toEqual([])
    expect(await readdir(join(service.data, 'projects'))).toEqual([])
    expect((await readdir(join(service.data, 'labs'))).filter((it) => it.endsWith('.jsonl'))).toEqual([])
  })
})

/** Without 1,000 bytes before its directory. */
const middleCut = (archive: Buffer): Buffer => {
  const at = archive.indexOf('PK\x01\x02', 0, 'latin1')
  return Buffer.concat([archive.subarray(0, at - 1000), archive.subarray(at)])
}
const bomb = deflateRawSync(Buffer.alloc(64 << 20))

describe('an archive of another program', () => {
  const id = randomUUID()
  const member = (given: Partial<ZipMember>): Buffer =>
    zipOf([documentOf(), { name: 'project-files/a', data: 'x', ...given }])
  const end = { adapter_number: 0, port_number: 0 }
  it.each<[what: string, body: Buffer, status: number, why: string]>([
    ['has a name with ".."', member({ name: 'project-files/../../a' }), 400, 'invalid'],
    ['has an absolute name', member({ name: '/etc/passwd' }), 400, 'absolute'],
    ['has a name with a backslash', member({ name: 'project-files\\a' }), 400, 'invalid'],
    ['has a name with an empty part', member({ name: 'project-files//a' }), 400, 'not a valid file name'],
    ['has records of the service', member({ name: '.patchbay/project.json' }), 400, 'reserved for the service'],
    ['has a name twice', zipOf([documentOf(), { name: 'a' }, { name: 'a' }]), 400, 'twice'],
    ['has a file where a directory is', zipOf([documentOf(), { name: 'a' }, { name: 'a/b' }]), 400, 'twice'],
    [
      'has one file by two words for its kind',
      zipOf([documentOf(), { name: 'project-files/vpcs/a' }, { name: 'project-files/pc/a' }]),
      ...([400, 'twice'] as const),
    ],
    [
      'has one file by two spellings of the id of its node',
      zipOf([
        documentOf({ nodes: [{ node_id: id, name: 'PC1', node_type: 'vpcs' }] }),
        { name: `project-files/vpcs/${id}/a` },
        { name: `project-files/vpcs/${id.toUpperCase()}/a` },
      ]),
      ...([400, 'twice'] as const),
    ],
    [
      'has one image by two spellings of its directory',
      zipOf([documentOf(), { name: 'images/QEMU/a' }, { name: 'images/qemu/a' }]),
      ...([400, 'twice'] as const),
    ],
    ...(['its other end', 'another link'] as const).map((other): [string, Buffer, number, string] => {
      const ends = (first: number, second: number) =>
        [first, second].map((port_number) => ({ ...end, node_id: id, port_number }))
      const links = other === 'its other end' ? [ends(0, 0)] : [ends(0, 1), ends(2, 1)]
      const nodes = [{ node_id: id, name: 'SW', node_type: 'ethernet_switch' }]
      const all = links.map((it, index) => ({ link_id: id.replace(/.$/, String(index)), nodes: it }))
      return [`has a link to a port that ${other} has`, zipOf([documentOf({ nodes, links: all })]), 400, 'linked']
    }),
    ['has a name with a NUL', member({ name: 'project-files/a\0b' }), 400, 'not a valid file name'],
    [
      'has a name that no file system takes',
      member({ name: `project-files/${'a'.repeat(300)}` }),
      400,
      'more than 255 bytes',
    ],
    ['has a name that is too long', member({ name: 'a/'.repeat(600) }), 400, 'more than 1024 bytes'],
    [
      'has a file where the directory of a node is',
      zipOf([
        documentOf({ nodes: [{ node_id: id, name: 'PC1', node_type: 'vpcs' }] }),
        { name: `project-files/vpcs/${id}`, data: 'x' },
      ]),
      ...([400, 'the name of a directory'] as const),
    ],
    [
      'has a file where the directory of nodes is',
      zipOf([documentOf(), { name: 'project-files', data: 'x' }]),
      400,
      'the name of a directory',
    ],
    [
      'has a member that is longer than it says, and hides what follows',
      zipOf([documentOf(), { name: 'a', data: deflateRawSync(Buffer.alloc(4096)), method: 8, size: 4095 }]),
      ...([400, 'too many bytes'] as const),
    ],
    [
      'is a bomb of many files',
      zipOf([
        documentOf(),
        ...Array.from({ length: 40 }, (_, at) => ({ name: `${at}`, data: bomb, method: 8, size: 64 << 20 })),
      ]),
      ...([413, 'would become'] as const),
    ],
    [
      'has files that share their bytes',
      zipOf([documentOf(), { name: 'a', data: bomb, method: 8, size: 64 << 20 }], { repeat: 40 }),
      ...([400, 'are larger than the archive'] as const),
    ],
    ['has a link', member({ mode: 0o120777, data: '/etc/passwd' }), 400, 'is a link'],
    ['has a device', member({ mode: 0o020666 }), 400, 'is a link or a device'],
    ['is encrypted', member({ flags: 0x801, method: 8 }), 400, 'encrypted'],
    ['is compressed by another method', member({ method: 14 }), 400, 'method 14'],
    ['lies about the sum of a file', member({ crc: 1 }), 400, 'damaged'],
    ['lies about the size of a stored file', member({ size: 9 }), 400, 'size'],
    ['lies about the size of a deflated file', member({ data: bomb, method: 8, size: 9 }), 400, 'too many bytes'],
    [
      'is a bomb',
      zipOf([documentOf(), { name: 'a', data: bomb, method: 8, size: 2 ** 31 }]),
      ...([413, 'would become'] as const),
    ],
    ['has no document', zipOf([{ name: 'project-files/a' }]), 400, 'no project.gns3'],
    ['has a document that is no JSON', zipOf([{ name: 'project.gns3', data: '{' }]), 400, 'not JSON'],
    ['has a document of a newer version', zipOf([documentOf({}, { revision: 11 })]), 409, 'revision 11'],
    ['has a document without nodes', zipOf([documentOf({ nodes: undefined })]), 400, 'nodes'],
    [
      'has a node twice',
      zipOf([documentOf({ nodes: [1, 2].map((it) => ({ node_id: id, name: `PC${it}`, node_type: 'vpcs' })) })]),
      ...([400, 'twice'] as const),
    ],
    [
      'has a link to a node that is not there',
      zipOf([documentOf({ links: [{ link_id: id, nodes: [1, 2].map(() => ({ node_id: id, ...end })) }] })]),
      ...([400, 'is not among its nodes'] as const),
    ],
    [
      'is of another program',
      zipOf([{ name: 'word/document.xml' }, { name: '[Content_Types].xml' }]),
      400,
      'no project.gns3',
    ],
    ['has a document that is no object', zipOf([{ name: 'project.gns3', data: '[1]' }]), 400, 'project.gns3'],
    [
      'is cut in the middle',
      member({ data: randomBytes(4096) }).subarray(0, 2048),
      400,
      'incomplete, damaged or unsafe',
    ],
    ['lacks bytes in its middle', middleCut(member({ data: randomBytes(4096) })), 400, ''],
    ['is cut', member({}).subarray(0, -30), 400, 'incomplete, damaged or unsafe'],
    ['is none', randomBytes(4096), 400, 'is not a zip archive'],
    ['is empty', Buffer.alloc(0), 400, ''],
  ])('is refused when it %s, and leaves nothing', async (_, body, status, why) => {
    const service = await shared()
    const answer = await imported(service, body)
    expect([answer.status, await answer.text()]).toEqual([status, expect.stringContaining(why)])
    expect(await service.call('GET', projects)).toEqual([])
    expect(await readdir(join(service.data, 'projects'))).toEqual([])
    expect((await readdir(join(service.data, 'labs'))).filter((name) => /-.*\.jsonl/.test(name))).toEqual([])
    expect((await readdir(service.data)).filter((name) => name.startsWith('archive-'))).toEqual([])
  })

  it('leaves nothing when the client disconnects during the body', async () => {
    const service = await shared()
    const gone = new AbortController()
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new Uint8Array(zipOf([documentOf()])))
        setTimeout(() => gone.abort(), 0)
      },
    })
    const init = { method: 'POST', body, signal: gone.signal, duplex: 'half' } as RequestInit
    await service.fetch(`${projects}/${randomUUID()}/import`, init).catch(() => {})
    expect(await service.call('GET', projects)).toEqual([])
    expect(await readdir(join(service.data, 'projects'))).toEqual([])
  })
})

/** What there is of labs on the disk: directories of projects and documents. */
const placesOf = async ({ data }: TestService): Promise<string[]> =>
  [
    ...(await readdir(join(data, 'projects'))),
    ...(await readdir(join(data, 'labs'))).filter((name) => /-.*\.jsonl/.test(name)),
    ...(await readdir(data)).filter((name) => name.startsWith('archive-')),
  ].sort()

/** Resolves when something is new in a directory. */
async function changeIn(directory: string): Promise<void> {
  const before = (await readdir(directory)).length
  const changes = watch(directory)
  if ((await readdir(directory)).length > before) return
  for await (const _ of changes) if ((await readdir(directory)).length > before) return
}

let starting: Promise<TestService> | undefined
const shared = (): Promise<TestService> => {
  starting ??= TestService.startForAll({ 'pc.engine': 'embedded' })
  return starting
}

afterAll(async () => (await starting)?.close())

/** Where a stored member has its bytes. */
async function placeOf(archive: Buffer, name: string): Promise<{ start: number; size: number }> {
  const entry = (await listOf(archive)).get(name) as yauzl.Entry
  const at = entry.relativeOffsetOfLocalHeader
  const start = at + 30 + archive.readUInt16LE(at + 26) + archive.readUInt16LE(at + 28)
  return { start, size: entry.uncompressedSize }
}
