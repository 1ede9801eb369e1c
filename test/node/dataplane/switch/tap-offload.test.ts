import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { closeSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { FastPath } from '../../../../runtime/node/dataplane/fast/fast-path.ts'
import type { Filter } from '../../../../runtime/node/dataplane/filters/index.ts'
import { Counters } from '../../../../runtime/node/dataplane/switch/core/counters.ts'
import type { BridgePortSpec } from '../../../../runtime/node/keeper/protocol/protocol.ts'
import { linux, loadLibc } from '../../../../runtime/node/os/system/libc.ts'
import { address4and6, deviceNio, nextPacket, transfer } from '../../../support/device-lan.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { dissect, superFrame } from '../../../support/frames.ts'
import { lan, lanWith, peer } from '../../../support/lan.ts'
import { freshName, ip, Namespace, removeLater, type Wire } from '../../../support/namespace.ts'
import { openTap } from '../../../support/open-tap.ts'
import { readPcap } from '../../../support/pcap.ts'
import { freePorts } from '../../../support/ports.ts'
import { python3 } from '../../../support/python.ts'
import { requireDevices } from '../../../support/require.ts'
import { sendJoined } from '../../../support/send-joined.ts'
import { describeWith } from '../../../support/test-with.ts'
import { numbered } from '../../../support/traffic.ts'

const run = promisify(execFile)
const devices = requireDevices()
/** The longest frame of a device with the usual MTU. */
const full = 1514

type PortOf = {
  readonly isBare?: boolean
  readonly mode?: BridgePortSpec['mode']
  readonly vlan?: number
  readonly type?: 'tap' | 'ethernet'
}
type Counted = Awaited<ReturnType<Awaited<ReturnType<typeof lan>>['report']>>['counters']
interface Host {
  readonly host: Namespace
  /** Its device, and the name of that at the switch. */
  readonly device: string
  readonly outside: string
}

/** Hosts at a switch, each behind a device: 192.0.2.1 and fd00::1 and so on. */
async function hostsAt(...ports: readonly PortOf[]) {
  const made = await lanWith({}, 'fast')
  const { lan: it } = made
  const spec = ports.map(({ mode = 'access', vlan = 1 }, port_number) => ({
    ...{ port_number, mode, vlan, ethertype: 0x88a8 },
  }))
  await it.configure('sw', { type: 'bridge', forwards: 'learned', ageing_s: 300, ports: spec })
  const hosts: Host[] = []
  for (const [index, { type = 'tap', isBare = false }] of ports.entries()) {
    const host = await Namespace.make()
    const key = portKey(index)
    await it.open(key, it.bridgePort('sw', index))
    const tap = freshName()
    const { outside, inside } = type === 'tap' ? { outside: tap, inside: tap } : await host.veth()
    await it.attach(key, deviceNio(type, outside))
    if (type === 'tap') await host.take(tap)
    if (!isBare) await give(host, inside, index + 1)
    hosts.push({ host, device: inside, outside })
  }
  /** What is counted from now on at a port: until a host is in its namespace, its TAP says something of its own. */
  const counts = async (index: number) => {
    const flat = ({ dropped, ...counters }: Counted): Record<string, number> => ({ ...dropped, ...counters })
    const before = flat((await made.report(portKey(index))).counters)
    return (wanted: Record<string, number>) =>
      made.counted(portKey(index), (counters) => {
        const more = Object.entries(flat(counters)).map(([name, value]) => [name, value - (before[name] ?? 0)])
        expect(Object.fromEntries(more)).toMatchObject(wanted)
      })
  }
  return { ...made, hosts: hosts as readonly Host[] as readonly [Host, Host, Host], counts }
}

const portKey = (index: number) => `sw/0/${index}`

async function give(host: Namespace, device: string, number: number): Promise<void> {
  await host.address(device, `192.0.2.${number}/24`)
  await host.address(device, `fd00::${number}/64`)
}

const data = randomBytes(2 << 20)
const digest = createHash('sha256').update(data).digest('hex')

/** TCP both ways, whole. */
async function talk(one: Host, two: Host, net = '192.0.2.'): Promise<void> {
  expect(await transfer(data, one.host, two.host, `${net}2`)).toBe(digest)
  expect(await transfer(data, two.host, one.host, `${net}1`)).toBe(digest)
}

const bare = { isBare: true } as const

const wiresOf = (...hosts: readonly Host[]) =>
  Promise.all(hosts.map(({ host, device }) => host.wire(device))) as Promise<[Wire, Wire, Wire]>

async function take(wire: Wire, count: number): Promise<Buffer[]> {
  const frames: Buffer[] = []
  while (frames.length < count) frames.push(await wire.next())
  return frames
}

const payloadOf = (frames: readonly Buffer[]) =>
  Buffer.concat(frames.map((frame) => dissect(frame)?.payload ?? Buffer.alloc(0)))

const longestOf = (wire: Wire) => Math.max(...wire.got.map(({ length }) => length))

/** Datagrams of 1000 bytes and one of 1, in one call that leaves their split to the device (UDP_SEGMENT). */
const sendDatagrams = (address: string, count: number, segment = 1000) => `import socket
s = socket.socket(socket.${address.includes(':') ? 'AF_INET6' : 'AF_INET'}, socket.SOCK_DGRAM)
s.setsockopt(17, 103, ${segment})
s.sendto((bytes(range(250)) * 300)[:${count * segment + 1}], ('${address}', 9))`

const sent = (count: number, segment = 1000) =>
  Buffer.alloc(count * segment + 1, Buffer.from(Array.from({ length: 250 }, (_, at) => at)))

describeWith(devices)('TAPs that are told what senders leave to their device', () => {
  test.each(['192.0.2.', 'fd00::'])('TCP passes between two of them in super-frames: %s', async (net) => {
    const { hosts, counted } = await hostsAt({}, {})
    const [one, two] = hosts
    const wires = await Promise.all([one.host.wire(one.device), two.host.wire(two.device)])
    await talk(one, two, net)
    for (const wire of wires) expect(longestOf(wire)).toBeGreaterThan(full)
    // The counters see segments.
    await counted(portKey(0), ({ in_frames, in_bytes, out_frames, out_bytes }) => {
      expect(in_frames + out_frames).toBeGreaterThan((2 * data.length) / 1448)
      expect(in_bytes / in_frames).toBeLessThan(full)
      expect(out_bytes / out_frames).toBeLessThan(full)
      expect(in_bytes).toBeGreaterThan(data.length + 54 * (data.length / 1448))
    })
  })

  test.each([
    { isSix: false, protocol: 6 },
    { isSix: true, protocol: 6 },
    { isSix: false, protocol: 17 },
    { isSix: true, protocol: 17 },
  ] as const)('a super-frame is counted as the frames that it stands for: %o', async (of) => {
    const { hosts, counts } = await hostsAt(bare, bare)
    const [from, to] = await wiresOf(hosts[0], hosts[1])
    const payload = randomBytes(40_001)
    const { frame, header } = superFrame({ ...of, payload, segment: 1000 })
    const [entering, leaving] = [await counts(0), await counts(1)]
    from.send(frame, header)
    const bytes = payload.length + 41 * (frame.length - payload.length)
    await entering({ in_frames: 41, in_bytes: bytes })
    await leaving({ out_frames: 41, out_bytes: bytes })
    expect(await to.next()).toEqual(frame)
  })

  test('a capture has segments with whole checksums', async () => {
    const { lan: it, hosts } = await hostsAt({}, {})
    const [one, two] = hosts
    const file = join(await freshDirectory(), 'segments.pcap')
    await it.captured(portKey(0)).start(file, 1, 0)
    await talk(one, two)
    await it.captured(portKey(0)).stop()
    const { records } = readPcap(await readFile(file))
    const packets = records.map(({ frame }) => dissect(frame)).filter((packet) => packet !== undefined)
    expect(packets.filter(({ isSound }) => !isSound)).toEqual([])
    expect(Math.max(...records.map(({ length }) => length))).toBe(full)
    expect(packets.reduce((sum, { payload }) => sum + payload.length, 0)).toBeGreaterThanOrEqual(2 * data.length)
  })

  test('filters meet segments one by one', async () => {
    const { lan: it, hosts } = await hostsAt(bare, bare)
    const [one, two] = await wiresOf(hosts[0], hosts[1])
    const filters: Filter[] = [{ type: 'frequency_drop', every: 2 }]
    await it.attach(portKey(1), { ...deviceNio('tap', hosts[1].outside), filters })
    const { frame, header } = superFrame({ isSix: false, protocol: 6, payload: randomBytes(10_000), segment: 1000 })
    one.send(frame, header)
    const sequences = (await take(two, 5)).map((segment) => dissect(segment)?.sequence ?? 0)
    expect(sequences.map((sequence) => sequence - (sequences[0] ?? 0))).toEqual([0, 2000, 4000, 6000, 8000])
  })

  test('a delay holds segments, and TCP arrives whole', async () => {
    const { lan: it, hosts } = await hostsAt({}, {})
    const [one, two] = hosts
    const filters: Filter[] = [{ type: 'delay', ms: 2, jitter_ms: 1 }]
    await it.attach(portKey(1), { ...deviceNio('tap', two.outside), filters })
    await talk(one, two)
  })

  test('where a switch changes tags it does so in every segment', async () => {
    const trunk = { ...bare, mode: 'dot1q' } as const
    const { hosts, counts } = await hostsAt({ ...bare, vlan: 10 }, trunk, trunk)
    const [access, one, two] = await wiresOf(...hosts)
    const payload = randomBytes(40_001)
    const tagged = superFrame({ isSix: false, protocol: 6, payload, segment: 1000, tag: 10 })
    one.send(tagged.frame, tagged.header)
    // From trunk to trunk nothing changes.
    expect(await two.next()).toEqual(tagged.frame)
    const segments = await take(access, 41)
    expect(segments.map((it) => dissect(it))).toEqual(
      segments.map((_, at) => expect.objectContaining({ tags: [], isSound: true, sequence: 1024 + at * 1000 })),
    )
    expect(payloadOf(segments)).toEqual(payload)
    const leaving = await counts(1)
    const untagged = superFrame({ isSix: false, protocol: 6, payload, segment: 1000 })
    access.send(untagged.frame, untagged.header)
    for (const wire of [one, two]) {
      const got = await take(wire, 41)
      expect(got.every((it) => dissect(it)?.tags[0] === 10 && dissect(it)?.isSound)).toBe(true)
      expect(payloadOf(got)).toEqual(payload)
    }
    await leaving({ out_frames: 41, out_bytes: payload.length + 41 * 58 })
  })

  test('a TAP and another device of the host take them of each other', async () => {
    const { hosts } = await hostsAt({}, { type: 'ethernet' })
    const [one, two] = hosts
    const wires = await wiresOf(one, two)
    for (const net of ['192.0.2.', 'fd00::']) await talk(one, two, net)
    for (const wire of wires) expect(longestOf(wire)).toBeGreaterThan(full)
  })

  test('the tag that a device stripped is before what its header tells of', async () => {
    const trunk = { ...bare, mode: 'dot1q' } as const
    const { hosts } = await hostsAt(trunk, { ...trunk, type: 'ethernet' })
    const [one, two] = await wiresOf(hosts[0], hosts[1])
    const { frame, header } = superFrame({
      isSix: true,
      protocol: 6,
      payload: randomBytes(9000),
      segment: 1000,
      tag: 7,
    })
    for (const [from, to] of [
      [two, one],
      [one, two],
    ] as const) {
      from.send(frame, header)
      expect(await to.next()).toEqual(frame)
    }
  })

  test('segments that are longer than a device takes are cut for it, and counted as failed', async () => {
    const { hosts, counts } = await hostsAt(bare, { ...bare, type: 'ethernet' })
    const [one] = await wiresOf(hosts[0], hosts[1])
    const payload = randomBytes(40_001)
    const { frame, header } = superFrame({ isSix: false, protocol: 6, payload, segment: 8000 })
    const leaving = await counts(1)
    one.send(frame, header)
    await leaving({ out_frames: 6, out_bytes: payload.length + 6 * 54, send_failed: 5 })
  })

  test('TCP passes between TAPs with an MTU of 9000', async () => {
    const { hosts, report } = await hostsAt({}, {})
    const [one, two] = hosts
    for (const { host, device } of [one, two]) await host.ip(`link set ${device} mtu 9000`)
    await talk(one, two)
    const { in_frames, in_bytes } = (await report(portKey(0))).counters
    expect(in_bytes / in_frames).toBeGreaterThan(full)
  })

  test('frames are flooded to ends of every kind as each takes them', async () => {
    const { lan: it, hosts } = await hostsAt({}, {}, { type: 'ethernet' })
    const [one, two, three] = hosts
    const guest = await peer(0)
    await it.open('guest', guest.port)
    await it.configure('sw', {
      ...{ type: 'bridge', forwards: 'all', ageing_s: 300 },
      ports: [0, 1, 2, 3].map((port_number) => ({ port_number, mode: 'access', vlan: 1, ethertype: 0x8100 })),
    })
    await it.open('sw/0/3', it.bridgePort('sw', 3))
    await it.joinAll([{ link_id: '3', ports: ['guest', 'sw/0/3'], suspend: false, filters_ab: [], filters_ba: [] }])
    await neighbours(one, two)
    const wires = await Promise.all([two, three].map(({ host, device }) => host.wire(device)))
    await one.host.run(python3, '-c', sendDatagrams('192.0.2.2', 20))
    let got = Buffer.alloc(0)
    while (got.length < sent(20).length) {
      const packet = await nextPacket(guest)
      expect(packet).toMatchObject({ protocol: 17, isSound: true })
      got = Buffer.concat([got, packet.payload])
    }
    expect(got).toEqual(sent(20))
    for (const wire of wires) {
      const payloads = () => Buffer.concat(wire.got.map((frame) => dissect(frame)?.payload ?? Buffer.alloc(0)))
      await expect.poll(() => payloads().length).toBe(sent(20).length)
    }
  })

  test('a frame from an end without headers arrives with nothing left to do', async () => {
    const device = freshName()
    const host = await Namespace.make()
    const { lan: it, guests } = await lan('fast', 'a')
    await it.attach('a', deviceNio('tap', device))
    await host.take(device)
    await address4and6(host, device)
    const wire = await host.wire(device)
    const { frame } = superFrame({ isSix: false, protocol: 17, payload: Buffer.from('plain'), segment: 1000 })
    await guests[0].send(frame)
    expect(await wire.next()).toEqual(frame)
  })

  test('frames that a sender joined arrive one by one, as they were', async () => {
    const device = freshName()
    const host = await Namespace.make()
    const { lan: it } = await lan('fast')
    const port = freePorts(1)
    const { switch_port } = await it.open('a', port)
    await it.attach('a', deviceNio('tap', device))
    await host.take(device)
    const wire = await host.wire(device)
    const frames = Array.from({ length: 30 }, (_, number) => numbered(number, 200))
    sendJoined(port, switch_port, Buffer.concat(frames), 200)
    expect(await take(wire, 30)).toEqual(frames)
  })

  test('a persistent device is as before when its link goes', async () => {
    const device = freshName()
    await ip(`tuntap add dev ${device} mode tap`)
    removeLater(device)
    const { lan: it } = await lan('fast', 'a')
    const before = await offloadsOf(device)
    expect(before).toEqual([0, 0])
    await it.attach('a', deviceNio('tap', device))
    expect(await offloadsOf(device)).toEqual([1, 1])
    await it.detach('a')
    expect(await offloadsOf(device)).toEqual(before)
  })

  test('a descriptor that another program opened is an end, without its name', async () => {
    const path = await FastPath.start(new Counters(), { probe() {}, captured() {}, looped() {} })
    onTestFinished(() => path.shutdown())
    const [one, two] = [await Namespace.make(), await Namespace.make()]
    const names = [freshName(), freshName()] as const
    const descriptor = openTap(names[0])
    const taken = await path.open({ type: 'tap', descriptor, row: 0 })
    const opened = await path.open({ type: 'tap', device: names[1], row: 1 })
    const hop = (row: number) => [{ row, direction: 'out' as const }]
    await path.setLane(taken.end, { output: opened.end, hops: hop(0) })
    await path.setLane(opened.end, { output: taken.end, hops: hop(1) })
    for (const [index, host] of [one, two].entries()) {
      await host.take(names[index] ?? '')
      await give(host, names[index] ?? '', index + 1)
    }
    const wire = await two.wire(names[1])
    await talk({ host: one, device: names[0], outside: '' }, { host: two, device: names[1], outside: '' })
    expect(longestOf(wire)).toBeGreaterThan(full)
    await path.close(taken.end)
    // Who opened it still has it, and closes it.
    expect(await one.ip('link')).toContain(names[0])
    closeSync(descriptor)
    expect(await one.ip('link')).not.toContain(names[0])
    await expect(path.open({ type: 'tap', descriptor: udpSocket(), row: 2 })).rejects.toMatchObject({
      code: 'bad_request',
    })
  })
})

function udpSocket(): number {
  const libc = loadLibc()
  const fd = libc.socket(linux.AF_INET, linux.SOCK_DGRAM, 0)
  onTestFinished(() => void libc.close(fd))
  return fd
}

/** Has two hosts know each other's addresses. */
async function neighbours(...hosts: readonly Host[]): Promise<void> {
  for (const [index, { host, device }] of hosts.entries()) {
    for (const [other, { host: peer, device: far }] of hosts.entries()) {
      if (index === other) continue
      const address = /link\/ether (\S+)/.exec(await peer.ip(`link show ${far}`))?.[1]
      for (const net of ['192.0.2.', 'fd00::'])
        await host.ip(`neigh replace ${net}${other + 1} lladdr ${address} dev ${device} nud permanent`)
    }
  }
}

/** Whether checksums, and the segments of TCP, may be left to a device of this host (ethtool). */
async function offloadsOf(device: string): Promise<number[]> {
  const { stdout } = await run(python3, [
    '-c',
    `import ctypes, fcntl, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for command in 0x16, 0x1e:
    value = ctypes.create_string_buffer(struct.pack('II', command, 0))
    fcntl.ioctl(s, 0x8946, struct.pack('16sQ16x', b'${device}', ctypes.addressof(value)))
    print(struct.unpack('II', value.raw[:8])[1])`,
  ])
  return stdout.trim().split('\n').map(Number)
}
