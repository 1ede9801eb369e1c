import { expect, test } from 'vitest'
import { createPc, openConsole, start } from '../support/lab.ts'
import { freshName, ip, Namespace, removeLater } from '../support/namespace.ts'
import { freePort } from '../support/ports.ts'
import { requireDevices, requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import type { Terminal } from '../support/terminal.ts'
import { describeWith, testWith } from '../support/test-with.ts'

const devices = requireDevices()
const vpcs = requireProgram('vpcs')

/** A service with a pc, 10.0.0.1, that runs. */
async function pcLab(settings: Record<string, unknown>, launcher: readonly string[] = []) {
  const service = await TestService.start(settings, launcher)
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const pc = await createPc(service, `/v2/compute/projects/${project_id}`, 1)
  await start(service, pc)
  return { service, pc, nio: `${pc}/adapters/0/ports/0/nio` }
}

const generic = (device: string) => ({ type: 'nio_generic_ethernet', ethernet_device: device })
const tap = (device: string) => ({ type: 'nio_tap', tap_device: device })

async function refusal(service: TestService, path: string, nio: unknown): Promise<{ status: number; message: string }> {
  const answer = await service.fetch(path, { method: 'POST', body: JSON.stringify(nio) })
  const { message } = (await answer.json()) as { message: string }
  return { status: answer.status, message }
}

/** The pc and a host beside it, 10.0.0.9, ping each other. */
async function expectPings(service: TestService, pc: string, host: Namespace): Promise<void> {
  const console: Terminal = await openConsole(service, pc)
  console.type('ping 10.0.0.9 -c 2 -i 50\r')
  await console.expect('10.0.0.9 icmp_seq=2 ttl=64')
  expect(await host.run('ping', '-c', '2', '-i', '0.2', '-W', '2', '10.0.0.1')).toContain('2 received')
  expect(await service.call('GET', `${pc}/adapters/0/ports/0/nio`)).toMatchObject({ link: 'ok' })
}

test('outside local mode a UDP link does not lead to a link-local address', async () => {
  const { service, nio } = await pcLab({ 'pc.engine': 'embedded', local: false })
  for (const rhost of ['169.254.169.254', 'fe80::1', 'febf::1%lo', '::ffff:169.254.169.254']) {
    const answer = await refusal(service, nio, { type: 'nio_udp', lport: 40_950, rhost, rport: 80 })
    expect(answer).toEqual({
      status: 403,
      message: `rhost: ${rhost} is a link-local address, which only local mode allows`,
    })
  }
})

describeWith(devices)('a pc beside a host of another network', () => {
  for (const engine of ['embedded', 'vpcs']) {
    testWith(engine === 'vpcs' && vpcs)(`pings it over a TAP, both ways: ${engine}`, async () => {
      const { service, pc, nio } = await pcLab({ 'pc.engine': engine })
      const host = await Namespace.make()
      const device = freshName()
      await service.call('POST', nio, tap(device))
      await host.take(device, '10.0.0.9/24')
      await expectPings(service, pc, host)
      await service.call('DELETE', nio)
      await expect.poll(() => host.ip('-o link')).not.toContain(device)
    })

    testWith(engine === 'vpcs' && vpcs)(`pings it over a veth, both ways: ${engine}`, async () => {
      const { service, pc, nio } = await pcLab({ 'pc.engine': engine })
      const host = await Namespace.make()
      const { outside, inside } = await host.veth()
      await host.address(inside, '10.0.0.9/24')
      await service.call('POST', nio, generic(outside))
      await expectPings(service, pc, host)
      await ip(`link del ${outside}`)
      expect(await service.call('GET', nio)).toMatchObject({ link: 'peer_unreachable' })
    })
  }
})

describeWith(devices)('the devices of a host', () => {
  test('one that is missing is refused with the names of those that are there', async () => {
    const { service, nio } = await pcLab({ 'pc.engine': 'embedded' })
    const { status, message } = await refusal(service, nio, generic('pbt-nowhere'))
    expect(status).toBe(404)
    expect(message).toMatch(/^ethernet_device: the host has no network device pbt-nowhere; the host has .*\blo\b/)
  })

  test('one that is used by another link, or is no TAP, is refused', async () => {
    const { service, nio, pc } = await pcLab({ 'pc.engine': 'embedded' })
    const second = await createPc(service, pc.replace(/\/pc\/nodes\/.*/, ''), 2)
    const device = freshName()
    await service.call('POST', nio, tap(device))
    const taken = await refusal(service, `${second}/adapters/0/ports/0/nio`, tap(device))
    expect(taken).toMatchObject({ status: 409, message: expect.stringContaining(`tap_device: ${device} is in use`) })
    expect(await refusal(service, nio, tap('lo'))).toMatchObject({ status: 400 })
    expect(await service.call('GET', nio)).toMatchObject({ tap_device: device })
  })

  test('only those that the settings allow may be used, and are shown', async () => {
    const host = await Namespace.make()
    const [allowed, other] = [await host.veth(), await host.veth()]
    const settings = {
      'pc.engine': 'embedded',
      allowed_interfaces: [`${allowed.outside}*`, 'pbt-tap*'],
    }
    const { service, nio } = await pcLab(settings)
    for (const wanted of [generic(other.outside), { ...generic('lo'), type: 'nio_ethernet' }, tap(freshName())]) {
      const { status, message } = await refusal(service, nio, wanted)
      expect(status).toBe(403)
      expect(message).toContain('allowed_interfaces')
    }
    await service.call('POST', nio, generic(allowed.outside))
    for (const path of ['/v1/interfaces', '/v2/compute/network/interfaces']) {
      const shown = await service.call<{ name: string }[]>('GET', path)
      expect(shown.map(({ name }) => name)).toEqual([allowed.outside])
    }
    const { message } = await refusal(service, nio, generic('pbt-tap-none'))
    expect(message).toContain(`the host has ${allowed.outside}`)
    expect(message).not.toContain(other.outside)
  })

  test('outside local mode no device may be used that allowed_interfaces does not name', async () => {
    const settings = { 'pc.engine': 'embedded', local: false }
    const { service, nio } = await pcLab(settings)
    for (const wanted of [generic('lo'), { ...generic('lo'), type: 'nio_ethernet' }, tap(freshName())]) {
      const { status, message } = await refusal(service, nio, wanted)
      expect(status).toBe(403)
      expect(message).toContain('outside local mode only the devices in the setting allowed_interfaces may be')
    }
    expect(await service.call('GET', '/v2/compute/network/interfaces')).toEqual([])
  })

  test('without the privilege the refusal says how to grant it, and a link over UDP works on', async () => {
    const unprivileged = ['setpriv', '--bounding-set', '-net_raw,-net_admin', '--inh-caps', '-net_raw,-net_admin']
    const { service, nio } = await pcLab({ 'pc.engine': 'embedded' }, unprivileged)
    const raw = await refusal(service, nio, generic('lo'))
    expect(raw.status).toBe(409)
    expect(raw.message).toMatch(/^ethernet_device: lo may not be used .*setcap cap_net_raw\+ep/)
    const device = freshName()
    removeLater(device)
    const made = await refusal(service, nio, tap(device))
    expect(made.status).toBe(409)
    expect(made.message).toMatch(
      /^tap_device: .* may not be used .*(ip tuntap add dev .* mode tap|chmod 0666 \/dev\/net\/tun)/,
    )
    await service.call('POST', nio, { type: 'nio_udp', lport: freePort(), rhost: '127.0.0.1', rport: 40_901 })
  })
})
