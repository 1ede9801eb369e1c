import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { KeeperClient } from '../../../../runtime/node/keeper/client/client.ts'
import { createPc, openConsole, reserve, start } from '../../../support/lab.ts'
import { programWithMirror } from '../../../support/more-kinds.ts'
import { TestService } from '../../../support/service.ts'

interface State {
  readonly link_id: string
  readonly verdict: string
  readonly reason: string | null
  readonly ab: { readonly frames: number }
}

interface Changes {
  readonly states: readonly State[]
  readonly next: string
  readonly more: boolean
}

/** A project with pcs 10.0.0.1, 10.0.0.2 and so on; their paths. */
async function pcs(count: number) {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const project = `/v2/compute/projects/${project_id}`
  const paths = await Promise.all(Array.from({ length: count }, (_, index) => createPc(service, project, index + 1)))
  return { service, project, pcs: paths as [string, string, string] }
}

const portOf = (node: string) => ({
  ...{ node_type: 'pc', adapter_number: 0, port_number: 0 },
  node_id: node.split('/').at(-1),
})
const nioOf = (node: string) => `${node}/adapters/0/ports/0/nio`

async function pings(service: TestService, node: string, address: string): Promise<void> {
  const terminal = await openConsole(service, node)
  terminal.type(`ping ${address} -c 1\n`)
  await terminal.expect('bytes from')
}

