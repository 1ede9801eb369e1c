import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { deviceNio, nextFrame, vethLan } from '../../../support/device-lan.ts'
import { mac, rawFrame } from '../../../support/frames.ts'
import { lan, peer, udp } from '../../../support/lan.ts'
import { hangMs } from '../../../support/limits.ts'
import { freshName, ip, Namespace, removeLater, wireOf } from '../../../support/namespace.ts'
import { freePorts } from '../../../support/ports.ts'
import { requireDevices } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'

const devices = requireDevices()
const experimental = 0x88b6
const stranger = mac(0x99)

const isPromiscuous = (device: string): boolean =>
  (Number(readFileSync(`/sys/class/net/${device}/flags`, 'utf8')) & 0x100) !== 0

const exists = (device: string): boolean => existsSync(`/sys/class/net/${device}`)

describeWith(devices)('a device of the host', () => {
  test('frames pass unchanged both ways, and our own are not received again', async () => {
    const { guest, host, inside, report, counted } = await vethLan()
    const wire = await host.wire(inside)
    const inward = rawFrame(stranger, 'to a stranger', experimental)
    wire.send(inward)
    expect(await nextFrame(guest)).toEqual(inward)
    const outward = rawFrame(mac(0x77), 'from the guest', experimental)
    await guest.send(outward)
    expect(await wire.next()).toEqual(outward)
    wire.send(rawFrame(stranger, 'next', experimental))
    expect(await nextFrame(guest)).toEqual(rawFrame(stranger, 'next', experimental))
    await counted('a', (counters) =>
      expect(counters).toMatchObject({ out_frames: 1, out_bytes: outward.length, in_frames: 2 }),
    )
    await expect.poll(async () => (await report('a')).link).toBe('ok')
  })

  test('frames that this host sends do not reach the guest', async () => {
    const { guest, host, inside, outside } = await vethLan()
    const [wire, ours] = [await host.wire(inside), await wireOf(outside)]
    ours.send(rawFrame(stranger, 'of the host', experimental))
    expect(await wire.next()).toEqual(rawFrame(stranger, 'of the host', experimental))
    wire.send(rawFrame(stranger, 'of another', experimental))
    expect(await nextFrame(guest)).toEqual(rawFrame(stranger, 'of another', experimental))
  })

  test('the device is promiscuous while it is attached', async () => {
    const { lan: it, outside } = await vethLan()
    expect(isPromiscuous(outside)).toBe(true)
    await it.detach('a')
    expect(isPromiscuous(outside)).toBe(false)
  })

  test('frames with one tag, a tag of a provider, or two tags keep them, both ways', async () => {
    const { guest, host, inside } = await vethLan()
    const wire = await host.wire(inside)
    for (const tags of [
      [0x8100, 0x2005],
      [0x88a8, 7],
      [0x88a8, 7, 0x8100, 5],
    ]) {
      const frame = rawFrame(stranger, 'tagged', ...tags, experimental)
      wire.send(frame)
      expect(await nextFrame(guest)).toEqual(frame)
      await guest.send(frame)
      expect(await wire.next()).toEqual(frame)
    }
  })

  test('jumbo frames go both ways, and one that is longer than the device takes is counted as dropped', async () => {
    const { guest, host, inside, counted } = await vethLan(9000)
    const wire = await host.wire(inside)
    const frame = rawFrame(stranger, 'x'.repeat(9000), experimental)
    wire.send(frame)
    expect(await nextFrame(guest)).toEqual(frame)
    await guest.send(Buffer.concat([frame, Buffer.from('much too long')]))
    await guest.send(frame)
    expect(await wire.next()).toEqual(frame)
    await counted('a', ({ dropped }) => expect(dropped.send_failed).toBe(1))
  })

  test('the loss of a device is reported, affects no other link, and the device is linked again when it is back', async () => {
    const { lan: it, guest, host, outside, report } = await vethLan()
    await it.open('b', (await peer(0)).port)
    const lport = freePorts(2)
    const remote = await peer(lport + 1)
    const other = await peer(0)
    const { switch_port } = await it.open('c', other.port)
    await it.attach('c', udp(lport, remote.port))
    await ip(`link del ${outside}`)
    expect((await report('a')).link).toBe('peer_unreachable')
    await expectQuiet(() => guest.send(rawFrame(stranger, 'nobody', experimental)))
    // Filters can be changed meanwhile.
    await it.attach('a', { ...deviceNio('ethernet', outside), filters: [{ type: 'packet_loss', percent: 0 }] })
    expect((await report('a')).link).toBe('peer_unreachable')
    await other.send('still there', switch_port)
    expect(await remote.next()).toBe('still there')
    const { inside } = await host.veth(undefined, outside)
    const wire = await host.wire(inside)
    await vi.waitFor(
      async () => {
        await guest.send(rawFrame(stranger, 'again', experimental))
        expect(wire.got.length).toBeGreaterThan(0)
      },
      { timeout: hangMs, interval: 100 },
    )
    wire.send(rawFrame(stranger, 'welcome', experimental))
    expect(await nextFrame(guest)).toEqual(rawFrame(stranger, 'welcome', experimental))
    await expect.poll(async () => (await report('a')).link).toBe('ok')
  })

  test('attaching a device again links the new device of that name at once', async () => {
    const { lan: it, guest, host, outside } = await vethLan()
    await ip(`link del ${outside}`)
    const { inside } = await host.veth(undefined, outside)
    const wire = await host.wire(inside)
    await it.attach('a', deviceNio('ethernet', outside))
    const frame = rawFrame(stranger, 'at once', experimental)
    await guest.send(frame)
    await vi.waitFor(() => expect(wire.got).toContainEqual(frame), { timeout: hangMs })
  })

  test('a device that is down is reported, and works when it is up again', async () => {
    const { guest, host, outside, inside, report } = await vethLan()
    const wire = await host.wire(inside)
    await ip(`link set ${outside} down`)
    expect((await report('a')).link).toBe('peer_unreachable')
    await expectQuiet(() => guest.send(rawFrame(stranger, 'nobody', experimental)))
    await ip(`link set ${outside} up`)
    await vi.waitFor(() => expect(readFileSync(`/sys/class/net/${outside}/operstate`, 'utf8').trim()).toBe('up'), {
      timeout: hangMs,
    })
    const frame = rawFrame(stranger, 'up again', experimental)
    await guest.send(frame)
    expect(await wire.next()).toEqual(frame)
    wire.send(frame)
    expect(await nextFrame(guest)).toEqual(frame)
    await expect.poll(async () => (await report('a')).link).toBe('ok')
  })

  test('two links may share a device', async () => {
    const { lan: it, guest, host, outside, inside } = await vethLan()
    const wire = await host.wire(inside)
    const second = await peer(0)
    await it.open('b', second.port)
    await it.attach('b', deviceNio('ethernet', outside))
    const frame = rawFrame([255, 255, 255, 255, 255, 255], 'to all', experimental)
    wire.send(frame)
    expect([await nextFrame(guest), await nextFrame(second)]).toEqual([frame, frame])
  })

  test('a device that is missing, or does not carry Ethernet frames, is refused', async () => {
    const { lan: it } = await lan('fast', 'a')
    await expect(it.attach('a', deviceNio('ethernet', 'pbt-nowhere'))).rejects.toMatchObject({ code: 'no_device' })
    const tun = freshName()
    await ip(`tuntap add dev ${tun} mode tun`)
    removeLater(tun)
    await expect(it.attach('a', deviceNio('ethernet', tun))).rejects.toMatchObject({ code: 'bad_request' })
    await expect(it.attach('a', deviceNio('tap', tun))).rejects.toMatchObject({ code: 'bad_request' })
  })
})

