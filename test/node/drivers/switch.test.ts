import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { KeeperClient } from '../../../runtime/node/keeper/client/client.ts'
import { createPc, openConsole, reserve, start, status } from '../../support/lab.ts'
import { TestService } from '../../support/service.ts'

interface Node {
  readonly node_id: string
  readonly status: string
  readonly ports_mapping: readonly { port_number: number; name: string; type: string; vlan: number }[]
}

/** A project with a switch (or a hub) and pcs 10.0.0.1, 10.0.0.2 and so on, linked to its ports. */
async function lab(count: number, kind = 'switch', more: object = {}) {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const project = `/v2/compute/projects/${project_id}`
  const node = await service.call<Node>('POST', `${project}/${kind}/nodes`, { name: 'S1', ...more })
  const box = `${project}/${kind}/nodes/${node.node_id}`
  const pcs = await Promise.all(Array.from({ length: count }, (_, index) => createPc(service, project, index + 1)))
  const links = pcs.map((pc, port_number) => ({
    link_id: randomUUID(),
    nodes: [
      { node_type: 'pc', node_id: pc.split('/').at(-1), adapter_number: 0, port_number: 0 },
      { node_type: kind, node_id: node.node_id, adapter_number: 0, port_number },
    ],
  }))
  const joined = await service.call<{ error: unknown }[]>('POST', `${project}/links`, { links })
  expect(joined.map(({ error }) => error)).toEqual(links.map(() => null))
  await start(service, ...pcs)
  return { service, project, node, box, pcs: pcs as [string, string, string], links }
}

async function pings(service: TestService, node: string, address: string, answer = 'bytes from'): Promise<void> {
  const terminal = await openConsole(service, node)
  terminal.type(`ping ${address} -c 1\n`)
  await terminal.expect(answer)
}

describe('a switch', () => {
  test('runs from its creation on, and learns', async () => {
    const {
      service,
      node,
      box,
      pcs: [a],
    } = await lab(3)
    expect(node).toMatchObject({ status: 'started', console: null, console_type: 'none', ageing_time: 300 })
    expect(node.ports_mapping).toHaveLength(8)
    expect(node.ports_mapping[3]).toEqual({ port_number: 3, name: 'Ethernet3', type: 'access', vlan: 1, ethertype: '' })
    await pings(service, a, '10.0.0.2')
    await pings(service, a, '10.0.0.3')
    const table = await service.call<{ port_number: number }[]>('GET', `${box}/mac-table`)
    expect(table).toHaveLength(3)
    expect(table.map(({ port_number }) => port_number).sort()).toEqual([0, 1, 2])
    // A frame that was under way may come after the first time.
    const cleared = async () => {
      await service.call('POST', `${box}/mac-table/clear`)
      return service.call('GET', `${box}/mac-table`)
    }
    await expect.poll(cleared).toEqual([])
  })

  test('forwards nothing when it is stopped, and says so at its links', async () => {
    const {
      service,
      project,
      box,
      pcs: [a],
      links,
    } = await lab(2)
    await service.call('POST', `${box}/stop`)
    expect(await service.call('GET', `${project}/links/${links[0]?.link_id}`)).toMatchObject({
      ...{ verdict: 'stopped', reason: 'S1 is not running: start it' },
    })
    expect((await service.fetch(`${box}/mac-table`)).status).toBe(409)
    await pings(service, a, '10.0.0.2', 'not reachable')
    await start(service, box)
    await pings(service, a, '10.0.0.2')
  })

  test('has its VLANs changed while it runs, and loses ports with their links', async () => {
    const {
      service,
      project,
      box,
      pcs: [a],
      links,
    } = await lab(2)
    const mapping = (vlan: number) => ({
      ports_mapping: [{ port_number: 0 }, { port_number: 1, vlan, name: 'uplink' }],
    })
    await service.call('PUT', box, mapping(20))
    await pings(service, a, '10.0.0.2', 'not reachable')
    await service.call('PUT', box, mapping(1))
    await pings(service, a, '10.0.0.2')
    await service.call('PUT', box, { ports_mapping: [{ port_number: 0 }] })
    expect(await service.call('GET', `${project}/links/${links[1]?.link_id}`)).toMatchObject({ verdict: 'detached' })
    const wrong = { ports_mapping: [{ port_number: 4 }, { port_number: 4 }] }
    expect((await service.fetch(box, { method: 'PUT', body: JSON.stringify(wrong) })).status).toBe(400)
  })

  test('keeps running while the service is down, and runs again after the keeper died or the project was closed', async () => {
    const {
      service,
      project,
      box,
      pcs: [a, b],
    } = await lab(2)
    await pings(service, a, '10.0.0.2')
    const terminal = await openConsole(service, a)
    await service.kill('SIGKILL')
    // Its console is held by the keeper, as the switch is.
    terminal.type('ping 10.0.0.2 -c 3\n')
    await terminal.expect('icmp_seq=3')
    await service.restart()
    expect(await status(service, box)).toBe('started')
    await pings(service, b, '10.0.0.1')
    const keeper = await KeeperClient.connect(service.data)
    process.kill(keeper.pid, 'SIGKILL')
    await keeper.closed
    await expect.poll(() => status(service, a)).toBe('stopped')
    await expect.poll(() => status(service, box)).toBe('started')
    await start(service, a, b)
    await pings(service, a, '10.0.0.2')
    await service.call('POST', `${project}/close`)
    await service.call('POST', '/v2/compute/projects', { project_id: project.split('/').at(-1), name: 'lab' })
    expect(await status(service, box)).toBe('started')
    await start(service, a, b)
    await pings(service, a, '10.0.0.2')
  })

  test('accepts NIOs like any node', async () => {
    const {
      service,
      project,
      box,
      pcs: [a, b],
    } = await lab(1).then(async (it) => ({
      ...it,
      pcs: [it.pcs[0], await createPc(it.service, it.project, 2)] as const,
    }))
    const [here, there] = [await reserve(service, project), await reserve(service, project)]
    const nio = (lport: number, rport: number) => ({ type: 'nio_udp', lport, rhost: '127.0.0.1', rport })
    await service.call('POST', `${box}/adapters/0/ports/5/nio`, nio(here, there))
    await service.call('POST', `${b}/adapters/0/ports/0/nio`, nio(there, here))
    await start(service, b)
    await pings(service, a, '10.0.0.2')
  })

  test('reports a loop', async () => {
    const {
      service,
      project,
      node,
      pcs: [a],
    } = await lab(1)
    const other = await service.call<Node>('POST', `${project}/switch/nodes`, { name: 'S2' })
    const end = (node_id: string, port_number: number) => ({
      node_type: 'switch',
      node_id,
      adapter_number: 0,
      port_number,
    })
    // Open before there is a loop: the first frame may already be in it, and it is told of once in 10 s.
    const feed = await service.fetch(`${project}/notifications`)
    for (const port of [5, 6])
      await service.call('PUT', `${project}/links/${randomUUID()}`, {
        nodes: [end(node.node_id, port), end(other.node_id, port)],
      })
    await pings(service, a, '10.0.0.9', 'not reachable')
    let told = ''
    for await (const text of feed.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      told += text
      if (/S[12]: there is a loop/.test(told)) break
    }
  })
})

test('a hub sends everything to all', async () => {
  const {
    service,
    node,
    pcs: [a],
  } = await lab(3, 'hub')
  expect(node).toMatchObject({ status: 'started' })
  expect(node.ports_mapping[0]).toEqual({ port_number: 0, name: 'Ethernet0' })
  await pings(service, a, '10.0.0.2')
  await pings(service, a, '10.0.0.3')
})
