import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { checkedAgent } from '../../src/compute/checked-agent.ts'
import type { HostAgent } from '../../src/host-agent.ts'
import type { FeedItem } from '../../src/model/event.ts'
import type { NodeRef } from '../../src/model/kinds/node.ts'
import { startAgent } from '../support/gateway.ts'
import { agentAt } from '../support/lying-compute.ts'
import { TestService } from '../support/service.ts'

/**
 * The contract of `HostAgent`, kept by both of its implementations: the agent of this machine, as labs have it, and the one that sends
 * requests to another machine. What a lab does has the same results and errors on each.
 */

let service: TestService
beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded' })
})
afterAll(() => service.close())

const agents: readonly (readonly [string, () => Promise<HostAgent>])[] = [
  ['of this machine', async () => checkedAgent(await startAgent())],
  ['of another machine', async () => agentAt(Number(new URL(service.url).port))],
]

const port = { adapter: 0, port: 0 }
const textOf = (content: ReadableStream<Uint8Array>) => new Response(content).text()
const contentOf = (text: string) => new Blob([text]).stream() as ReadableStream<Uint8Array>

describe.each(agents)('the agent %s', (_, start) => {
  let agent: HostAgent
  beforeEach(async () => {
    agent = await start()
  })

  const newProject = async () => (await agent.projects.create({ name: 'lab' })).project.project_id
  const newPc = async (project_id: string, name: string): Promise<NodeRef<'pc'>> => {
    const { node } = await agent.nodes.create(project_id, 'pc', { name }, { existing: 'refuse' })
    return { project_id, kind: 'pc', node_id: node.node_id }
  }

  test('creates, changes, closes and removes projects', async () => {
    const { projects } = agent
    const project_id = randomUUID()
    const { project, created } = await projects.create({ name: 'lab', project_id })
    expect([created, project]).toMatchObject([true, { project_id, name: 'lab', status: 'open' }])
    expect(await projects.create({ name: 'other', project_id })).toMatchObject({
      created: false,
      project: { name: 'lab' },
    })
    expect(await projects.update(project_id, { name: 'renamed' })).toMatchObject({ name: 'renamed' })
    expect(await projects.get(project_id)).toEqual(await projects.update(project_id, {}))
    await projects.close(project_id)
    expect(await projects.list('closed')).toMatchObject([{ project_id, name: 'renamed' }])
    await expect(projects.remove(project_id)).rejects.toMatchObject({ status: 404, code: 'project-closed' })
    await projects.create({ project_id })
    await projects.commit(project_id)
    await projects.remove(project_id)
    await expect(projects.get(project_id)).rejects.toMatchObject({ status: 404, code: 'no-such-project' })
  })

  test('refuses a name of a project that none can have, with the same words', async () => {
    const message = expect.stringMatching(/^name: /)
    await expect(agent.projects.create({ name: 'a/b' })).rejects.toMatchObject({ status: 403, message })
  })

  test('creates, changes, copies and removes nodes', async () => {
    const { nodes } = agent
    const project_id = await newProject()
    const ref = await newPc(project_id, 'PC1')
    expect(await nodes.get(ref)).toMatchObject({ kind: 'pc', name: 'PC1', status: 'stopped' })
    const existing = { name: 'PC1', node_id: ref.node_id }
    const again = nodes.create(project_id, 'pc', existing, { existing: 'refuse' })
    await expect(again).rejects.toMatchObject({ status: 409, code: 'node-exists' })
    const updated = await nodes.create(project_id, 'pc', existing, { existing: 'update' })
    expect(updated).toMatchObject({ created: false, node: { name: 'PC1' } })
    expect(await nodes.update(ref, { startup_script: 'ip 10.0.0.1/24' })).toMatchObject({ name: 'PC1' })
    const copy = await newPc(project_id, 'PC2')
    expect(await nodes.duplicate(ref, copy.node_id)).toMatchObject({ name: 'PC2', startup_script: 'ip 10.0.0.1/24' })
    expect((await nodes.list(project_id, 'pc')).map(({ name, kind }) => [name, kind])).toEqual([
      ['PC1', 'pc'],
      ['PC2', 'pc'],
    ])
    await nodes.remove(copy, { files: 'later' })
    await expect(nodes.get(copy)).rejects.toMatchObject({ status: 404, code: 'no-such-node' })
  })

  test('refuses settings that the kind lacks, addresses that no adapter can have, and changes of members that cannot be set', async () => {
    const { nodes } = agent
    const project_id = await newProject()
    const unknown = nodes.create(project_id, 'pc', { name: 'PC1', ram: 64 } as never, { existing: 'refuse' })
    await expect(unknown).rejects.toMatchObject({ status: 400, message: expect.stringMatching(/^ram: /) })
    const multicast = { name: 'M1', mac_address: '01:00:5e:00:00:01' }
    const addressed = nodes.create(project_id, 'machine-emulator', multicast, { existing: 'refuse' })
    await expect(addressed).rejects.toMatchObject({
      status: 400,
      message: expect.stringMatching(/^mac_address: .*multicast/),
    })
    const ref = await newPc(project_id, 'PC1')
    // As a client sends a node back that it has read.
    const { kind: _, ...shown } = await nodes.get(ref)
    expect(await nodes.update(ref, { ...shown, name: 'PC2' } as never)).toMatchObject({ name: 'PC2' })
    const readOnly = nodes.update(ref, { project_id: randomUUID() } as never)
    await expect(readOnly).rejects.toMatchObject({
      status: 400,
      message: expect.stringMatching(/^project_id: .*read-only/),
    })
  })

  test('runs nodes, waits for their consoles, and reports what happens', async () => {
    const { nodes, events } = agent
    const project_id = await newProject()
    const ref = await newPc(project_id, 'PC1')
    const over = new AbortController()
    const feed = (await events.open({ projectId: project_id, signal: over.signal })).getReader()
    expect(await feed.read()).toMatchObject({ value: { kind: 'ping' } })
    expect(await nodes.start(ref)).toMatchObject({ status: 'started' })
    await nodes.ready(ref, { console: 'PC1>', within_s: 30 }, over.signal)
    const { value } = (await feed.read()) as { value: FeedItem }
    expect(value).toMatchObject({ event: { project_id, payload: { type: 'node.updated', node: { kind: 'pc' } } } })
    const found = await nodes.expect(ref, { send: 'show\n', expect: 'NAME', within_s: 30 }, over.signal)
    expect(found).toMatchObject({ matched: 'NAME' })
    expect(await nodes.telnetClients(project_id)).toBe(0)
    await nodes.resetConsole(ref)
    expect(await nodes.reload(ref)).toMatchObject({ status: 'started' })
    expect(await nodes.stop(ref)).toMatchObject({ status: 'stopped' })
    await expect(nodes.resume(ref)).rejects.toMatchObject({ status: 409 })
    over.abort()
  })

  test('joins ports, changes their links, and captures', async () => {
    const { nodes, links } = agent
    const project_id = await newProject()
    const [one, other] = [await newPc(project_id, 'PC1'), await newPc(project_id, 'PC2')]
    const endOf = ({ node_id }: NodeRef) => ({ node_type: 'pc' as const, node_id, adapter_number: 0, port_number: 0 })
    const ports = [endOf(one), endOf(other)] as const
    const link_id = randomUUID()
    expect(await links.join(project_id, link_id, ports, { suspend: true })).toMatchObject({ link_id, suspend: true })
    expect(await links.update(project_id, link_id, { suspend: false })).toMatchObject({ suspend: false })
    expect(await links.joinAll(project_id, [{ link_id, nodes: ports }])).toEqual([{ link_id, error: null }])
    expect(await nodes.nioState(one, port)).toMatchObject({ type: 'nio_link', link_id })
    const { states, next } = await links.changes(project_id)
    expect([states, (await links.changes(project_id, next)).states]).toMatchObject([[{ link_id }], []])
    expect(await links.state(project_id, link_id)).toMatchObject({ link_id })
    expect(await links.states(project_id)).toHaveLength(1)
    await nodes.checkFilters(one, port, { delay: [10] })
    const wrong = nodes.checkFilters(one, port, { delay: [-1] })
    await expect(wrong).rejects.toMatchObject({ status: 400, message: expect.stringMatching(/^delay/) })
    const wanted = { capture_file_name: 'a.pcap', data_link_type: 'DLT_EN10MB' } as const
    expect(await nodes.startCapture(one, port, wanted)).toHaveProperty('pcap_file_path')
    await nodes.stopCapture(one, port)
    await links.remove(project_id, link_id)
    await expect(links.state(project_id, link_id)).rejects.toMatchObject({ status: 404, code: 'not-found' })
  })

  test('attaches NIOs and changes them in place', async () => {
    const { nodes, projects, linkChecks } = agent
    const project_id = await newProject()
    const ref = await newPc(project_id, 'PC1')
    const lport = await projects.reserveUdpPort(project_id)
    expect(await linkChecks.candidates(project_id, lport)).toHaveProperty('addresses')
    const nio = { type: 'nio_udp', lport, rhost: '127.0.0.1', rport: 5 } as const
    expect(await nodes.attachNio(ref, port, nio, 'service')).toMatchObject(nio)
    const changed = { filters: { delay: [5] }, suspend: true }
    expect(await nodes.updateNio(ref, port, changed)).toMatchObject({
      ...nio,
      suspend: true,
      filters: { delay: [5] },
    })
    await nodes.detachNio(ref, port)
    await expect(nodes.nioState(ref, port)).rejects.toMatchObject({ status: 404 })
    const spare = await projects.reserveUdpPort(project_id)
    await projects.releaseUdpPort(project_id, spare)
    await expect(projects.releaseUdpPort(project_id, spare)).rejects.toMatchObject({ status: 404 })
  })

  test('keeps files and snapshots of a project', async () => {
    const { files, snapshots, projects } = agent
    const project_id = await newProject()
    await files.write(project_id, 'project-files/notes/a.txt', contentOf('before'), { parents: true, size: 6 })
    const noParent = files.write(project_id, 'project-files/other/a.txt', contentOf('x'), { parents: false })
    await expect(noParent).rejects.toMatchObject({ status: 404 })
    const snapshot = randomUUID()
    expect(await snapshots.take(project_id, snapshot)).toMatchObject({ snapshot_id: snapshot })
    await files.write(project_id, 'project-files/notes/a.txt', contentOf('after'), { parents: true })
    const read = async (options = {}) => {
      const { content, size } = await files.read(project_id, 'project-files/notes/a.txt', options)
      return [await textOf(content), size]
    }
    expect([await read(), await read({ snapshot })]).toEqual([
      ['after', 5],
      ['before', 6],
    ])
    expect(await files.list(project_id, { sums: false })).toContainEqual({ path: 'project-files/notes/a.txt', size: 5 })
    expect(await files.list(project_id, { sums: false, snapshot })).toContainEqual({
      path: 'project-files/notes/a.txt',
      size: 6,
    })
    await projects.close(project_id)
    for (const step of ['prepare', 'commit', 'finish'] as const) await snapshots.restore(project_id, snapshot, step)
    await projects.create({ project_id })
    expect(await read()).toEqual(['before', 6])
    expect(await snapshots.list(project_id)).toMatchObject([{ snapshot_id: snapshot }])
    await snapshots.remove(project_id, snapshot)
    await expect(files.read(project_id, '../x')).rejects.toMatchObject({ status: expect.toBeOneOf([400, 403]) })
  })

  test('keeps images', async () => {
    const { images } = agent
    const name = 'tiny.img'
    const write = images.write('machine-emulator', name, contentOf('disk'), { digests: [], size: 4 })
    expect(await write).toEqual({ received: 4, done: true })
    expect(await images.list('machine-emulator')).toMatchObject([{ filename: name }])
    const { content, size } = await images.read('machine-emulator', name, { range: { first: 1, last: 2 } })
    expect([await textOf(content), size]).toEqual(['is', 4])
    await images.rename('machine-emulator', name, 'other.img')
    await images.remove('machine-emulator', 'other.img')
    await expect(images.remove('machine-emulator', name)).rejects.toMatchObject({ status: 404 })
  })

  test('knows its host', async () => {
    const { host } = agent
    const { version } = await host.version()
    expect(await host.capabilities()).toMatchObject({ version })
    expect(await host.load()).toHaveProperty('cpu_usage_percent')
    expect(await host.ports()).toHaveProperty('console_port_range')
    expect(await host.interfaces()).toBeInstanceOf(Array)
    expect(await host.metrics()).toContainEqual(expect.objectContaining({ name: 'patchbay_info' }))
    expect(await host.doctor()).toHaveProperty('checks')
    expect(await host.reloadConfig()).toEqual({ changed: [], needs_restart: [] })
  })
})
