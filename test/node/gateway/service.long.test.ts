import { randomBytes, randomUUID } from 'node:crypto'
import { readdir, readFile, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { beforeAll, describe, expect, it, onTestFinished, test } from 'vitest'
import type { Compute } from '../../../src/model/compute.ts'
import type { LabNode } from '../../../src/model/lab/node.ts'
import type { LabProject } from '../../../src/model/lab/project.ts'
import type { Project } from '../../../src/model/project.ts'
import { figure, parseExposition } from '../../support/exposition.ts'
import { json, StandIn } from '../../support/fleet.ts'
import { GatewayLab, patch, portOf, serveManyClients } from '../../support/gateway-lab.ts'
import { createPc, start, status } from '../../support/lab.ts'
import { collect, readPcap } from '../../support/pcap.ts'
import type { TestService } from '../../support/service.ts'
import { openSocketConsole } from '../../support/socket-console.ts'

const projects = '/v2/compute/projects'
const lab = GatewayLab.forAll()

const pingTwice = 'ping 10.0.0.2 -c 2 -i 50\r'

test('pcs on two computes ping each other, also when one compute has joined', async () => {
  const { gateway } = lab
  const [here, there, elsewhere] = [await lab.project('a'), await lab.project('b'), await lab.project(lab.farId)]
  const pc1 = await createPc(gateway, here, 1)
  // The first pcs of two projects have the same MAC address.
  await createPc(gateway, there, 3)
  await createPc(gateway, elsewhere, 3)
  const [pc2, far] = [await createPc(gateway, there, 2), await createPc(gateway, elsewhere, 4)]
  expect((await patch(gateway, pc1, pc2)).status).toBe(201)
  await start(gateway, pc1, pc2, far)
  const console = await openSocketConsole(gateway, pc1)
  await console.expect('PC1> ')
  console.socket.send(pingTwice)
  await console.expect('10.0.0.2 icmp_seq=2 ttl=64')
  await gateway.call('DELETE', `${pc1}/adapters/0/ports/0/nio`)
  expect((await patch(gateway, pc1, far)).status).toBe(201)
  console.socket.send('ping 10.0.0.4 -c 2 -i 50\r')
  await console.expect('10.0.0.4 icmp_seq=2 ttl=64')
})

test('a link between computes is there again when an undo gives its port back', async () => {
  const { gateway } = lab
  const at = '/v2/projects/unplugged'
  const port = (port_number: number) => ({ name: `Ethernet${port_number}`, port_number, type: 'access', vlan: 1 })
  await gateway.call('POST', '/v2/projects', { name: 'unplugged', compute_id: 'a' })
  await gateway.call('POST', `${at}/nodes`, { name: 'PC1', node_type: 'pc', compute_id: 'a' })
  const properties = { ports_mapping: [port(0), port(1)] }
  await gateway.call('POST', `${at}/nodes`, { name: 'SW', node_type: 'switch', compute_id: 'b', properties })
  await gateway.call('POST', `${at}/links`, { nodes: ['PC1:e0', 'SW:e1'] })
  const { project_id, node_id } = await gateway.call<LabNode>('GET', `${at}/nodes/SW`)
  const nio = `${projects}/${project_id}/switch/nodes/${node_id}/adapters/0/ports/1/nio`
  const isAttached = async () => (await gateway.fetch(nio)).status === 200
  expect(await isAttached()).toBe(true)
  await gateway.call('PUT', `${at}/nodes/SW`, { properties: { ports_mapping: [port(0)] } })
  expect(await isAttached()).toBe(false)
  await gateway.call('POST', `${at}/undo`)
  expect(await isAttached()).toBe(true)
  await gateway.call('DELETE', at)
})

test('a console and a live capture go through gateway, tunnel and keeper', async () => {
  const { gateway } = lab
  const project = await lab.project(lab.farId)
  const [pc1, pc2] = [await createPc(gateway, project, 1), await createPc(gateway, project, 2)]
  expect((await patch(gateway, pc1, pc2)).status).toBe(201)
  await start(gateway, pc1, pc2)
  const console = await openSocketConsole(gateway, pc1)
  const port = `${pc1}/adapters/0/ports/0`
  const live = collect(await gateway.fetch(`${port}/capture/stream`, { method: 'POST', body: '{}' }))
  await console.expect('PC1> ')
  console.socket.send(pingTwice)
  await console.expect('icmp_seq=2 ttl=64')
  const pings = () => readPcap(live.bytes()).records.filter(({ frame }) => frame.readUInt16BE(12) === 0x0800)
  await expect.poll(pings).toHaveLength(4)
  await gateway.call('DELETE', `${port}/nio`)
  await live.ended
  await gateway.call('POST', `${pc1}/stop`)
  await console.closed
})

test.each(['a', 'far'] as const)(
  'a file is uploaded to %s and downloaded, at the speed of the receiver',
  async (name) => {
    const { gateway } = lab
    const compute = lab[name]
    const project = await lab.project(name === 'a' ? name : lab.farId)
    const content = randomBytes(16 * 2 ** 20)
    const file = `${project}/files/whole.bin`
    expect((await gateway.fetch(file, { method: 'POST', body: content })).status).toBeLessThan(300)
    const back = Buffer.from(await (await gateway.fetch(file)).arrayBuffer())
    expect(back.equals(content)).toBe(true)

    // Halfabyte that nobody reads, or takes.
    const places = join(compute.data, 'projects', idOf(project))
    await truncate(join(places, await pathIn(places, 'whole.bin')), 2 ** 29)
    const before = await bytesRead(compute)
    const over = new AbortController()
    const down = await gateway.fetch(file, { signal: over.signal })
    expect(down.headers.get('content-length')).toBe(String(2 ** 29))
    expect((await settled(() => bytesRead(compute))) - before).toBeLessThan(2 ** 27)
    process.kill(compute.pid, 'SIGSTOP')
    onTestFinished(() => void process.kill(compute.pid, 'SIGCONT'))
    let sent = 0
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (over.signal.aborted) return controller.close()
        controller.enqueue(content.slice(0, 2 ** 20))
        sent += 2 ** 20
      },
    })
    const init = { method: 'POST', body: endless, duplex: 'half', signal: over.signal } as RequestInit
    const up = gateway.fetch(`${project}/files/endless.bin`, init)
    expect(await settled(async () => sent)).toBeLessThan(2 ** 26)
    over.abort()
    await expect(up).rejects.toThrow()
    process.kill(compute.pid, 'SIGCONT')
    expect((await gateway.fetch(project)).status).toBe(200)
  },
)

