import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { requireLibslirp } from '../node/drivers/nat/nat-lab.ts'
import { CommandLine } from '../support/command-line.ts'
import { requireContainers } from '../support/container-image.ts'
import { addImage, createContainer, createProject, Shell } from '../support/container-lab.ts'
import { attach, reserve, start } from '../support/lab.ts'
import { freePort } from '../support/ports.ts'
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

  testWith(...needed)(
    'have the addresses of their ports by DHCP or settings, and know each other by name',
    async () => {
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
    },
  )
})

testWith(...needed)(
  'a lab with a management network has it in one piece: addresses, names, ports of the host, and its file',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    await addImage(service)
    const patchbay = await CommandLine.of({ server: service.url })
    const port = await freePort()
    const file = (nodes: string) => `lab: managed
version: 1

nodes:
  web:
    kind: container
    image: busybox.tar
    exec: httpd -p 80 -h /srv
    files: [{ path: /srv/index.html, text: hello from web }]
    management: { address: 172.20.20.11, ports: ["${port}:80"] }
  client: { kind: container, image: busybox.tar }
${nodes}
management: { network: 172.20.20.0/24 }

links:
  - [web, client]
`
    await patchbay.file('managed.lab.yaml', file(''))
    expect(await patchbay.run(['up', 'managed.lab.yaml'])).toMatchObject({ code: 0 })
    const said = (node: string, command: string, expected: string) =>
      patchbay.run(['exec', `managed/${node}`, command, '--expect', expected, '--within', '20s'])
    expect(
      await said('client', 'ping -c 1 -W 5 web', '\\(172\\.20\\.20\\.11\\)[\\s\\S]*1 packets received'),
    ).toMatchObject({ code: 0 })
    expect(await said('web', 'ping -c 1 -W 5 client.internal', '1 packets received')).toMatchObject({
      code: 0,
    })
    await expect.poll(() => fetch(`http://127.0.0.1:${port}/`).then((it) => it.text())).toBe('hello from web')
    // The lab is what the file says, in the words of the file.
    expect(await patchbay.run(['diff', 'managed.lab.yaml', '--exit-code'])).toMatchObject({ code: 0 })
    const { out } = await patchbay.run(['export', 'managed', '-'])
    expect(out).toContain('management:\n  network: 172.20.20.0/24')
    expect(out).toContain(`management: { address: 172.20.20.11, ports: [ ${port}:80 ] }`)
    expect(out).not.toContain('segments')
    expect(await patchbay.run(['save', 'managed.lab.yaml', '--check'])).toMatchObject({ code: 0 })
    const inventory = await patchbay.run(['inventory', 'managed', '--format', 'ansible'])
    expect(inventory.out).toContain('ansible_host: 172.20.20.11')
    expect(await patchbay.json(['inventory', 'managed'])).toMatchObject({
      lab: 'managed',
      hosts: [
        { name: 'client', address: expect.stringMatching(/^172\.20\.20\./), console: { host: '127.0.0.1' } },
        { name: 'web', address: '172.20.20.11', forwards: [{ host_port: port, guest_port: 80 }] },
      ],
    })
    // Another node joins while all run.
    await patchbay.file('managed.lab.yaml', file('  third: { kind: container, image: busybox.tar }'))
    expect(await patchbay.run(['up', 'managed.lab.yaml'])).toMatchObject({ code: 0 })
    expect(await said('client', 'ping -c 1 -W 5 third', '1 packets received')).toMatchObject({ code: 0 })
    // A file that is refused changes nothing.
    await patchbay.file(
      'managed.lab.yaml',
      file('  R_1: { kind: container, image: busybox.tar, management: 172.20.20.11 }'),
    )
    const refused = await patchbay.run(['up', 'managed.lab.yaml'])
    expect([refused.code, refused.err]).toEqual([
      expect.any(Number),
      expect.stringContaining('"web" already has the address'),
    ])
    expect(refused.code).not.toBe(0)
  },
  90_000,
)
