import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { compileBpf } from '../../../../runtime/node/dataplane/bpf/compile.ts'
import { encodeProbe } from '../../../../runtime/node/dataplane/switch/core/probe-frame.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { bridgePath, header, headerBytes, type IouInstance, iouInstance, netio } from '../../../support/iou-instance.ts'
import { lan, peer, udp } from '../../../support/lan.ts'
import { Namespace } from '../../../support/namespace.ts'
import { holds, readWhole, textsOf } from '../../../support/pcap.ts'
import { freePorts } from '../../../support/ports.ts'
import { requireDevices, requireFastPath, requireLibpcap } from '../../../support/require.ts'
import { sendJoined } from '../../../support/send-joined.ts'
import { describeWith, testWith } from '../../../support/test-with.ts'
import { numbered } from '../../../support/traffic.ts'

const fastPath = requireFastPath()
const devices = requireDevices()
const base = freePorts(100)
const hdlc = 104

/** The next datagram of an instance: that its header is right, and its frame as text. */
async function frameOf(instance: IouInstance, port: number): Promise<string> {
  const datagram = await instance.next()
  expect(datagram.subarray(0, headerBytes)).toEqual(header(instance.id, instance.id + 512, port))
  return String(datagram.subarray(headerBytes))
}

/** An instance with one port that is linked to a peer outside. */
async function linked(id: number, lport: number, { port = 0, ethernet = true } = {}) {
  const made = await lan('fast')
  const instance = await iouInstance(id)
  const remote = await peer(lport + 1)
  expect(await made.lan.open('r', netio(id, port, ethernet))).toEqual({ switch_port: 0 })
  await made.lan.attach('r', udp(lport, lport + 1))
  return { ...made, instance, remote, port, lport }
}