test('100 clients at once: each has its project and its node once, and the computes share them', async () => {
  await serveManyClients(lab.gateway, lab.computes)
})

test('projects of a killed compute are 503 until it is back; all others go on', async () => {
  const { gateway, a } = lab
  const [onA, onB] = [await lab.project('a'), await lab.project('b')]
  const pc = await createPc(gateway, onA, 1)
  await start(gateway, pc)
  const port = portOf(a)
  await a.kill('SIGKILL')
  await lab.shows('a', { connected: false })
  const gone = await gateway.fetch(pc)
  expect([gone.status, Number(gone.headers.get('retry-after'))]).toEqual([503, expect.any(Number)])
  expect(Number(gone.headers.get('retry-after'))).toBeGreaterThan(0)
  const list = await gateway.fetch(projects)
  expect(list.headers.get('x-patchbay-unreachable')).toBe('compute%20a')
  expect(idsOf(await list.json())).toContain(idOf(onB))
  expect((await gateway.fetch(`${onB}/pc/nodes`)).status).toBe(200)
  const elsewhere = await gateway.call<Project>('POST', projects, { name: 'lab' })
  expect((await gateway.fetch(`${projects}/${elsewhere.project_id}`)).status).toBe(200)
  const wanted = { method: 'POST', body: JSON.stringify({ name: 'lab', compute_id: 'a' }) }
  expect((await gateway.fetch(projects, wanted)).status).toBe(503)

  await a.restart(port)
  await lab.shows('a', { connected: true })
  // Its keeper held the node.
  expect(await status(gateway, pc)).toBe('started')
  expect(idsOf(await gateway.call('GET', projects))).toEqual(expect.arrayContaining([onA, onB].map(idOf)))
})

