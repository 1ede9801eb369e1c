import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { mac, rawFrame } from '../../support/frames.ts'
import { Namespace } from '../../support/namespace.ts'
import { requireDevices, requireProgram } from '../../support/require.ts'
import { TestService } from '../../support/service.ts'
import { describeWith } from '../../support/test-with.ts'

const experimental = 0x88b6
const broadcast = [255, 255, 255, 255, 255, 255]

/** A switch whose ports are linked to veth devices of a cloud, with raw sockets at their other ends. */
async function wired(ports: readonly { type: string; vlan: number; ethertype?: string }[]) {
  const service = await TestService.start()
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'tags' })
  const project = `/v2/compute/projects/${project_id}`
  const host = await Namespace.make()
  const veths = await Promise.all(ports.map(() => host.veth()))
  const make = async (kind: string, ports_mapping: readonly object[]) => {
    const node = await service.call<{ node_id: string }>('POST', `${project}/${kind}/nodes`, {
      name: kind,
      ports_mapping,
    })
    return { node_type: kind, node_id: node.node_id, adapter_number: 0 }
  }
  const box = await make(
    'switch',
    ports.map((port, port_number) => ({ port_number, ...port })),
  )
  const cloud = await make(
    'cloud',
    veths.map(({ outside }, port_number) => ({ port_number, type: 'ethernet', interface: outside })),
  )
  const links = ports.map((_, port_number) => ({
    link_id: randomUUID(),
    nodes: [
      { ...box, port_number },
      { ...cloud, port_number },
    ],
  }))
  const joined = await service.call<{ error: unknown }[]>('POST', `${project}/links`, { links })
  expect(joined.map(({ error }) => error)).toEqual(links.map(() => null))
  const wires = await Promise.all(veths.map(({ inside }) => host.wire(inside)))
  return { service, project, box, host, devices: veths.map(({ inside }) => inside), wires }
}

/** The lines that tcpdump prints about frames at a device, from now on. */
async function dumpOf(host: Namespace, device: string) {
  const program = host.start('sh', '-c', 'exec tcpdump -i "$0" -Q in -e -n -t -l 2>&1', device)
  if (program.stdout === null) throw new Error('no pipe')
  const lines = createInterface({ input: program.stdout })
  const told: string[] = []
  lines.on('line', (line) => told.push(line))
  while (!told.some((line) => line.startsWith('listening on'))) await once(lines, 'line')
  return async (text: string) => {
    for (;;) {
      const line = told.find((it) => it.includes(text))
      if (line !== undefined) return line
      await once(lines, 'line')
    }
  }
}

describeWith(requireDevices(), requireProgram('tcpdump'))('tags of a switch, as tcpdump reads them', () => {
  test('a trunk has the VLAN of each frame but for the native one, with its priority', async () => {
    const { host, devices, wires } = await wired([
      { type: 'access', vlan: 10 },
      { type: 'dot1q', vlan: 20 },
      { type: 'access', vlan: 20 },
    ])
    const [ten, trunk, twenty] = wires
    const onTrunk = await dumpOf(host, devices[1] as string)
    ten?.send(rawFrame(broadcast, 'of ten'.padEnd(50), experimental))
    expect(await onTrunk('vlan 10')).toMatch(/ethertype 802\.1Q \(0x8100\), length 68: vlan 10, p 0, ethertype Unknown/)
    twenty?.send(rawFrame(broadcast, 'of twenty'.padEnd(40), experimental))
    expect(await onTrunk('length 54')).not.toContain('vlan')
    const onTen = await dumpOf(host, devices[0] as string)
    trunk?.send(rawFrame(broadcast, 'back'.padEnd(60), 0x8100, 0xa000 | 10, experimental))
    expect(await onTen('length 74')).not.toContain('vlan')
  })

  test.each([
    ['0x88A8', 0x88a8, '802.1Q-QinQ (0x88a8)'],
    ['0x9100', 0x9100, '802.1Q-9100 (0x9100)'],
  ])('a tunnel of %s has an outer VLAN around the inner one', async (ethertype, type, printed) => {
    const { host, devices, wires } = await wired([
      { type: 'dot1q', vlan: 1 },
      { type: 'qinq', vlan: 100, ethertype },
      { type: 'access', vlan: 10 },
    ])
    const [trunk, outer] = wires
    const onOuter = await dumpOf(host, devices[1] as string)
    trunk?.send(rawFrame(broadcast, 'inner'.padEnd(50), 0x8100, 0x6000 | 10, experimental))
    expect(await onOuter('vlan 100')).toContain(
      `ethertype ${printed}, length 72: vlan 100, p 3, ethertype 802.1Q (0x8100), vlan 10, p 3, ethertype Unknown`,
    )
    const [onTrunk, onTen] = [await dumpOf(host, devices[0] as string), await dumpOf(host, devices[2] as string)]
    outer?.send(rawFrame(mac(7), 'back'.padEnd(60), type, 100, 0x8100, 10, experimental))
    expect(await onTrunk('length 78')).toMatch(/ethertype 802\.1Q \(0x8100\), length 78: vlan 10, p 0/)
    expect(await onTen('length 74')).not.toContain('vlan')
  })

  test('a capture of a port shows them too', async () => {
    const { service, project, box, wires } = await wired([
      { type: 'access', vlan: 10 },
      { type: 'dot1q', vlan: 1 },
    ])
    const port = `${project}/switch/nodes/${box.node_id}/adapters/0/ports/1`
    const { pcap_file_path } = await service.call<{ pcap_file_path: string }>('POST', `${port}/start_capture`, {
      ...{ capture_file_name: 'trunk.pcap', data_link_type: 'DLT_EN10MB' },
    })
    wires[0]?.send(rawFrame(broadcast, 'of ten'.padEnd(50), experimental))
    await wires[1]?.next()
    await service.call('POST', `${port}/stop_capture`)
    const printed = execFileSync('tcpdump', ['-r', pcap_file_path, '-e', '-n', '-t'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    expect(String(printed)).toMatch(/802\.1Q \(0x8100\), length 68: vlan 10, p 0/)
  })
})