describeWith(fastPath)('the ports of an IOU instance', () => {
  test('frames of any length pass unchanged both ways, with exact headers', async () => {
    const { instance, remote, lport, counted } = await linked(300, base, { port: 0x21 })
    const frames = [numbered(1, 18), numbered(2, 60), numbered(3, 1514), numbered(4, 4096)]
    for (const frame of frames) {
      instance.send(0x21, frame)
      expect((await remote.holds(1)).shift()).toEqual(frame)
      await remote.send(frame, lport)
      expect(await instance.next()).toEqual(Buffer.concat([header(300, 812, 0x21), frame]))
    }
    const bytes = frames.reduce((sum, { length }) => sum + length, 0)
    await counted('r', (counters) =>
      expect(counters).toMatchObject({ out_frames: 4, out_bytes: bytes, in_frames: 4, in_bytes: bytes }),
    )
    await remote.send(numbered(5, 4097), lport)
    await counted('r', ({ dropped }) => expect(dropped.send_failed).toBe(1))
  })

  test('all 64 ports have their own links, also when their frames come at once', async () => {
    const { lan: it } = await lan('fast')
    const instance = await iouInstance(301)
    const many = freePorts(128)
    const ports = Array.from({ length: 64 }, (_, index) => (index >> 2) + (index & 3) * 16)
    const remotes = await Promise.all(ports.map((_, index) => peer(many + 1 + 2 * index)))
    for (const [index, port] of ports.entries()) {
      await it.open(`r/${port}`, netio(301, port))
      await it.attach(`r/${port}`, udp(many + 2 * index, many + 1 + 2 * index))
    }
    for (let round = 0; round < 5; round++) for (const port of ports) instance.send(port, `${round} from ${port}`)
    for (const [index, port] of ports.entries()) {
      const got = await (remotes[index] as (typeof remotes)[0]).holds(5)
      expect(got.map(String)).toEqual([0, 1, 2, 3, 4].map((round) => `${round} from ${port}`))
    }
    await Promise.all(ports.map((port, index) => remotes[index]?.send(`to ${port}`, many + 2 * index)))
    const came = (await instance.holds(64)).map((datagram) => [datagram[4], datagram[5], String(datagram.subarray(8))])
    expect(came.toSorted()).toEqual(ports.map((port) => [port, port, `to ${port}`]).toSorted())
  })

  test('a port is joined with a UDP guest, and with a port of another instance and of the same one', async () => {
    const { lan: it, guests, report, counted } = await lan('fast', 'pc')
    const [one, two] = [await iouInstance(302), await iouInstance(303)]
    await it.open('one/0', netio(302, 0))
    await it.open('one/1', netio(302, 1))
    await it.open('one/2', netio(302, 2))
    await it.open('two/0', netio(303, 0x10))
    const join = async (a: string, b: string, lport: number) => {
      await it.attach(a, udp(lport, lport + 1))
      await it.attach(b, udp(lport + 1, lport))
    }
    await join('one/0', 'pc', base + 10)
    await join('one/1', 'two/0', base + 12)
    one.send(0, 'to the pc')
    expect(await guests[0].next()).toBe('to the pc')
    await guests[0].send('to the router')
    expect(await frameOf(one, 0)).toBe('to the router')
    one.send(1, 'to the other')
    expect(await frameOf(two, 0x10)).toBe('to the other')
    two.send(0x10, 'and back')
    expect(await frameOf(one, 1)).toBe('and back')
    await counted('two/0', (counters) => expect(counters).toMatchObject({ out_frames: 1, in_frames: 1 }))
    expect((await report('one/1')).link).toBe('ok')
    await join('one/1', 'one/2', base + 14)
    one.send(2, 'round')
    expect(await frameOf(one, 1)).toBe('round')
  })

  test('links come and go while it runs', async () => {
    const { lan: it, instance, remote, lport, counted } = await linked(304, base + 20)
    instance.send(0, 'one')
    expect(await remote.next()).toBe('one')
    await it.detach('r')
    instance.send(0, 'lost')
    await counted('r', ({ dropped }) => expect(dropped.not_linked).toBe(1))
    const other = await peer(base + 22)
    await it.attach('r', udp(lport, other.port))
    instance.send(0, 'two')
    expect(await other.next()).toBe('two')
    await other.send('three', lport)
    expect(await frameOf(instance, 0)).toBe('three')
    expect(remote.got).toEqual([])
  })

  test('a serial port is captured with its link type, and its frames are not changed', async () => {
    const { lan: it, instance, remote, lport, report } = await linked(305, base + 30, { port: 0x12, ethernet: false })
    const file = join(await freshDirectory(), 'serial.pcap')
    await it.captured('r').start(file, hdlc, 0)
    // A keep-alive of HDLC, and what would be a probe of ours on Ethernet.
    const keepAlive = Buffer.from('8f008035000000020000000100000000ffff', 'hex')
    const probe = Buffer.from(encodeProbe({ isQuestion: true, hearsYou: false, sequence: 1 }))
    for (const frame of [keepAlive, probe]) {
      await remote.send(frame, lport)
      expect((await instance.next()).subarray(headerBytes)).toEqual(frame)
    }
    const lengths: number[] = []
    remote.socket.on('message', ({ length }) => lengths.push(length))
    instance.send(0x12, keepAlive)
    expect((await remote.holds(1)).shift()).toEqual(keepAlive)
    expect((await report('r')).link).toBe('ok')
    expect(lengths).toEqual([keepAlive.length])
    const { linkType, records } = await holds(file, 3)
    expect(linkType).toBe(hdlc)
    expect(records.map(({ frame }) => frame)).toEqual([keepAlive, probe, keepAlive])
    const device = { type: 'ethernet', device: 'lo', suspend: false, filters: [] } as const
    await expect(it.attach('r', device)).rejects.toMatchObject({ code: 'bad_request' })
  })

  testWith(requireLibpcap())('impairments and captures apply to frames of both directions', async () => {
    const { lan: it, instance, remote, lport, counted } = await linked(306, base + 40)
    const file = join(await freshDirectory(), 'r.pcap')
    await it.captured('r').start(file, 1, 0)
    const delay = { type: 'delay', ms: 30, jitter_ms: 0 } as const
    await it.attach('r', udp(lport, remote.port, { filters: [delay, { type: 'frequency_drop', every: 2 }] }))
    const began = performance.now()
    for (const frame of ['1', 'dropped', '3']) instance.send(0, frame)
    expect([await remote.next(), await remote.next()]).toEqual(['1', '3'])
    expect(performance.now() - began).toBeGreaterThan(29)
    for (const frame of ['4', 'dropped', '6']) await remote.send(frame, lport)
    expect([await frameOf(instance, 0), await frameOf(instance, 0)]).toEqual(['4', '6'])
    await it.captured('r').stop()
    expect(textsOf(await readWhole(file))).toEqual(['1', '3', '4', '6'])
    await counted('r', ({ dropped }) => expect(dropped.frequency_drop).toBe(2))
    const program = compileBpf('ether proto 0x88b6', 1)
    await it.attach('r', udp(lport, remote.port, { filters: [{ type: 'bpf', programs: [program] }] }))
    instance.send(0, numbered(1))
    await counted('r', ({ dropped }) => expect(dropped.bpf).toBe(1))
    await it.attach('r', udp(lport, remote.port, { suspend: true }))
    instance.send(0, 'suspended')
    await counted('r', ({ dropped }) => expect(dropped.suspended).toBe(1))
  })

  test('a router that does not run is reported, affects no other, and is found when it starts again', async () => {
    const { lan: it, guests, report, counted } = await lan('fast', 'pc')
    await it.open('r', netio(307, 3))
    await it.attach('r', udp(base + 50, base + 51))
    await it.attach('pc', udp(base + 51, base + 50))
    await guests[0].send('nobody')
    await counted('r', ({ dropped }) => expect(dropped.no_guest).toBe(1))
    expect((await report('pc')).link).toBe('peer_unreachable')
    for (let run = 0; run < 3; run++) {
      const instance = await iouInstance(307)
      await guests[0].send(`run ${run}`)
      expect(await frameOf(instance, 3)).toBe(`run ${run}`)
      instance.send(3, `hello ${run}`)
      expect(await guests[0].next()).toBe(`hello ${run}`)
      expect((await report('pc')).link).toBe('ok')
      await instance.end()
      await guests[0].send('gone')
      await counted('r', ({ dropped }) => expect(dropped.no_guest).toBe(2 + run))
    }
  })

  test('a burst that its socket accepts only in part arrives completely and in order', async () => {
    const { instance, remote, lport, counted } = await linked(308, base + 60)
    instance.stop()
    await remote.send('first', lport)
    const frames = Array.from({ length: 200 }, (_, index) => `frame ${index}`)
    for (const frame of frames) await remote.send(frame, lport)
    await counted('r', ({ in_frames }) => expect(in_frames).toBe(201))
    instance.go()
    const got = await instance.holds(201)
    expect(got.map((datagram) => String(datagram.subarray(headerBytes)))).toEqual(['first', ...frames])
    await counted('r', ({ dropped }) => expect(dropped).toMatchObject({ no_guest: 0, send_failed: 0 }))
  })

  test.for([
    ['', false],
    [', where more datagrams may wait than our buffer holds', true],
  ] as const)(
    'a router that reads nothing only loses its frames, and its end drops the waiting ones%s',
    async ([, isRoomy], { skip }) => {
      skip(isRoomy && devices.skip, devices.missing)
      const { lan: it, guests, counted } = await lan('fast', 'pc')
      const instance = await iouInstance(309, isRoomy ? await Namespace.make() : undefined)
      await it.open('r', netio(309, 0))
      await it.attach('r', udp(base + 70, base + 71))
      await it.attach('pc', udp(base + 71, base + 70))
      instance.stop()
      for (let frame = 0; frame < 2000; frame++) await guests[0].send(`frame ${frame}`)
      await counted('r', ({ in_frames }) => expect(in_frames).toBe(2000))
      // What it can hold itself depends on the system.
      const { failed } = await vi.waitFor(async () => {
        const [found] = await it.report('r')
        return { failed: found?.counters.dropped.send_failed ?? 0 }
      })
      expect(failed).toBeGreaterThan(2000 - 256 - 600)
      expect(failed).toBeLessThan(2000 - 256)
      const before = process.cpuUsage()
      await new Promise((resolve) => setTimeout(resolve, 500))
      const { user, system } = process.cpuUsage(before)
      expect((user + system) / 1000).toBeLessThan(200)
      instance.go()
      const got = await instance.holds(2000 - failed)
      const numbers = got.map((datagram) => Number(datagram.subarray(headerBytes + 'frame '.length)))
      expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b))
      // It may have read one more before it stopped, which made room for a later one.
      expect(numbers.slice(0, 256)).toEqual([...new Array(256).keys()])
      instance.stop()
      for (let frame = 0; frame < 1000; frame++) await guests[0].send(`frame ${frame}`)
      await counted('r', ({ in_frames }) => expect(in_frames).toBe(3000))
      await instance.end()
      await counted('r', ({ dropped }) => expect(dropped.no_guest).toBeGreaterThanOrEqual(255))
    },
  )

  test('frames that a sender joined arrive one by one', async () => {
    const { lan: it, counted } = await lan('fast')
    const instance = await iouInstance(314)
    const lport = base + 92
    await it.open('r', netio(314, 0))
    await it.attach('r', udp(lport, lport + 1))
    const segment = 1000
    const bytes = Buffer.concat(Array.from({ length: 30 }, (_, number) => numbered(number, segment)))
    sendJoined(lport + 1, lport, bytes, segment)
    const got = await instance.holds(30)
    expect(Buffer.concat(got.map((datagram) => datagram.subarray(headerBytes)))).toEqual(bytes)
    await counted('r', (counters) => expect(counters).toMatchObject({ in_frames: 30, in_bytes: bytes.length }))
  })

  test('datagrams with a wrong header are dropped, and counted', async () => {
    const { instance, remote, counted } = await linked(310, base + 80, { port: 5 })
    const frame = Buffer.from('not for anybody')
    const wrong = [
      header(823, 310, 5),
      header(822, 311, 5),
      header(822, 310, 5, 2),
      header(822, 310, 5, 1, 1),
      header(822, 310, 6),
    ]
    for (const bytes of wrong) instance.sendRaw(Buffer.concat([bytes, frame]))
    instance.sendRaw(header(822, 310, 5))
    instance.sendRaw(Buffer.from('short'))
    instance.sendRaw(Buffer.from([0]))
    instance.send(5, 'right')
    expect(await remote.next()).toBe('right')
    await counted('r', (counters) => expect(counters).toMatchObject({ out_frames: 1, dropped: { not_linked: 8 } }))
  })

  test('the socket exists from the first port to the last, and no other keeper can use it or a port', async () => {
    const { lan: it } = await lan('fast')
    const { lan: other } = await lan('fast')
    await it.open('a', netio(311, 0))
    await it.open('b', netio(311, 1))
    for (const suffix of ['', '.lck']) expect(existsSync(bridgePath(311) + suffix)).toBe(true)
    expect(statSync(join(bridgePath(311), '..')).mode & 0o777).toBe(0o700)
    await expect(it.open('c', netio(311, 1))).rejects.toMatchObject({ code: 'port_taken' })
    await expect(other.open('d', netio(311, 2))).rejects.toMatchObject({ code: 'port_taken' })
    await it.open('a', netio(311, 0))
    expect(it.list()).toMatchObject([
      { key: 'a', guest_port: 0, switch_port: 0, netio: netio(311, 0) },
      { key: 'b', netio: netio(311, 1) },
    ])
    await it.close('a')
    expect(existsSync(bridgePath(311))).toBe(true)
    await it.close('b')
    for (const suffix of ['', '.lck']) expect(existsSync(bridgePath(311) + suffix)).toBe(false)
    await other.open('d', netio(311, 2))
  })

  test('a key can be given another port, and one that does not exist is refused', async () => {
    const { lan: it } = await lan('fast')
    const instance = await iouInstance(312)
    const remote = await peer(base + 91)
    await it.open('r', netio(312, 0))
    await it.open('r', netio(312, 1))
    await it.attach('r', udp(base + 90, remote.port))
    instance.send(1, 'here')
    expect(await remote.next()).toBe('here')
    for (const wrong of [netio(0, 0), netio(512, 0), netio(312, 256), netio(312, -1), netio(312, 0.5)]) {
      await expect(it.open('s', wrong)).rejects.toMatchObject({ code: 'bad_request' })
    }
  })
})

test('without the fast path there are no IOU ports, and the refusal says why', async () => {
  const { lan: it } = await lan('portable')
  await expect(it.open('r', netio(313, 0))).rejects.toMatchObject({
    code: 'unsupported',
    message: expect.stringContaining('IOU needs the fast packet path'),
  })
})