test('a killed gateway has all acknowledged changes after its start, and its computes connect again', async () => {
  const { gateway } = lab
  const before = [await lab.project('a'), await lab.project('b'), await lab.project(lab.farId)]
  const ids = Array.from({ length: 30 }, () => randomUUID())
  const wanted = new Set<string>(ids)
  let count = 0
  let tenth = () => {}
  const enough = new Promise<void>((resolve) => (tenth = resolve))
  const ends = Promise.allSettled(
    ids.map(async (project_id) => {
      await gateway.call('POST', projects, { name: 'lab', project_id })
      if (++count === 10) tenth()
    }),
  )
  await enough
  const port = portOf(gateway)
  await gateway.kill('SIGKILL')
  const told = new Set((await ends).flatMap(({ status }, index) => (status === 'fulfilled' ? [ids[index]] : [])))
  await gateway.restart(port)
  for (const id of ['a', 'b', lab.farId]) await lab.shows(id, { connected: true })
  const figures = parseExposition(await (await gateway.fetch('/metrics')).text())
  expect(figure(figures, 'patchbay_computes', { state: 'connected' })).toBe(3)
  expect(figures.get('patchbay_info')?.samples).toHaveLength(1)
  for (const path of before) expect((await gateway.fetch(path)).status).toBe(200)
  for (const id of told) expect((await gateway.fetch(`${projects}/${id}`)).status).toBe(200)
  // What nobody was told of may be there or not: it is asked for again, and is there once.
  await Promise.all(ids.map((project_id) => gateway.call('POST', projects, { name: 'lab', project_id })))
  const all = await Promise.all(lab.computes.map((compute) => compute.call<Project[]>('GET', projects)))
  const found = all.flatMap(idsOf).filter((id) => wanted.has(id))
  expect(found.sort()).toEqual(ids.toSorted())
})

test('computes that are silent, slow or lie are named in lists, and delay answers only for a limited time', async () => {
  const { gateway, b } = lab
  const [onA, onB] = [await lab.project('a'), await lab.project('b')]
  const { version } = await gateway.call<{ version: string }>('GET', '/v2/compute/version')
  const standIn = async (compute_id: string, answer: StandIn['answer'], said: unknown = version) => {
    const it = await StandIn.start()
    it.capabilities = (_, res) => json(res, 200, { version: said, platform: 'linux', node_types: ['pc'] })
    it.answer = answer
    const input = it.input({ compute_id, name: compute_id, accepts_projects: false })
    return gateway.fetch('/v2/computes', { method: 'POST', body: JSON.stringify(input) })
  }
  expect((await standIn('slow', () => {})).status).toBe(201)
  expect((await standIn('liar', (_, res) => json(res, 200, { what: 'ever' }))).status).toBe(201)
  const other = await standIn('other', () => {}, '99.0.0')
  expect([other.status, await other.json()]).toMatchObject([409, { message: /99\.0\.0/ }])
  onTestFinished(async () => {
    for (const id of ['slow', 'liar']) await gateway.call('DELETE', `/v2/computes/${id}`)
  })

  process.kill(b.pid, 'SIGSTOP')
  onTestFinished(() => void process.kill(b.pid, 'SIGCONT'))
  const began = Date.now()
  const waiting = gateway.fetch(onB)
  const list = await gateway.fetch(projects)
  expect(Date.now() - began).toBeLessThan(30_000)
  expect(list.headers.get('x-patchbay-unreachable')?.split(', ').sort()).toEqual(['compute%20b', 'liar', 'slow'])
  expect(idsOf(await list.json())).toContain(idOf(onA))
  expect((await gateway.fetch(onA)).status).toBe(200)
  expect([503, 504]).toContain((await waiting).status)
  expect(Date.now() - began).toBeLessThan(45_000)
  await lab.shows('b', { connected: false })
  const refused = await gateway.fetch(onB)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
  process.kill(b.pid, 'SIGCONT')
  await lab.shows('b', { connected: true })
  expect((await gateway.fetch(onB)).status).toBe(200)
})

