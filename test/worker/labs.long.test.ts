import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Project } from '../../src/model/project.ts'
import { json, StandIn } from '../support/fleet.ts'
import { linkOf, portOf, serveManyClients } from '../support/gateway-lab.ts'
import { createPc, start } from '../support/lab.ts'
import { collect, readPcap } from '../support/pcap.ts'
import { portRanges } from '../support/ports.ts'
import { TestService } from '../support/service.ts'
import { WorkerGateway } from '../support/worker-gateway.ts'

const projects = '/v2/compute/projects'
const embedded = { 'pc.engine': 'embedded' }

let gateway: WorkerGateway
/** Registered by their addresses, as `a` and `b`. */
let a: TestService
let b: TestService
/** Has joined by a tunnel, and takes no projects but this one. */
let far: TestService
let farProject: string

beforeAll(async () => {
  gateway = await WorkerGateway.startForAll(await mkdtemp(join(tmpdir(), 'patchbay-')), { RATE_PER_S: '0' })
  const { token } = await gateway.call('POST', '/v2/tokens', { name: 'far', purpose: 'join' })
  const many = () => portRanges({ console: 190, udp: 8, vnc: 2 })
  const joined = { 'join.url': gateway.url.replace('http', 'ws'), 'join.token': token }
  ;[a, b, far] = await Promise.all([
    TestService.startForAll({ ...embedded, ...many() }),
    TestService.startForAll({ ...embedded, ...many() }),
    TestService.startForAll({ ...embedded, ...joined }),
  ])
  for (const [compute_id, service] of [['a', a] as const, ['b', b] as const]) {
    const input = { compute_id, name: `compute ${compute_id}`, protocol: 'http', host: '127.0.0.1' }
    await gateway.call('POST', '/v2/computes', { ...input, port: portOf(service) })
  }
  const farId = (await readFile(join(far.data, 'compute-id'), 'utf8')).trim()
  await gateway.untilConnected(farId)
  farProject = await project(farId)
  await gateway.call('PUT', `/v2/computes/${farId}`, { accepts_projects: false })
})

afterAll(async () => {
  await Promise.all([a, b, far].map((service) => service?.close()))
  await gateway?.stop()
  if (gateway !== undefined) await rm(gateway.data, { recursive: true, force: true })
})

async function project(compute_id: string): Promise<string> {
  const { project_id } = await gateway.call('POST', projects, { name: 'lab', compute_id })
  return `${projects}/${project_id}`
}

/** Has a pc ping another one; resolves when the second answer came. */
async function pingTwice(node: string, address = '10.0.0.2'): Promise<void> {
  const console = await gateway.open(`${node}/console/ws`)
  await console.shows('PC1> ')
  console.send(`ping ${address} -c 2 -i 50\r`)
  await console.shows(`${address} icmp_seq=2 ttl=64`)
  await console.close()
}

test('pcs on two computes ping each other, also when one compute has joined', async () => {
  const [here, there] = [await project('a'), await project('b')]
  const pc1 = await createPc(gateway, here, 1)
  // The first pcs of projects have the same MAC address.
  for (const other of [there, farProject]) await createPc(gateway, other, 3)
  const [pc2, pc4] = [await createPc(gateway, there, 2), await createPc(gateway, farProject, 4)]
  await gateway.call('POST', '/v2/links', linkOf(pc1, pc2))
  await start(gateway, pc1, pc2, pc4)
  await pingTwice(pc1)
  await gateway.call('DELETE', `${pc1}/adapters/0/ports/0/nio`)
  await gateway.call('POST', '/v2/links', linkOf(pc1, pc4))
  await pingTwice(pc1, '10.0.0.4')
})

test('a live capture and a console go through Worker, tunnel and keeper', async () => {
  const [pc1, pc2] = [await createPc(gateway, farProject, 1), await createPc(gateway, farProject, 2)]
  await gateway.call('POST', '/v2/links', linkOf(pc1, pc2))
  await start(gateway, pc1, pc2)
  const port = `${pc1}/adapters/0/ports/0`
  const live = collect(await gateway.fetch('POST', `${port}/capture/stream`, {}))
  await pingTwice(pc1)
  const pings = () => readPcap(live.bytes()).records.filter(({ frame }) => frame.readUInt16BE(12) === 0x0800)
  await expect.poll(pings).toHaveLength(4)
  await gateway.call('DELETE', `${port}/nio`)
  await live.ended
})

test('100 clients at once: each has its project and its node once, and the computes share them', async () => {
  await serveManyClients(gateway, [a, b])
})

test('computes that are slow, lie or are silent are named in lists, and delay answers only for a limited time', async () => {
  const [onA, onB] = [await project('a'), await project('b')]
  const { version } = await gateway.call('GET', '/v2/compute/version')
  const standIn = async (compute_id: string, answer: StandIn['answer'], said: unknown = version) => {
    const it = await StandIn.start()
    it.capabilities = (_, res) => json(res, 200, { version: said, platform: 'linux', node_types: ['pc'] })
    it.answer = (req, res) => {
      if (req.url !== '/v2/compute/load') return answer(req, res)
      json(res, 200, { cpu_usage_percent: 1, memory_usage_percent: 1 })
    }
    const input = it.input({ compute_id, name: compute_id, accepts_projects: false })
    const answered = await gateway.fetch('POST', '/v2/computes', input)
    return [answered.status, await answered.json()]
  }
  onTestFinished(async () => {
    for (const id of ['slow', 'liar']) await gateway.call('DELETE', `/v2/computes/${id}`)
  })
  expect(await standIn('slow', () => {})).toMatchObject([201, { connected: true }])
  expect(await standIn('liar', (_, res) => json(res, 200, { what: 'ever' }))).toMatchObject([201, { connected: true }])
  expect(await standIn('other', () => {}, '99.0.0')).toMatchObject([409, { message: /99\.0\.0/ }])

  process.kill(b.pid, 'SIGSTOP')
  onTestFinished(() => void process.kill(b.pid, 'SIGCONT'))
  const began = Date.now()
  const waiting = gateway.fetch('GET', onB)
  const list = await gateway.fetch('GET', projects)
  expect(Date.now() - began).toBeLessThan(30_000)
  expect(list.headers.get('x-patchbay-unreachable')?.split(', ').sort()).toEqual(['compute%20b', 'liar', 'slow'])
  expect(idsOf(await list.json())).toContain(onA.slice(projects.length + 1))
  expect((await gateway.fetch('GET', onA)).status).toBe(200)
  expect([503, 504]).toContain((await waiting).status)
  expect(Date.now() - began).toBeLessThan(45_000)
  process.kill(b.pid, 'SIGCONT')
  await gateway.untilConnected('b')
  expect((await gateway.fetch('GET', onB)).status).toBe(200)
})

const idsOf = (list: unknown): string[] => (list as Project[]).map(({ project_id }) => project_id)
