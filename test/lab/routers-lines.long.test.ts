import { afterAll, beforeAll, expect } from 'vitest'
import { requireGuest } from '../support/guest/files.ts'
import { createGuest, shellOf } from '../support/guest/lab.ts'
import { linkUp, ping } from '../support/guest/network.ts'
import { requireGcc } from '../support/iou.ts'
import { createPc, openConsole, start } from '../support/lab.ts'
import { holds, readWhole } from '../support/pcap.ts'
import { requireLibpcap, requireProgram } from '../support/require.ts'
import { portPath, RouterLab } from '../support/router-lab.ts'
import type { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'
import { tshark } from '../support/tshark.ts'

const gcc = requireGcc()
const guest = await requireGuest()
const analyser = requireProgram('tshark')
const libpcap = requireLibpcap()
let service: TestService

beforeAll(async () => {
  if (!gcc.skip) service = (await RouterLab.startForAll({ 'machine_emulator.acceleration': 'tcg' })).service
})
afterAll(() => service?.close())

testWith(gcc, guest)('a router, a Linux machine and a pc reach each other', { timeout: 240_000 }, async () => {
  const { project, router, booted, link } = await RouterLab.onNewProject(service)
  const node = await router('R1')
  const machine = await createGuest(service, project, 'm', 'pb.ip=10.0.1.2/24')
  const pc = await createPc(service, project, 1)
  await link([node, 0, 0], [machine, 0, 0])
  await link([node, 1, 3], [pc, 0, 0])
  await start(service, node, machine, pc)
  const shell = await booted(node)
  await shell.setAddress('Ethernet0/0', '10.0.1.1')
  await shell.setAddress('Ethernet1/3', '10.0.0.9')
  const terminal = await openConsole(service, pc)
  terminal.type('ping 10.0.0.9 -c 1\r')
  await terminal.expect('10.0.0.9 icmp_seq=1')
  expect(await shell.ping('10.0.0.1', { repeat: 2 })).toBe(2)
  const linux = await shellOf(service, machine)
  await linkUp(linux)
  expect(await shell.ping('10.0.1.2', { repeat: 3 })).toBe(3)
  expect((await ping(linux, '10.0.1.1', 3)).received).toBe(3)
})

testWith(gcc, analyser)(
  'captures of serial lines are read as what they are, and go on when the router is started again',
  async () => {
    const { router, booted, link, capture } = await RouterLab.onNewProject(service)
    const [a, b] = [await router('A'), await router('B')]
    const units = [0, 1, 2]
    for (const unit of units) await link([a, 2, unit], [b, 3, unit])
    // All of them are armed before anything runs.
    const files = await Promise.all(
      [{}, { data_link_type: 'DLT_PPP_SERIAL' }, { data_link_type: 'DLT_FRELAY' }].map((type, unit) =>
        capture([a, 2, unit], { capture_file_name: `${unit}.pcap`, ...type }),
      ),
    )
    await start(service, a, b)
    const [left, right] = await Promise.all([booted(a), booted(b)])
    const serial = (bay: number, unit: number) => `interface Serial${bay}/${unit}`
    const lines = (bay: number, host: number) =>
      units.flatMap((unit) => [serial(bay, unit), `ip address 10.0.${unit}.${host} 255.255.255.0`, 'no shutdown'])
    await left.configure(...lines(2, 1))
    await left.run('write memory')
    await right.configure(...lines(3, 2))
    const [hdlc = '', ...others] = files
    for (const unit of units) expect(await left.ping(`10.0.${unit}.2`, { repeat: 2 })).toBe(2)
    await holds(hdlc, 4)

    await service.call('POST', `${a}/reload`)
    expect(await (await booted(a)).ping('10.0.0.2', { repeat: 2 })).toBe(2)
    await holds(hdlc, 8)
    for (const unit of units) await service.call('POST', `${portPath([a, 2, unit])}/stop_capture`)
    const echo = (kind: number, destination: string) => ['chdlc:ip:icmp:data', String(kind), destination]
    expect(await tshark(hdlc, ['frame.protocols', 'icmp.type', 'ip.dst'])).toEqual(
      Array.from({ length: 4 }, () => [echo(8, '10.0.0.2'), echo(0, '10.0.0.1')]).flat(),
    )
    expect(
      (await Promise.all(others.map(readWhole))).map(({ linkType, records }) => [linkType, records.length]),
    ).toEqual([
      [50, 4],
      [107, 4],
    ])
    const encapsulations = await Promise.all(others.map((file) => tshark(file, ['frame.encap_type'])))
    // PPP and Frame Relay, as libwiretap numbers them.
    expect(encapsulations.map(([first]) => first)).toEqual([['4'], ['26']])
  },
)

testWith(gcc, libpcap)('filters of a serial line look into its frames', async () => {
  const { router, booted, link } = await RouterLab.onNewProject(service)
  const [a, b] = [await router('A'), await router('B')]
  await link([a, 2, 0], [b, 2, 0])
  await start(service, a, b)
  const [left, right] = await Promise.all([booted(a), booted(b)])
  await left.setAddress('Serial2/0', '10.0.2.1')
  await right.setAddress('Serial2/0', '10.0.2.2')
  const at = `${portPath([a, 2, 0])}/nio`
  const { type, lport, rhost, rport } = await service.call('GET', at)
  const nio = { type, lport, rhost, rport }
  const pass = (bpf: string) => service.call('PUT', at, { ...nio, filters: { bpf: [bpf] } })
  await pass('host 10.9.9.9 or tcp or arp')
  expect(await left.ping('10.0.2.2', { repeat: 2 })).toBe(2)
  await pass('icmp[icmptype] = icmp-echoreply and dst host 10.0.2.1')
  expect(await left.ping('10.0.2.2', { repeat: 1, timeout: 1 })).toBe(0)
  // The other way round its requests are not answers.
  await pass('src host 10.0.2.1 and icmp[icmptype] = icmp-echoreply')
  expect(await left.ping('10.0.2.2', { repeat: 2 })).toBe(2)
  expect(await right.ping('10.0.2.1', { repeat: 1, timeout: 1 })).toBe(0)
  expect(await service.call('GET', at)).toMatchObject({ counters: { dropped: { bpf: 2 } } })
})