test('at a gateway requests to the compute local follow the placements, and no list has it', async () => {
  const { gateway } = lab
  const listed = await gateway.call<Compute[]>('GET', '/v2/computes')
  expect(listed.map(({ compute_id }) => compute_id)).not.toContain('local')
  const made = await gateway.fetch(`/v2/computes/local/projects`, { method: 'POST', body: '{"name": "lab"}' })
  expect([made.status, made.headers.get('x-patchbay-compute')]).toEqual([
    201,
    expect.stringMatching(new RegExp(`^(a|b|${lab.farId})$`)),
  ])
  const { project_id } = (await made.json()) as Project
  // Also as where a project is wanted.
  const wanted = await gateway.call<Project>('POST', '/v2/compute/projects', { name: 'x', compute_id: 'local' })
  const all = (await gateway.call<Project[]>('GET', `/v2/computes/local/projects`)).map((it) => it.project_id)
  expect(all).toEqual(expect.arrayContaining([project_id, wanted.project_id]))

  const nodes = `/v2/computes/local/projects/${project_id}/pc/nodes`
  const { node_id } = await gateway.call<{ node_id: string }>('POST', nodes, { name: 'PC1' })
  await gateway.call('POST', `${nodes}/${node_id}/start`)
  const console = await openSocketConsole(gateway, `${nodes}/${node_id}`)
  await console.expect('PC1> ')
  const upload = await gateway.fetch(`/v2/computes/local/machine-emulator/images/x.img`, {
    method: 'POST',
    body: 'content',
  })
  expect(upload.status).toBe(204)
  const held = lab.computes.map((it) => it.call<object[]>('GET', '/v2/compute/machine-emulator/images'))
  expect((await Promise.all(held)).map((images) => images.length)).toEqual([1, 1, 1])
  expect(await (await gateway.fetch(`/v2/computes/local/machine-emulator/images/x.img`)).text()).toBe('content')
  const images = await gateway.call<{ filename: string }[]>('GET', `/v2/computes/local/machine-emulator/images`)
  expect(images).toMatchObject([{ filename: 'x.img' }])
  expect(await gateway.call('GET', `/v2/computes/local/ports`)).toMatchObject({ udp_ports: expect.any(Array) })
  const place = await gateway.call<{ endpoint: string }>('GET', `/v2/computes/endpoint/local/pc/nodes`)
  expect(place.endpoint).toBe(`${gateway.url}/v2/compute/pc/nodes`)
  const missing = await gateway.fetch(`/v2/computes/local/auto_idlepc`, {
    method: 'POST',
    body: JSON.stringify({ platform: 'c3745', image: 'nothing.bin', ram: 256 }),
  })
  expect([missing.status, await missing.json()]).toMatchObject([409, { image: 'nothing.bin' }])
  await gateway.call('DELETE', `/v2/compute/projects/${project_id}`)
})