describe('direct links', () => {
  test('join nodes before and after they start, take no UDP port, and show as NIOs', async () => {
    const {
      service,
      project,
      pcs: [a, b],
    } = await pcs(2)
    const link_id = randomUUID()
    const link = `${project}/links/${link_id}`
    expect(await service.call<State>('PUT', link, { nodes: [portOf(a), portOf(b)] })).toMatchObject({
      ...{ link_id, verdict: 'stopped', reason: 'PC1 is not running: start it' },
    })
    await start(service, a, b)
    await pings(service, a, '10.0.0.2')
    const { udp_ports } = await service.call<{ udp_ports: number[] }>('GET', '/v2/compute/network/ports')
    // The private ports of the two guests.
    expect(udp_ports).toHaveLength(2)
    expect(await service.call('GET', nioOf(a))).toMatchObject({ type: 'nio_link', link_id, link: 'ok' })
    const state = await service.call<State>('GET', link)
    expect(state).toMatchObject({ verdict: 'ok', reason: null })
    expect(state.ab.frames).toBeGreaterThan(0)
    // A change reads no counters: it is told with those that were read last, and the next rates begin at them.
    const feed = await service.fetch(`${project}/notifications`)
    await service.call('PUT', link, { filters_ab: { delay: [1] } })
    let told = ''
    for await (const piece of (feed.body as ReadableStream<BufferSource>).pipeThrough(new TextDecoderStream())) {
      told += piece
      if (/link\.updated.*\n/.test(told)) break
    }
    expect(told).toMatch(`"ab":{"frames":${state.ab.frames},`)
    await service.call('DELETE', link)
    expect((await service.fetch(nioOf(b))).status).toBe(404)
    expect(await service.call('GET', `${project}/links`)).toEqual([])
  })

  test('outlive a killed service, a restart of a node, and the keeper', async () => {
    const {
      service,
      project,
      pcs: [a, b],
    } = await pcs(2)
    const link = `${project}/links/${randomUUID()}`
    await service.call('PUT', link, { nodes: [portOf(a), portOf(b)], filters_ab: { delay: [1] } })
    await start(service, a, b)
    await pings(service, a, '10.0.0.2')
    await service.kill('SIGKILL')
    await service.restart()
    expect(await service.call('GET', link)).toMatchObject({ verdict: 'ok', filters_ab: { delay: [1] } })
    await pings(service, a, '10.0.0.2')
    await service.call('POST', `${b}/stop`)
    await start(service, b)
    await pings(service, a, '10.0.0.2')
    const keeper = await KeeperClient.connect(service.data)
    process.kill(keeper.pid, 'SIGKILL')
    await keeper.closed
    await expect.poll(async () => (await service.call<State>('GET', link)).verdict).toBe('stopped')
    await start(service, a, b)
    await pings(service, b, '10.0.0.1')
  })

  test('lose a port to a NIO, which is reported, and get the port back', async () => {
    const {
      service,
      project,
      pcs: [a, b],
    } = await pcs(2)
    const link = `${project}/links/${randomUUID()}`
    const wanted = { nodes: [portOf(a), portOf(b)] }
    await service.call('PUT', link, wanted)
    const lport = await reserve(service, project)
    await service.call('POST', nioOf(a), { type: 'nio_udp', lport, rhost: '127.0.0.1', rport: 9 })
    expect(await service.call('GET', link)).toMatchObject({
      verdict: 'detached',
      reason: expect.stringContaining('PC1'),
    })
    expect((await service.fetch(nioOf(b))).status).toBe(404)
    await service.kill('SIGKILL')
    await service.restart()
    expect(await service.call('GET', link)).toMatchObject({ verdict: 'detached' })
    expect(await service.call('GET', nioOf(a))).toMatchObject({ type: 'nio_udp', lport })
    expect(await service.call('PUT', link, wanted)).toMatchObject({ verdict: 'stopped' })
    expect((await service.call<{ udp_ports: number[] }>('GET', '/v2/compute/network/ports')).udp_ports).not.toContain(
      lport,
    )
    await service.call('DELETE', nioOf(b))
    expect(await service.call('GET', link)).toMatchObject({ verdict: 'detached' })
    expect((await service.fetch(nioOf(a))).status).toBe(404)
  })

  test('come and go with a project and its nodes', async () => {
    const {
      service,
      project,
      pcs: [a, b, c],
    } = await pcs(3)
    const [one, other] = [randomUUID(), randomUUID()]
    const links = [
      { link_id: one, nodes: [portOf(a), portOf(b)] },
      { link_id: other, nodes: [portOf(c), { ...portOf(c), port_number: 7 }] },
    ]
    expect(await service.call('POST', `${project}/links`, { links })).toMatchObject([
      { link_id: one, error: null },
      { link_id: other, error: { status: 404, message: expect.stringContaining('port_number') } },
    ])
    await service.call('POST', `${project}/close`)
    await service.call('POST', '/v2/compute/projects', { project_id: project.split('/').at(-1), name: 'lab' })
    await start(service, a, b)
    await pings(service, a, '10.0.0.2')
    await service.call('DELETE', a)
    expect(await service.call('GET', `${project}/links`)).toEqual([])
    expect((await service.fetch(nioOf(b))).status).toBe(404)
  })

  test('report all states once, then changed ones, and all to a client of an earlier service', async () => {
    const {
      service,
      project,
      pcs: [a, b, c],
    } = await pcs(3)
    const [link_id, other] = [randomUUID(), randomUUID()]
    await service.call('PUT', `${project}/links/${link_id}`, { nodes: [portOf(a), portOf(b)] })
    const list = async (since?: string) =>
      service.call<Changes>('GET', `${project}/link_states${since === undefined ? '' : `?since=${since}`}`)
    const ids = ({ states }: Changes) => states.map((state) => state.link_id)
    const first = await list()
    expect(first).toMatchObject({ states: [{ link_id, verdict: 'stopped', ab: { frames: 0 } }], more: false })
    expect(ids(await list(first.next))).toEqual([])
    await start(service, a, b)
    let changed = first
    const wait = async (fits: (found: Changes) => boolean) =>
      expect
        .poll(async () => {
          changed = await list(first.next)
          return fits(changed)
        })
        .toBe(true)
    await wait(({ states }) => states[0]?.verdict === 'ok')
    // It has the id of a link that was there, and the state that this one had: it is told nevertheless.
    await service.call('DELETE', `${project}/links/${link_id}`)
    await service.call('PUT', `${project}/links/${other}`, { nodes: [portOf(b), portOf(c)] })
    await wait((found) => ids(found).join() === other)
    expect(ids(await list(changed.next))).toEqual([])
    await service.call('DELETE', `${project}/links/${other}`)
    await service.call('PUT', `${project}/links/${other}`, { nodes: [portOf(b), portOf(c)] })
    const again = changed.next
    await expect.poll(async () => ids(await list(again))).toEqual([other])
    await service.kill('SIGKILL')
    await service.restart()
    expect(ids(await list(changed.next))).toEqual([other])
  })

  test('report at most 250 states in one answer, and the others in the next', async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
    const project = `/v2/compute/projects/${project_id}`
    const ports_mapping = Array.from({ length: 520 }, (_, port_number) => ({ port_number }))
    const box = { name: 'S1', ports_mapping }
    const { node_id } = await service.call<{ node_id: string }>('POST', `${project}/switch/nodes`, box)
    const end = (port_number: number) => ({ node_type: 'switch', node_id, adapter_number: 0, port_number })
    const links = Array.from({ length: 260 }, (_, index) => ({
      link_id: randomUUID(),
      nodes: [end(2 * index), end(2 * index + 1)],
    }))
    await service.call('POST', `${project}/links`, { links })
    const first = await service.call<Changes>('GET', `${project}/link_states`)
    const second = await service.call<Changes>('GET', `${project}/link_states?since=${first.next}`)
    expect([first.states.length, first.more, second.states.length, second.more]).toEqual([250, true, 10, false])
    const told = [...first.states, ...second.states].map(({ link_id }) => link_id)
    expect(new Set(told)).toEqual(new Set(links.map(({ link_id }) => link_id)))
  })

  test('join nodes of two keepers by UDP ports, until both are in one', async () => {
    const another = await programWithMirror()
    const {
      service,
      project,
      pcs: [a, b],
    } = await pcs(2)
    const used = async () =>
      (await service.call<{ udp_ports: number[] }>('GET', '/v2/compute/network/ports')).udp_ports.length
    await start(service, a)
    await service.kill('SIGKILL')
    service.become(another)
    await service.restart()
    await start(service, b)
    const link = `${project}/links/${randomUUID()}`
    await service.call('PUT', link, { nodes: [portOf(a), portOf(b)], filters_ab: { delay: [1] } })
    await pings(service, a, '10.0.0.2')
    expect(await used()).toBe(4)
    await service.kill('SIGKILL')
    await service.restart()
    await pings(service, b, '10.0.0.1')
    // Its next start is in the keeper of this build.
    await service.call('POST', `${a}/stop`)
    await start(service, a)
    await pings(service, a, '10.0.0.2')
    expect(await used()).toBe(2)
  })

  test('the shown NIO of a port is accepted unchanged, and cannot be attached', async () => {
    const {
      service,
      project,
      pcs: [a, b, c],
    } = await pcs(3)
    const link_id = randomUUID()
    await service.call('PUT', `${project}/links/${link_id}`, { nodes: [portOf(a), portOf(b)] })
    const shown = await service.call('GET', nioOf(a))
    expect(await service.call('PUT', nioOf(a), shown)).toEqual({ type: 'nio_link', link_id })
    const change = await service.fetch(nioOf(a), { method: 'PUT', body: JSON.stringify({ suspend: true }) })
    expect([change.status, await change.text()]).toEqual([409, expect.stringContaining(link_id)])
    const copy = await service.fetch(nioOf(c), { method: 'POST', body: JSON.stringify({ type: 'nio_link', link_id }) })
    expect(copy.status).toBe(400)
  })
})