describeWith(devices)('a TAP device', () => {
  /** A wire of the host is all there is to a TAP: what the kernel sends into it, the guest gets. */
  async function tapLan(make: boolean) {
    const device = freshName()
    removeLater(device)
    if (make) await ip(`tuntap add dev ${device} mode tap`)
    const made = await lan('fast', 'a', 'b')
    await made.lan.attach('a', deviceNio('tap', device))
    return { ...made, guest: made.guests[0], device }
  }

  test('is created, and deleted when it is detached', async () => {
    const { lan: it, device } = await tapLan(false)
    expect(exists(device)).toBe(true)
    expect(await ip(`link show ${device}`)).toContain('LOWER_UP')
    await it.detach('a')
    expect(exists(device)).toBe(false)
  })

  test('stays when it existed before', async () => {
    const { lan: it, device } = await tapLan(true)
    await it.detach('a')
    expect(exists(device)).toBe(true)
    await it.attach('b', deviceNio('tap', device))
  })

  test('is used by one link only', async () => {
    const { lan: it, device } = await tapLan(false)
    await expect(it.attach('b', deviceNio('tap', device))).rejects.toMatchObject({ code: 'port_taken' })
    await it.detach('a')
    await it.attach('b', deviceNio('tap', device))
  })

  test('another kind of device is refused, and a name that the system would change', async () => {
    const { lan: it } = await lan('fast', 'a')
    const host = await Namespace.make()
    const { outside } = await host.veth()
    await expect(it.attach('a', deviceNio('tap', outside))).rejects.toMatchObject({ code: 'bad_request' })
    await expect(it.attach('a', deviceNio('tap', 'pbt%d'))).rejects.toMatchObject({ code: 'bad_request' })
    expect(exists('pbt0')).toBe(false)
  })

  test('works in a namespace that it was moved into, and says so', async () => {
    const { guest, device, report } = await tapLan(false)
    const host = await Namespace.make()
    await host.take(device)
    const wire = await host.wire(device)
    const frame = rawFrame(stranger, 'moved', 0x8100, 5, experimental)
    wire.send(frame)
    expect(await nextFrame(guest)).toEqual(frame)
    await guest.send(frame)
    expect(await wire.next()).toEqual(frame)
    await expect.poll(async () => (await report('a')).link).toBe('ok')
  })

  test('the loss of a device is reported, affects no other link, and the device is linked again when it is back', async () => {
    const { guest, device, report } = await tapLan(true)
    await ip(`link del ${device}`)
    await vi.waitFor(async () => expect((await report('a')).link).toBe('peer_unreachable'), { timeout: hangMs })
    await expectQuiet(() => guest.send(rawFrame(stranger, 'nobody', experimental)))
    expect(exists(device)).toBe(false)
    await ip(`tuntap add dev ${device} mode tap`)
    await vi.waitFor(async () => expect((await report('a')).link).not.toBe('peer_unreachable'), { timeout: hangMs })
    const host = await Namespace.make()
    await host.take(device)
    const wire = await host.wire(device)
    const frame = rawFrame(stranger, 'again', experimental)
    await guest.send(frame)
    expect(await wire.next()).toEqual(frame)
  })

  test('a device that is down is reported, and works when it is up again', async () => {
    const { guest, device, report } = await tapLan(false)
    await ip(`link set ${device} down`)
    expect((await report('a')).link).toBe('peer_unreachable')
    await expectQuiet(() => guest.send(rawFrame(stranger, 'nobody', experimental)))
    const host = await Namespace.make()
    await host.take(device)
    const wire = await host.wire(device)
    const frame = rawFrame(stranger, 'up again', experimental)
    await guest.send(frame)
    expect(await wire.next()).toEqual(frame)
  })
})

/** That the switch sleeps, but for a few frames that are sent meanwhile. Its thread is one of this process. */
async function expectQuiet(send: () => Promise<void>): Promise<void> {
  for (let frame = 0; frame < 20; frame++) await send()
  await delay(100)
  const before = process.cpuUsage()
  await delay(500)
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1000).toBeLessThan(100)
}
