import { expect, test } from 'vitest'
import { requireGuest } from '../../../support/guest/files.ts'
import { createGuest, link, shellOf } from '../../../support/guest/lab.ts'
import { linkUp } from '../../../support/guest/network.ts'
import { openConsole, reserve, start } from '../../../support/lab.ts'
import { freePort } from '../../../support/ports.ts'
import { python3 } from '../../../support/python.ts'
import { requireDevices, requireFastPath, requireProgram } from '../../../support/require.ts'
import { describeWith, testWith } from '../../../support/test-with.ts'
import {
  askByUdp,
  dhcp,
  guestAt,
  letPing,
  nameServer,
  natLab,
  natService,
  onHost,
  outside,
  requireLibslirp,
} from './nat-lab.ts'

const needsGuest = await requireGuest()
const page = 'hello from outside'

describeWith(
  requireLibslirp(),
  requireDevices(),
  requireFastPath(),
  requireProgram('busybox'),
  requireProgram('curl'),
)('a nat', () => {
  test('connects guests with the hosts that the host reaches, by IPv4 and IPv6', async () => {
    const server = await outside()
    const service = await natService(server)
    const lab = await natLab(service, { ipv6_prefix: 'fd12:3456:789a::/64' })
    const guest = await guestAt(lab)
    expect(await service.call('POST', `${lab.nat}/start`)).toMatchObject({ status: 'started' })
    await guest.advertised('fd12:3456:789a:')
    await guest.address('192.168.122.20')
    expect(await guest.fetch(server.four)).toBe(page)
    expect(await guest.fetch(server.private)).toBe(page)
    expect(await guest.fetch(server.six)).toBe(page)
    for (const gateway of ['192.168.122.1', 'fd12:3456:789a::1']) {
      expect(await guest.try('ping', '-c', '1', '-W', '5', gateway)).toContain('1 received')
    }
    await service.call('POST', `${lab.nat}/stop`)
    expect(await service.call('GET', lab.nat)).toMatchObject({ status: 'stopped', status_reason: null })
  })

  test('gives addresses, and resolves names where the host does', async () => {
    const server = await outside()
    const { asked } = await nameServer(server)
    const service = await natService(server)
    const lab = await natLab(service, { subnet: '10.99.4.0/24', port_count: 2 })
    const [one, two] = [await guestAt(lab, 0), await guestAt(lab, 1)]
    await service.call('POST', `${lab.nat}/start`)
    const first = 'ip=10.99.4.10 mask=24 router=10.99.4.1 dns=10.99.4.1 lease=86400\n'
    expect(await dhcp(one)).toContain(first)
    expect(await dhcp(two)).toContain('ip=10.99.4.11 ')
    expect(await one.try('busybox', 'nslookup', '-type=a', 'www.lab', '10.99.4.1')).toContain(server.four)
    expect(asked).toEqual([expect.stringContaining('\x03www\x03lab')])
    expect(await two.fetch(server.four)).toBe(page)
    // They are in one network.
    expect(await one.try('ping', '-c', '1', '-W', '5', '10.99.4.11')).toContain('1 received')
    // A guest that comes again has its address again, also from the next process.
    await service.call('POST', `${lab.nat}/stop`)
    await service.call('POST', `${lab.nat}/start`)
    await two.space.ip(`addr flush dev ${two.device}`)
    expect(await dhcp(two)).toContain('ip=10.99.4.11 ')
  })

  test('works for pcs, which get an address by DHCP and ping', async () => {
    const server = await outside()
    await letPing()
    const service = await natService(server, { 'pc.engine': 'embedded' })
    const lab = await natLab(service)
    const { node_id } = await service.call('POST', `${lab.project}/pc/nodes`, {
      name: 'PC1',
      startup_script: 'set pcname PC1\n',
    })
    const pc = `${lab.project}/pc/nodes/${node_id}`
    const [a, b] = [await reserve(service, lab.project), await reserve(service, lab.project)]
    for (const [node, lport, rport] of [[pc, a, b] as const, [lab.nat, b, a] as const]) {
      await service.call('POST', `${node}/adapters/0/ports/0/nio`, {
        type: 'nio_udp',
        lport,
        rhost: '127.0.0.1',
        rport,
      })
    }
    await start(service, lab.nat, pc)
    const terminal = await openConsole(service, pc)
    terminal.type('ip dhcp\r')
    await terminal.expect(/IP 192\.168\.122\.10\/24 GW 192\.168\.122\.1/)
    for (const address of ['192.168.122.1', server.four]) {
      terminal.type(`ping ${address} -c 2\r`)
      await terminal.expect(`84 bytes from ${address} icmp_seq=2`)
    }
  })

  testWith(needsGuest)('is a way out for machines', async () => {
    const server = await outside()
    const service = await natService(server, { 'machine_emulator.acceleration': 'tcg' })
    const lab = await natLab(service)
    const machine = await createGuest(service, lab.project, 'host', 'pb.ip=192.168.122.30/24')
    await link(service, lab.project, [machine, 0], [lab.nat, 0])
    await start(service, lab.nat, machine)
    const shell = await shellOf(service, machine)
    await linkUp(shell)
    await shell.run('ip route add default via 192.168.122.1')
    expect(await shell.run(`wget -q -O - http://${server.four}/hello`)).toContain(page)
  })

  test('forwards ports of the host to guests, by TCP, UDP and IPv6', async () => {
    const service = await natService(await outside())
    const [web, echo, six] = [freePort(), freePort(), freePort()]
    const lab = await natLab(service, {
      ipv6_prefix: 'fd12:3456:789a::/64',
      port_forwards: [
        { protocol: 'tcp', host_port: web, guest_port: 80 },
        { protocol: 'udp', host_port: echo, guest_port: 7, guest_address: '192.168.122.10' },
        { protocol: 'tcp', host_port: six, host_address: '::1', guest_port: 80, guest_address: 'fd12:3456:789a::30' },
      ],
    })
    const guest = await guestAt(lab)
    await service.call('POST', `${lab.nat}/start`)
    await guest.advertised('fd12:3456:789a:')
    expect(await dhcp(guest)).toContain('ip=192.168.122.10 ')
    await guest.space.address(guest.device, '192.168.122.30/24')
    await guest.space.address(guest.device, 'fd12:3456:789a::30/64')
    await guest.serve()
    expect(await (await fetch(`http://127.0.0.1:${web}/hello`)).text()).toBe(page)
    expect(await (await fetch(`http://[::1]:${six}/hello`)).text()).toBe(page)
    await guest.echo(7)
    expect(await onHost(python3, '-c', askByUdp, String(echo))).toBe('hello?\n')
  })
})
