import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import {
  address4and6,
  cable,
  deviceNio,
  nextFrame,
  nextPacket,
  transfer,
  vethLan,
} from '../../../support/device-lan.ts'
import { dissect, mac, ones, type Packet, superFrame } from '../../../support/frames.ts'
import { lan } from '../../../support/lan.ts'
import { freshName, ip, Namespace, removeLater, wireOf } from '../../../support/namespace.ts'
import { python3 } from '../../../support/python.ts'
import { requireDevices } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'

const devices = requireDevices()
const flag = { fin: 1, psh: 8, ack: 16, cwr: 128 }

describeWith(devices)('what senders leave to their device', () => {
  test.each([
    ['udp4', '192.0.2.2'],
    ['udp6', 'fd00::2'],
  ])('the checksums that a sender leaves to its device are whole: %s', async (type, address) => {
    const { guest, host, inside } = await vethLan()
    await address4and6(host, inside)
    for (const text of ['even', 'odd', '']) {
      const script = `const s = require('dgram').createSocket('${type}'); s.send('${text}', 9, '${address}', () => s.close())`
      await host.run(process.execPath, '-e', script)
      const packet = await nextPacket(guest)
      expect(packet).toMatchObject({ protocol: 17, isSound: true })
      expect(String(packet.payload)).toBe(text)
    }
    const script = `require('net').connect(9, '${address}').on('error', () => {}); setTimeout(() => process.exit(), 100)`
    await host.run(process.execPath, '-e', script)
    expect(await nextPacket(guest)).toMatchObject({ protocol: 6, flags: 2, isSound: true })
  })

  test('the checksum of SCTP is completed, too', async () => {
    const { guest, host, inside } = await vethLan()
    const wire = await host.wire(inside)
    const ipv4 = Buffer.from([0x45, 0, 0, 41, 0, 1, 0, 0, 64, 132, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2])
    ipv4.writeUInt16BE(~ones(ipv4) & 0xffff, 10)
    const ethernet = Buffer.from([...mac(2), ...mac(1), 8, 0])
    const sctp = Buffer.concat([Buffer.alloc(12), Buffer.from('123456789')])
    const header = Buffer.from([1, 0, 0, 0, 0, 0, 34, 0, 8, 0])
    wire.send(Buffer.concat([ethernet, ipv4, sctp]), header)
    const frame = await nextFrame(guest)
    expect(frame.readUInt32LE(42)).toBe(slowCrc32c(sctp))
    // The check value of CRC-32C.
    expect(slowCrc32c(Buffer.from('123456789'))).toBe(0xe3069283)
  })

  test('a TAP completes checksums itself, whichever offloads its last program had set', async () => {
    const device = freshName()
    await ip(`tuntap add dev ${device} mode tap`)
    removeLater(device)
    const promise = `import fcntl, os, struct
fd = os.open('/dev/net/tun', os.O_RDWR)
fcntl.ioctl(fd, 0x400454ca, struct.pack('16sH22x', b'${device}', 0x5002))
fcntl.ioctl(fd, 0x400454d0, 1 | 2 | 4)`
    await promisify(execFile)(python3, ['-c', promise])
    const host = await Namespace.make()
    const { lan: it, guests } = await lan('fast', 'a')
    await it.attach('a', deviceNio('tap', device))
    await host.take(device)
    await address4and6(host, device)
    const script = `const s = require('dgram').createSocket('udp4'); s.send('whole', 9, '192.0.2.2', () => s.close())`
    await host.run(process.execPath, '-e', script)
    expect(await nextPacket(guests[0])).toMatchObject({ protocol: 17, isSound: true })
  })

  test.each([{ isSix: false, tag: 5 }, { isSix: true }])(
    'a super-frame of TCP becomes segments as the sender would have made them: %o',
    async (more) => {
      const { guest, host, inside } = await vethLan()
      const wire = await host.wire(inside)
      const payload = randomBytes(60_001)
      const flags = flag.ack | flag.psh | flag.fin | flag.cwr
      const { frame, header } = superFrame({ ...more, protocol: 6, payload, segment: 1440, flags, isEcn: true })
      wire.send(frame, header)
      const count = Math.ceil(payload.length / 1440)
      const packets = await takePackets(guest, count)
      packets.forEach((packet, index) => {
        const isLast = index === count - 1
        expect(packet).toMatchObject({
          tags: 'tag' in more ? [5] : [],
          id: more.isSix ? 0 : (0xffff + index) & 0xffff,
          sequence: 1024 + index * 1440,
          flags: flag.ack | (index === 0 ? flag.cwr : 0) | (isLast ? flag.psh | flag.fin : 0),
          isSound: true,
        })
        expect(packet.payload).toEqual(payload.subarray(index * 1440, (index + 1) * 1440))
      })
    },
  )

  test.each([false, true])('a super-frame of UDP becomes datagrams; IPv6: %s', async (isSix) => {
    const { guest, host, inside } = await vethLan()
    const wire = await host.wire(inside)
    const payload = randomBytes(40 * 1200 + 1)
    const { frame, header } = superFrame({ isSix, protocol: 17, payload, segment: 1200 })
    wire.send(frame, header)
    const packets = await takePackets(guest, 41)
    expect(packets.every(({ isSound, protocol }) => isSound && protocol === 17)).toBe(true)
    expect(packets.map((it) => it.payload.length)).toEqual([...new Array(40).fill(1200), 1])
    expect(Buffer.concat(packets.map((it) => it.payload))).toEqual(payload)
  })

  test('many short segments, more than fit in one call, all arrive', async () => {
    const { guest, host, inside } = await vethLan()
    const wire = await host.wire(inside)
    const payload = randomBytes(20_000)
    const { frame, header } = superFrame({ isSix: false, protocol: 6, payload, segment: 100 })
    wire.send(frame, header)
    const packets = await takePackets(guest, 200)
    expect(Buffer.concat(packets.map((it) => it.payload))).toEqual(payload)
  })

  test('segments meet the filters and the capture of the port one by one', async () => {
    const { lan: it, guest, host, inside, outside, counted } = await vethLan()
    const wire = await host.wire(inside)
    await it.attach('a', { ...deviceNio('ethernet', outside), filters: [{ type: 'frequency_drop', every: 2 }] })
    const payload = randomBytes(10_000)
    const { frame, header } = superFrame({ isSix: false, protocol: 6, payload, segment: 1000 })
    wire.send(frame, header)
    const packets = await takePackets(guest, 5)
    expect(packets.map(({ sequence }) => (sequence - 1024) / 1000)).toEqual([0, 2, 4, 6, 8])
    await counted('a', ({ dropped, in_frames }) => expect([dropped.frequency_drop, in_frames]).toEqual([5, 5]))
  })

  test.each(['192.0.2', 'fd00:'])(
    'TCP between a veth and a TAP, both ways, in frames that a guest can take: %s',
    async (net) => {
      const [one, two] = [await Namespace.make(), await Namespace.make()]
      const { outside, inside } = await one.veth()
      const tap = freshName()
      const { lan: it, guests } = await lan('fast', 'a', 'b')
      await it.attach('a', deviceNio('ethernet', outside))
      await it.attach('b', deviceNio('tap', tap))
      const [addressOne, addressTwo] = net.includes(':') ? ['fd00::1', 'fd00::2'] : ['192.0.2.1', '192.0.2.2']
      const prefix = net.includes(':') ? 64 : 24
      await one.address(inside, `${addressOne}/${prefix}`)
      await two.take(tap, `${addressTwo}/${prefix}`)
      let longest = 0
      let unsound = 0
      cable(guests[0], guests[1], (frame) => {
        longest = Math.max(longest, frame.length)
        if (dissect(frame)?.isSound === false) unsound += 1
      })
      const superFrames = await wireOf(outside)
      const data = randomBytes(1 << 20)
      const digest = createHash('sha256').update(data).digest('hex')
      for (const [from, to, address] of [
        [one, two, addressTwo],
        [two, one, addressOne],
      ] as const) {
        expect(await transfer(data, from, to, address)).toBe(digest)
      }
      expect(longest).toBe(1514)
      expect(unsound).toBe(0)
      expect(Math.max(...superFrames.got.map(({ length }) => length))).toBeGreaterThan(1514)
    },
  )
})

async function takePackets(guest: Parameters<typeof nextPacket>[0], count: number): Promise<Packet[]> {
  const packets: Packet[] = []
  while (packets.length < count) packets.push(await nextPacket(guest))
  return packets
}

function slowCrc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ 0x82f63b78
  }
  return ~crc >>> 0
}
