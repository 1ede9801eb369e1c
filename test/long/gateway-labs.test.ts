import { describe, expect, it } from 'vitest'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabLink } from '../../src/model/lab/link.ts'
import type { LabNode } from '../../src/model/lab/node.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import type { Project } from '../../src/model/project.ts'
import { GatewayLab, patch, portOf } from '../support/gateway-lab.ts'
import { answered, labOver, linked, nodesOf, types } from '../support/lab-over-computes.ts'
import { hangMs } from '../support/limits.ts'
import { readPcap } from '../support/pcap.ts'
import { portRanges } from '../support/ports.ts'
import { TestService } from '../support/service.ts'

const lab = GatewayLab.forAll()
const compute = '/v2/compute/projects'
const idOf = (path: string) => path.split('/').at(-1) ?? ''
const reasons = async (path: string) =>
  (await nodesOf(lab.gateway, path)).map(({ name, status, status_reason }) => [name, status, status_reason !== null])

describe('a lab over two computes', () => {
  it('has its nodes on the requested computes, and frames pass over a link between them', async () => {
    const path = await labOver(lab.gateway, ['a', 'b'])
    expect((await nodesOf(lab.gateway, path)).map(({ compute_id }) => compute_id)).toEqual(['a', 'b'])
    const link = await linked(lab.gateway, path, 'PC1', 'PC2')
    await lab.gateway.call('POST', `${path}/nodes/start`)
    await types(lab.gateway, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered })
    await lab.gateway.call('DELETE', `${path}/links/${link.link_id}`)
    await linked(lab.gateway, path, 'PC1', 'PC2')
    await lab.gateway.call('DELETE', path)
    for (const { call } of [lab.a, lab.b].map((service) => ({ call: service.call.bind(service) }))) {
      const left = await call<Project[]>('GET', `${compute}?status=all`)
      expect(left.map(({ project_id }) => project_id)).not.toContain(idOf(path))
    }
  })

  it('is copied where its nodes are, and its archive has the files of all of them', async () => {
    const { gateway } = lab
    const path = await labOver(gateway, ['a', 'b'])
    await linked(gateway, path, 'PC1', 'PC2')
    const file = { method: 'POST', body: 'of PC2' }
    expect((await gateway.fetch(`${path}/nodes/PC2/files/notes`, file)).status).toBeLessThan(300)
    const copied = await gateway.call<LabProject>('POST', `${path}/duplicate`, { name: `${idOf(path)} twin` })
    const archive = await (await gateway.fetch(`${path}/export`)).blob()
    const moved = `/v2/projects/${crypto.randomUUID()}`
    expect((await gateway.fetch(`${moved}/import`, { method: 'POST', body: archive })).status).toBe(201)
    for (const [at, computes] of [
      [`/v2/projects/${copied.project_id}`, 2],
      [moved, 1],
    ] as const) {
      await gateway.call('POST', `${at}/open`)
      expect(new Set((await nodesOf(gateway, at)).map(({ compute_id }) => compute_id)).size).toBe(computes)
      expect(await (await gateway.fetch(`${at}/nodes/PC2/files/notes`)).text()).toBe('of PC2')
      await gateway.call('POST', `${at}/nodes/start`)
      await types(gateway, `${at}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered })
      await gateway.call('DELETE', at)
    }
    await gateway.call('DELETE', path)
  })

  it('has links between them with a verdict, traffic, impairment and captures', async () => {
    const path = await labOver(lab.gateway, ['a', 'b'])
    const at = `${path}/links/${(await linked(lab.gateway, path, 'PC1', 'PC2')).link_id}`
    const link = () => lab.gateway.call<LabLink>('GET', at)
    const ping = (shows: RegExp) =>
      types(lab.gateway, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50 -w 200\r', shows })
    await lab.gateway.call('POST', `${path}/nodes/start`)
    await lab.gateway.call('POST', `${at}/start_capture`, { capture_file_name: 'ab.pcap' })
    await ping(answered)
    await expect.poll(link, { timeout: hangMs }).toMatchObject({ verdict: 'ok', verdict_reason: null })
    await expect.poll(async () => (await link()).traffic_ab?.frames, { timeout: hangMs }).toBeGreaterThan(1)
    expect((await link()).traffic_ba?.frames).toBeGreaterThan(1)
    await lab.gateway.call('POST', `${at}/stop_capture`)
    const file = await lab.gateway.fetch(`${path}/files/project-files/captures/ab.pcap`)
    const frames = readPcap(Buffer.from(await file.arrayBuffer())).records.map((record) => record.frame)
    expect(frames.filter((frame) => frame.readUInt16BE(12) === 0x0800)).toHaveLength(4)
    for (const filters of [
      { filters_ab: { packet_loss: [100] } },
      { filters_ab: {}, filters_ba: { packet_loss: [100] } },
    ]) {
      await lab.gateway.call('PUT', at, filters)
      await ping(/timeout/)
    }
    await lab.gateway.call('PUT', at, { filters_ba: {}, suspend: true })
    await expect.poll(async () => (await link()).verdict, { timeout: hangMs }).toBe('suspended')
    await lab.gateway.call('PUT', at, { suspend: false })
    await ping(answered)
    await lab.gateway.call('DELETE', path)
  })

  it('has the ports of its nodes patched on the compute interface', async () => {
    const path = await labOver(lab.gateway, ['a', 'b'])
    const [one, two] = await nodesOf(lab.gateway, path)
    const ends = [one, two].map((node) => `${compute}/${idOf(path)}/pc/nodes/${node?.node_id}`) as [string, string]
    expect((await patch(lab.gateway, ...ends)).status).toBe(201)
    await lab.gateway.call('POST', `${path}/nodes/start`)
    await types(lab.gateway, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered })
    const again = await patch(lab.gateway, ...ends)
    expect([again.status, await again.json()]).toMatchObject([409, { message: /attached/ }])
    await lab.gateway.call('DELETE', path)
  })

  it('has a link to a compute that has joined', async () => {
    const path = await labOver(lab.gateway, ['a', lab.farId])
    const ports = async () =>
      (await lab.gateway.call<{ udp_ports: number[] }>('GET', '/v2/computes/a/network/ports')).udp_ports
    const before = await ports()
    const { link_id } = await linked(lab.gateway, path, 'PC1', 'PC2')
    await lab.gateway.call('POST', `${path}/nodes/start`)
    await types(lab.gateway, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered })
    await lab.gateway.call('DELETE', `${path}/links/${link_id}`)
    await lab.gateway.call('DELETE', path)
    // A port of a node that was linked has a UDP port of its own as long as the node is there.
    expect(await ports()).toEqual(before)
  })

  it('is reached by the compute interface: each request goes to the compute that has the node', async () => {
    const path = await labOver(lab.gateway, ['a', 'b'])
    const project = `${compute}/${idOf(path)}`
    for (const { node_id, compute_id } of await nodesOf(lab.gateway, path)) {
      const answer = await lab.gateway.fetch(`${project}/pc/nodes/${node_id}`)
      expect([answer.status, answer.headers.get('x-patchbay-compute')]).toEqual([200, compute_id])
    }
    const listed = await lab.gateway.call<Project[]>('GET', compute)
    expect(listed.filter(({ project_id }) => project_id === idOf(path))).toHaveLength(1)
    expect((await lab.gateway.fetch(`${project}/pc/nodes/${crypto.randomUUID()}`)).status).toBe(404)
    expect((await lab.gateway.fetch(`${project}/close`, { method: 'POST' })).status).toBe(204)
    for (const service of [lab.a, lab.b])
      expect(await service.call('GET', `${project}`)).toMatchObject({ status: 'closed' })
    await lab.gateway.call('DELETE', path)
  })

  it('finds a node that a client made on its second compute, without the lab', async () => {
    const path = await labOver(lab.gateway, ['a', 'b'])
    const nodes = `projects/${idOf(path)}/pc/nodes`
    const { node_id } = await lab.gateway.call<LabNode>('POST', `/v2/computes/b/${nodes}`, { name: 'PC9' })
    expect(await lab.gateway.call('GET', `/v2/compute/${nodes}/${node_id}`)).toMatchObject({ name: 'PC9' })
    await lab.gateway.call('DELETE', path)
  })
})

describe('a compute of a lab that is not connected', () => {
  it('loses no node: its nodes are shown with the reason, and are unchanged when it is back', async () => {
    const path = await labOver(lab.gateway, ['a', 'b'])
    await linked(lab.gateway, path, 'PC1', 'PC2')
    await lab.gateway.call('POST', `${path}/nodes/start`)
    const port = portOf(lab.b)
    await lab.b.kill('SIGKILL')
    await expect
      .poll(() => reasons(path), { timeout: hangMs })
      .toEqual([
        ['PC1', 'started', false],
        ['PC2', 'started', true],
      ])
    await lab.shows('b', { connected: false })
    for (const [method, at] of [
      ['POST', `${path}/close`],
      ['DELETE', path],
    ] as const) {
      const answer = await lab.gateway.fetch(at, { method })
      expect([answer.status, await answer.json()]).toMatchObject([503, { message: /is connected again/ }])
    }
    const moved = { x: 40, y: 50 }
    expect(await lab.gateway.call('PUT', `${path}/nodes/PC2`, moved)).toMatchObject(moved)
    await lab.b.restart(port)
    await expect
      .poll(() => reasons(path), { timeout: hangMs })
      .toEqual([
        ['PC1', 'started', false],
        ['PC2', 'started', false],
      ])
    await types(lab.gateway, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered })
    await lab.gateway.call('DELETE', path)
  })

  it('fails the nodes of a job that it has, and no others', async () => {
    const path = await labOver(lab.gateway, ['a', 'b'])
    await lab.gateway.call('PUT', `${path}/nodes/PC1`, { ready: { console: 'go on', within_s: 60 } })
    await lab.gateway.call('PUT', `${path}/nodes/PC2`, { after: ['PC1'] })
    const begin = () => lab.gateway.call<LabJob>('POST', `${path}/jobs`, { action: 'start' })
    const { job_id } = await begin()
    const job = (id = job_id) => lab.gateway.call<LabJob>('GET', `/v2/jobs/${id}`)
    await expect
      .poll(async () => (await job()).nodes.map(({ state }) => state), { timeout: hangMs })
      .toContain('unready')
    const port = portOf(lab.b)
    await lab.b.kill('SIGKILL')
    await lab.shows('b', { connected: false })
    await types(lab.gateway, `${path}/nodes/PC1`, { text: 'go on\r', shows: /go on/ })
    await expect.poll(async () => (await job()).status, { timeout: hangMs }).toBe('failed')
    expect(await job()).toMatchObject({ done: 1, failed: 1, reason: expect.stringMatching(/^PC2: .*compute b/) })
    await lab.b.restart(port)
    await lab.shows('b', { connected: true })
    await lab.gateway.call('PUT', `${path}/nodes/PC1`, { ready: null })
    const { job_id: second } = await begin()
    await expect.poll(async () => (await job(second)).status, { timeout: hangMs }).toBe('done')
    await lab.gateway.call('DELETE', path)
  })

  it('is opened when it is back, after the lab was opened without it', async () => {
    const path = await labOver(lab.gateway, ['a', 'b'])
    await lab.gateway.call('POST', `${path}/close`)
    const port = portOf(lab.b)
    await lab.b.kill('SIGKILL')
    await lab.shows('b', { connected: false })
    await lab.gateway.call('POST', `${path}/open`)
    expect((await reasons(path))[1]).toEqual(['PC2', 'stopped', true])
    await lab.b.restart(port)
    await expect.poll(() => reasons(path), { timeout: hangMs }).toContainEqual(['PC2', 'stopped', false])
    await lab.gateway.call('POST', `${path}/nodes/PC2/start`)
    await lab.gateway.call('DELETE', path)
  })
})

it('after a reboot of a compute the nodes that ran there are started, with auto_start', async () => {
  const path = await labOver(lab.gateway, ['a', 'b', 'b'])
  await lab.gateway.call('PUT', path, { auto_start: true })
  for (const name of ['PC2', 'PC3']) await lab.gateway.call('POST', `${path}/nodes/${name}/start`)
  await lab.gateway.call('POST', `${path}/nodes/PC3/stop`)
  const [ofGateway, ofB] = [portOf(lab.gateway), portOf(lab.b)]
  await lab.gateway.end()
  await lab.gateway.forgetBoot('b')
  await lab.b.end()
  await lab.b.restart(ofB)
  await lab.gateway.restart(ofGateway)
  await expect
    .poll(() => reasons(path).catch(() => []), { timeout: hangMs })
    .toEqual([
      ['PC1', 'stopped', false],
      ['PC2', 'started', false],
      ['PC3', 'stopped', false],
    ])
  await lab.gateway.call('DELETE', path)
  await lab.shows(lab.farId, { connected: true })
})

it('a lab is unchanged after the gateway was killed', async () => {
  const path = await labOver(lab.gateway, ['a', lab.farId])
  await lab.gateway.call('POST', `${path}/nodes/start`)
  const port = portOf(lab.gateway)
  await lab.gateway.kill('SIGKILL')
  await lab.gateway.restart(port)
  expect(await lab.gateway.call<LabProject>('GET', path)).toMatchObject({ status: 'opened' })
  await expect
    .poll(() => reasons(path), { timeout: hangMs })
    .toEqual([
      ['PC1', 'started', false],
      ['PC2', 'started', false],
    ])
  await lab.gateway.call('DELETE', path)
})

it('new nodes are placed on the compute of their lab while that has room, then on another', async () => {
  const gateway = await TestService.start({ gateway: true, 'rate_limit.per_s': 0 })
  const few = portRanges({ console: 2, udp: 8, vnc: 2 })
  const [small, large] = await Promise.all([
    TestService.start({ 'pc.engine': 'embedded', ...few }),
    TestService.start({ 'pc.engine': 'embedded' }),
  ])
  for (const [compute_id, service] of [['small', small] as const, ['large', large] as const])
    await gateway.call('POST', '/v2/computes', {
      compute_id,
      protocol: 'http',
      host: '127.0.0.1',
      port: portOf(service),
    })
  await gateway.call('POST', '/v2/projects', { name: 'grows', compute_id: 'small' })
  const made: LabNode[] = []
  for (let number = 1; number <= 4; number++)
    made.push(await gateway.call('POST', '/v2/projects/grows/nodes', { name: `PC${number}`, node_type: 'pc' }))
  expect(made.map(({ compute_id }) => compute_id)).toEqual(['small', 'small', 'large', 'large'])
  const named = { name: 'PC5', node_type: 'pc', compute_id: 'small' }
  const answer = await gateway.fetch('/v2/projects/grows/nodes', { method: 'POST', body: JSON.stringify(named) })
  expect([answer.status, answer.headers.get('x-patchbay-error')]).toEqual([409, 'no-port-left'])
})

it('a plain service has labs over the computes that are registered with it, too', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const beside = await TestService.start({ 'pc.engine': 'embedded' })
  const input = { compute_id: 'beside', protocol: 'http', host: '127.0.0.1', port: portOf(beside) }
  await service.call('POST', '/v2/computes', input)
  const path = await labOver(service, ['local', 'beside'])
  const [one, two] = (await nodesOf(service, path)).map(({ node_id }) => `${compute}/${idOf(path)}/pc/nodes/${node_id}`)
  const refused = await patch(service, one ?? '', two ?? '')
  expect([refused.status, await refused.json()]).toMatchObject([409, { message: /on the compute beside; POST/ }])
  await linked(service, path, 'PC1', 'PC2')
  await service.call('POST', `${path}/nodes/start`)
  await types(service, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered })
  await service.call('POST', `${path}/close`)
  await service.call('POST', `${path}/open`)
  expect((await nodesOf(service, path)).map(({ compute_id }) => compute_id)).toEqual(['local', 'beside'])
})
