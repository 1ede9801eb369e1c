import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { requireLibslirp } from '../node/drivers/nat/nat-lab.ts'
import { requireContainers } from '../support/container-image.ts'
import { addImage, createContainer, createProject, Shell } from '../support/container-lab.ts'
import { attach, reserve, start } from '../support/lab.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const containers = await requireContainers()
const needed = [containers, requireLibslirp()] as const

describe('guests of a nat', () => {
  let service: TestService
  beforeAll(async () => {
    if (needed.some(({ skip }) => skip)) return
    service = await TestService.startForAll()
    await addImage(service)
  })
  afterAll(() => service?.close())

  /** A nat with containers at its ports. */
  async function atNat(nat: object, ...containers: readonly object[]): Promise<[string, ...string[]]> {
    const project = await createProject(service)
    const node_id = randomUUID()
    await service.call('POST', `${project}/nat/nodes`, { name: 'inet', node_id, port_count: 8, ...nat })
    const inet = `${project}/nat/nodes/${node_id}`
    const all: string[] = []
    for (const [port, settings] of containers.entries()) {
      const node = await createContainer(service, project, settings)
      const [one, other] = [await reserve(service, project), await reserve(service, project)]
      await attach(service, node, one, other)
      const nio = { type: 'nio_udp', lport: other, rhost: '127.0.0.1', rport: one }
      await service.call('POST', `${inet}/adapters/0/ports/${port}/nio`, nio)
      all.push(node)
    }
    return [inet, ...all]
  }

  testWith(...needed)('have the addresses of their ports by DHCP or settings, and know each other by name', async () => {
    const guests = [
      { port_number: 0, name: 'R1', address: '10.30.0.50' },
      { port_number: 1, name: 'web-1', address: '10.30.0.5' },
    ]
    const web = { name: 'web 1', address: '10.30.0.5/24', gateway: '10.30.0.1', resolver: '10.30.0.1' }
    const [inet, r1 = '', other = ''] = await atNat({ subnet: '10.30.0.0/24', guests }, { name: 'R1' }, web)
    await start(service, inet, r1, other)
    const [one, two] = [await Shell.open(service, r1), await Shell.open(service, other)]
    expect(await one.run('udhcpc -n -q -i eth0 -s /bin/true 2>&1 | tail -1')).toContain('10.30.0.50 obtained')
    await one.run('ip addr add 10.30.0.50/24 dev eth0; echo nameserver 10.30.0.1 > /etc/resolv.conf')
    expect(await one.run('ping -c 1 -W 5 web-1 | grep received')).toContain('1 packets received')
    expect(await two.run('ip -4 -o addr show eth0; ip route')).toMatch(
      /inet 10\.30\.0\.5\/24 [\s\S]*default via 10\.30\.0\.1 dev eth0/,
    )
    expect(await two.run('ping -c 1 -W 5 r1.internal | head -1')).toContain('(10.30.0.50)')
    // Another guest takes its place while the nat runs.
    await service.call('PUT', inet, { guests: [{ port_number: 0, name: 'R2', address: '10.30.0.51' }] })
    expect(await one.run('udhcpc -n -q -i eth0 -s /bin/true 2>&1 | tail -1')).toContain('10.30.0.51 obtained')
    expect(await two.run('nslookup r2 | tail -3')).toContain('10.30.0.51')
  })
})
