import { randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { CommandLine } from '../support/command-line.ts'
import { requireContainers } from '../support/container-image.ts'
import { addImage } from '../support/container-lab.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const topology = `name: routed
topology:
  kinds:
    linux: { image: "lab/busybox:1" }
  nodes:
    h1:
      kind: linux
      env: { ROLE: host one }
      exec: [ip addr add 10.0.1.2/24 dev eth1, ip route add default via 10.0.1.1]
    r1:
      kind: linux
      binds: [r1/setup.sh:/setup.sh, r1:/etc/lab]
      exec: [/setup.sh]
    h2: { kind: linux, exec: [ip route add default via 10.0.2.1] }
  links:
    - endpoints: [h1:eth1, r1:eth1]
    - endpoints: [r1:eth2, { node: h2, interface: eth1, ipv4: 10.0.2.2/24 }]
`

testWith(await requireContainers())(
  'a topology of containerlab runs as it is: hosts, a router, and the files that it binds',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    await addImage(service, 'lab_busybox_1.tar')
    const patchbay = await CommandLine.of({ server: service.url })
    await patchbay.file('routed.clab.yml', topology)
    await mkdir(join(patchbay.home, 'r1'))
    await writeFile(
      join(patchbay.home, 'r1/setup.sh'),
      '#!/bin/sh\nip addr add 10.0.1.1/24 dev eth1\nip addr add 10.0.2.1/24 dev eth2\ncat /etc/lab/motd > /tmp/motd\n',
    )
    await writeFile(join(patchbay.home, 'r1/motd'), 'a router\n')
    expect(await patchbay.run(['up', 'routed.clab.yml'])).toMatchObject({ code: 0 })
    const said = (node: string, command: string, expected: string) =>
      patchbay.run(['exec', `routed/${node}`, command, '--expect', expected, '--within', '20s'])
    expect(await said('r1', 'cat /tmp/motd', 'a router')).toMatchObject({ code: 0 })
    expect(await said('h1', 'echo "I am $ROLE"', 'I am host one')).toMatchObject({ code: 0 })
    expect(await said('h1', 'ping -c 3 -i 0.2 10.0.2.2', '0% packet loss')).toMatchObject({ code: 0 })
    expect(await patchbay.run(['diff', 'routed.clab.yml', '--exit-code'])).toMatchObject({ code: 0 })
    // A file beside the topology that changed is a change of the lab.
    await writeFile(join(patchbay.home, 'r1/motd'), 'another router\n')
    const changed = await patchbay.run(['diff', 'routed.clab.yml'])
    expect(changed.out).toMatch(/r1.*files/s)
  },
  60_000,
)

testWith(await requireContainers())(
  'a project of GNS3 with docker nodes runs as it is: command, variables, hosts and addresses',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    await addImage(service, 'lab_busybox_latest.tar')
    const patchbay = await CommandLine.of({ server: service.url })
    const [first, second] = [randomUUID(), randomUUID()]
    const node = (node_id: string, name: string, properties: object) => ({
      ...{ node_id, name, node_type: 'docker', console_type: 'telnet' },
      properties: { image: 'lab/busybox', adapters: 2, ...properties },
    })
    const nodes = [
      node(first, 'h1', { environment: 'ROLE=host one', extra_hosts: 'other:10.0.0.2' }),
      node(second, 'h2', { start_command: 'sh -c "ip address add 10.0.0.2/24 dev eth1; exec sh"' }),
    ]
    const ends = [
      { node_id: first, adapter_number: 0, port_number: 0 },
      { node_id: second, adapter_number: 1, port_number: 0 },
    ]
    const topology = { nodes, links: [{ nodes: ends }], drawings: [] }
    await patchbay.file('boxes.gns3', JSON.stringify({ name: 'boxes', revision: 9, topology }, null, 4))
    const directory = join(patchbay.home, 'project-files/docker', first, 'etc/network')
    await mkdir(directory, { recursive: true })
    await writeFile(
      join(directory, 'interfaces'),
      'auto eth0\niface eth0 inet static\n  address 10.0.0.1\n  netmask 255.255.255.0\n',
    )
    expect(await patchbay.run(['up', 'boxes.gns3'])).toMatchObject({ code: 0 })
    const said = (name: string, command: string, expected: string) =>
      patchbay.run(['exec', `boxes/${name}`, command, '--expect', expected, '--within', '20s'])
    expect(await said('h1', 'echo "I am $ROLE"', 'I am host one')).toMatchObject({ code: 0 })
    expect(await said('h1', 'cat /etc/network/interfaces', 'netmask 255.255.255.0')).toMatchObject({ code: 0 })
    expect(await said('h1', 'ip address show dev eth0', 'inet 10.0.0.1/24')).toMatchObject({ code: 0 })
    expect(await said('h1', 'ping -c 3 -i 0.2 other', '0% packet loss')).toMatchObject({ code: 0 })
  },
  60_000,
)