describe('a gateway with labels', () => {
  beforeAll(async () => {
    const put = (id: string, labels: string[]) => lab.gateway.call<Compute>('PUT', `/v2/computes/${id}`, { labels })
    await put('a', ['site=berlin', 'fast'])
    await put('b', ['site=paris'])
  })

  it('has computes with detected labels, and labels of the administrator', async () => {
    const { gateway } = lab
    const labels = ['site=berlin', 'fast']
    expect(await gateway.call<Compute>('GET', '/v2/computes/a')).toMatchObject({ labels, connected: true })
    const { capabilities } = await gateway.call<Compute>('GET', '/v2/computes/b')
    expect(capabilities.labels).toContain(`platform=${process.platform}`)
    const refused = await gateway.fetch('/v2/computes/a', {
      method: 'PUT',
      body: JSON.stringify({ labels: ['no good'] }),
    })
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { message: /a label such as kvm or site=berlin/ },
    ])
  })

  it('places a node on a compute with its labels and those of its lab', async () => {
    const path = await labWith({ placement: { labels: ['site'] } })
    expect(await addTo(path, { placement: { labels: ['site=paris'] } })).toBe('b')
    expect(await addTo(path, { placement: { labels: ['fast'] } })).toBe('a')
    // A compute that is named goes before all labels.
    expect(await addTo(path, { placement: { labels: ['fast'] }, compute_id: 'b' })).toBe('b')
    expect(await lab.gateway.call('GET', `${path}/nodes`)).toMatchObject([
      { placement: { labels: ['site=paris'] } },
      {},
      {},
    ])
    await lab.gateway.call('DELETE', path)
  })

  it('refuses a node whose labels no compute has, and lists the existing ones', async () => {
    const path = await labWith({})
    const body = JSON.stringify({ name: 'PC1', node_type: 'pc', placement: { labels: ['site=oslo'] } })
    const answer = await lab.gateway.fetch(`${path}/nodes`, { method: 'POST', body })
    expect([answer.status, answer.headers.get('x-patchbay-error')]).toEqual([409, 'label-missing'])
    expect(await answer.json()).toMatchObject({
      message: expect.stringMatching(
        /^placement.labels: no compute has site=oslo; there are .*fast \(compute a\).*site=berlin \(compute a\), site=paris \(compute b\)/,
      ),
    })
    expect(await lab.gateway.call('GET', `${path}/nodes`)).toEqual([])
    await lab.gateway.call('DELETE', path)
  })

  it('keeps a lab together by room or packed, and spreads it on request, also nodes that are made at the same time', async () => {
    for (const [policy, computes] of [
      ['room', 1],
      ['pack', 1],
      ['spread', 2],
    ] as const) {
      const path = await labWith({ placement: { policy, labels: ['site'] } })
      const placed = await Promise.all(Array.from({ length: 6 }, () => addTo(path)))
      const counts = [...new Set(placed)].map((id) => placed.filter((it) => it === id).length)
      expect(counts).toEqual(Array.from({ length: computes }, () => 6 / computes))
      await lab.gateway.call('DELETE', path)
    }
  })

  it('uses the placement of a lab file for all nodes, together with that of each node', async () => {
    const { gateway } = lab
    const file = (more: string) => `
lab: labelled
placement: { policy: spread, labels: [site] }
nodes:
  PC1: { kind: pc }
  PC2: { kind: pc }
  PC3: { kind: pc, placement: { labels: [site=paris]${more} } }
`
    const put = async (text: string, query = '') => {
      const init = { method: 'PUT', body: text, headers: { 'content-type': 'application/yaml' } }
      return gateway.fetch(`/v2/projects/labelled/topology${query}`, init)
    }
    const { job_id } = (await (await put(file(''))).json()) as { job_id: string }
    await expect
      .poll(async () => (await gateway.call<{ status: string }>('GET', `/v2/jobs/${job_id}`)).status)
      .toBe('done')
    const nodes = await gateway.call<LabNode[]>('GET', '/v2/projects/labelled/nodes')
    const named = Object.fromEntries(nodes.map(({ name, compute_id, placement }) => [name, { compute_id, placement }]))
    expect(named.PC3).toEqual({ compute_id: 'b', placement: { policy: 'spread', labels: ['site', 'site=paris'] } })
    expect(nodes.filter(({ compute_id }) => compute_id === 'a').length).toBeGreaterThan(0)
    expect(await (await put(file(''), '?dry_run=true')).json()).toMatchObject({ steps: [] })
    expect(await (await put(file(', policy: pack'), '?dry_run=true')).json()).toMatchObject({
      steps: [
        {
          do: 'update',
          name: 'PC3',
          how: 'live',
          because: expect.stringMatching(/^placement \{ policy: spread.* -> \{ policy: pack/),
        },
      ],
    })
    const text = await (await gateway.fetch('/v2/projects/labelled/topology?format=yaml')).text()
    expect(text).toContain('site=paris')
    await gateway.call('DELETE', '/v2/projects/labelled')
  })
})

/** A lab with these settings; its path. */
async function labWith(settings: object): Promise<string> {
  const { gateway } = lab
  const name = `placed-${crypto.randomUUID().slice(0, 8)}`
  const { project_id } = await gateway.call<LabProject>('POST', '/v2/projects', { name, ...settings })
  return `/v2/projects/${project_id}`
}
const addTo = async (path: string, input: object = {}) =>
  (await lab.gateway.call<LabNode>('POST', `${path}/nodes`, { name: 'PC1', node_type: 'pc', ...input })).compute_id

const idOf = (path: string): string => path.slice(projects.length + 1)
const idsOf = (list: unknown): string[] => (list as Project[]).map(({ project_id }) => project_id)

const pathIn = async (directory: string, name: string): Promise<string> =>
  (await readdir(directory, { recursive: true })).find((path) => path.endsWith(name)) ?? ''

/** Bytes that a service has read from files and sockets. */
async function bytesRead({ pid }: TestService): Promise<number> {
  return Number(/rchar: (\d+)/.exec(await readFile(`/proc/${pid}/io`, 'utf8'))?.[1])
}

/** A count when it grows no more. */
async function settled(count: () => Promise<number>): Promise<number> {
  for (let before = -1, same = 0; ; ) {
    const now = await count()
    // Services say something now and then.
    same = now - before < 2 ** 16 ? same + 1 : 0
    if (now > 0 && same === 5) return now
    before = now
    await setTimeout(100)
  }
}
