import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { createPc, openConsole, start } from '../../support/lab.ts'
import { freshName, Namespace, removeLater } from '../../support/namespace.ts'
import { freePorts } from '../../support/ports.ts'
import { requireDevices } from '../../support/require.ts'
import { TestService } from '../../support/service.ts'
import { describeWith } from '../../support/test-with.ts'

const devices = requireDevices()

interface Node {
  readonly node_id: string
  readonly status: string
  readonly ports_mapping: readonly object[]
  readonly interfaces: readonly { name: string }[]
}

/** A project with the pc 10.0.0.1. */
async function lab(settings: Record<string, unknown> = {}) {
  const service = await TestService.start({ 'pc.engine': 'embedded', ...settings })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const project = `/v2/compute/projects/${project_id}`
  const pc = await createPc(service, project, 1)
  const make = async (kind: string, ports_mapping: readonly object[]) => {
    const node = await service.call<Node>('POST', `${project}/${kind}/nodes`, { name: kind, ports_mapping })
    return { node, path: `${project}/${kind}/nodes/${node.node_id}` }
  }
  const end = (path: string, port_number: number) => {
    const [, kind, id] = /([a-z-]+)\/nodes\/(.+)$/.exec(path) ?? []
    return { node_type: kind, node_id: id, adapter_number: 0, port_number }
  }
  const join = async (one: readonly [string, number], other: readonly [string, number]) => {
    const link = `${project}/links/${randomUUID()}`
    const answer = await service.fetch(link, {
      method: 'PUT',
      body: JSON.stringify({ nodes: [end(...one), end(...other)] }),
    })
    return { link, status: answer.status, text: await answer.text() }
  }
  return { service, project, pc, make, join }
}

async function pings(service: TestService, node: string, address: string): Promise<void> {
  const terminal = await openConsole(service, node)
  terminal.type(`ping ${address} -c 1\n`)
  await terminal.expect('bytes from')
}

describeWith(devices)('a cloud', () => {
  test('is a device of the host, which is in use while a link is attached to it', async () => {
    const { service, pc, make, join } = await lab()
    const host = await Namespace.make()
    const { outside, inside } = await host.veth()
    await host.address(inside, '10.0.0.9/24')
    const { node, path } = await make('cloud', [{ port_number: 0, type: 'ethernet', interface: outside }])
    expect(node).toMatchObject({ status: 'started', ports_mapping: [{ name: outside, type: 'ethernet' }] })
    expect(node.interfaces.map(({ name }) => name)).toContain(outside)
    await start(service, pc)
    const { link } = await join([pc, 0], [path, 0])
    await pings(service, pc, '10.0.0.9')
    expect(await host.run('ping', '-c', '1', '10.0.0.1')).toContain(' 0% packet loss')
    await service.call('DELETE', link)
    await expect(host.run('ping', '-c', '1', '-W', '1', '10.0.0.1')).rejects.toThrow()
    await join([pc, 0], [path, 0])
    await pings(service, pc, '10.0.0.9')
    await service.call('POST', `${path}/stop`)
    await expect(host.run('ping', '-c', '1', '-W', '1', '10.0.0.1')).rejects.toThrow()
    await start(service, path)
    await pings(service, pc, '10.0.0.9')
  })

  test('loses no frame when the service is killed', async () => {
    const { service, pc, make, join } = await lab()
    const host = await Namespace.make()
    const { outside, inside } = await host.veth()
    await host.address(inside, '10.0.0.9/24')
    const { path: cloud } = await make('cloud', [{ port_number: 0, interface: outside }])
    const { path: box } = await make('switch', [{ port_number: 0 }, { port_number: 1 }])
    await start(service, pc)
    await join([pc, 0], [box, 0])
    await join([box, 1], [cloud, 0])
    await pings(service, pc, '10.0.0.9')
    const traffic = host.start('ping', '-i', '0.02', '-c', '100', '10.0.0.1')
    const over = once(traffic, 'exit')
    let said = ''
    traffic.stdout?.on('data', (text) => {
      said += text
    })
    await service.kill('SIGKILL')
    await service.restart()
    await over
    expect(said).toContain('100 received')
    await pings(service, pc, '10.0.0.9')
  })

  test('has a TAP made, and a UDP tunnel with the port that it names', async () => {
    const { service, pc, make, join } = await lab()
    const device = freshName()
    removeLater(device)
    const base = freePorts(2)
    const { path } = await make('cloud', [
      { port_number: 3, type: 'tap', interface: device },
      { port_number: 4, type: 'udp', lport: base, rhost: '127.0.0.1', rport: base + 1 },
      { port_number: 5, type: 'udp', lport: base + 1, rhost: '127.0.0.1', rport: base },
    ])
    await start(service, pc)
    await join([pc, 0], [path, 3])
    const host = await Namespace.make()
    await host.take(device, '10.0.0.9/24')
    await pings(service, pc, '10.0.0.9')
    const other = await createPc(service, path.replace(/\/cloud.*/, ''), 2)
    await start(service, other)
    expect((await join([pc, 0], [path, 4])).status).toBe(201)
    expect((await join([other, 0], [path, 5])).status).toBe(201)
    await pings(service, pc, '10.0.0.2')
  })

  test('uses only allowed, existing devices', async () => {
    const { service, pc, make, join } = await lab({ allowed_interfaces: ['pbt*'] })
    const refused = await make('cloud', [{ port_number: 0, interface: 'lo' }]).catch((error: Error) => error.message)
    expect(refused).toMatch(/403 .*allowed_interfaces/)
    const { node, path } = await make('cloud', [{ port_number: 0, interface: 'pbt-missing' }])
    expect(node.status).toBe('started')
    expect(await join([pc, 0], [path, 0])).toMatchObject({ status: 404, text: expect.stringContaining('pbt-missing') })
    expect(await service.call('GET', `${path.replace(/\/cloud.*/, '')}/links`)).toEqual([])
    const lacking = await make('cloud', [{ port_number: 0, type: 'udp', lport: 4000 }]).catch(
      (error: Error) => error.message,
    )
    expect(lacking).toMatch(/400 .*rhost/)
  })
})
