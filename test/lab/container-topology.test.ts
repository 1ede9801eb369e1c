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
