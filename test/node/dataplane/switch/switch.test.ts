import { createSocket } from 'node:dgram'
import { describe, expect, onTestFinished, test } from 'vitest'
import { lan, packetPaths, peer, udp } from '../../../support/lan.ts'
import { freePorts } from '../../../support/ports.ts'

describe.each(packetPaths)('the %s packet path', (path) => {
  const base = freePorts(100)

  test('frames go to the peer of a NIO, and only those of the peer are received', async () => {
    const { lan: it, guests } = await lan(path, 'a')
    const remote = await peer(base + 2)
    const stranger = await peer(0)
    await it.attach('a', udp(base + 1, base + 2))
    await guests[0].send('out')
    expect(await remote.next()).toBe('out')
    await stranger.send('forged', base + 1)
    await remote.send('in', base + 1)
    expect(await guests[0].next()).toBe('in')
  })

  test('two ends in one switch are joined, and separated when one of them gets another peer', async () => {
    const { lan: it, guests } = await lan(path, 'a', 'b')
    const [a, b] = guests
    await it.attach('a', udp(base + 11, base + 12))
    await it.attach('b', udp(base + 12, base + 11))
    await a.send('one')
    expect(await b.next()).toBe('one')
    await b.send('two')
    expect(await a.next()).toBe('two')
    const elsewhere = await peer(base + 14)
    await it.attach('b', udp(base + 13, base + 14))
    await b.send('three')
    expect(await elsewhere.next()).toBe('three')
    await a.send('lost')
    await elsewhere.send('four', base + 13)
    expect(await b.next()).toBe('four')
  })

  test('a suspended link carries nothing, either way, and counts it', async () => {
    const { lan: it, guests, counted } = await lan(path, 'a', 'b')
    const [a, b] = guests
    await it.attach('a', udp(base + 21, base + 22))
    await it.attach('b', udp(base + 22, base + 21, { suspend: true }))
    await Promise.all([a.send('lost'), b.send('lost')])
    await counted('b', ({ dropped }) => expect(dropped.suspended).toBe(2))
    await it.attach('b', udp(base + 22, base + 21))
    await a.send('there')
    await b.send('here')
    expect([await b.next(), await a.next()]).toEqual(['there', 'here'])
  })

  test('a suspended link to another machine carries nothing, either way', async () => {
    const { lan: it, guests, counted } = await lan(path, 'a')
    const [a] = guests
    const remote = await peer(base + 72)
    await it.attach('a', udp(base + 71, base + 72, { suspend: true }))
    await Promise.all([a.send('lost'), remote.send('lost', base + 71)])
    await counted('a', ({ dropped }) => expect(dropped.suspended).toBe(2))
    await it.attach('a', udp(base + 71, base + 72))
    await a.send('there')
    await remote.send('here', base + 71)
    expect([await remote.next(), await a.next()]).toEqual(['there', 'here'])
  })

  test('a local port that is taken is reported, and the attached NIO stays', async () => {
    const { lan: it, guests } = await lan(path, 'a', 'b')
    const [a] = guests
    const remote = await peer(base + 32)
    const other = await peer(base + 33)
    await it.attach('a', udp(base + 31, remote.port))
    await it.attach('b', udp(base + 34, 1))
    await expect(it.attach('a', udp(other.port, remote.port))).rejects.toMatchObject({ code: 'port_taken' })
    await expect(it.attach('a', udp(base + 34, remote.port))).rejects.toMatchObject({ code: 'port_taken' })
    await a.send('still')
    expect(await remote.next()).toBe('still')
    expect(it.list().find(({ key }) => key === 'a')?.nio).toEqual(udp(base + 31, base + 32))
  })

  test('the same local port can lead elsewhere, and is free when the NIO is gone', async () => {
    const { lan: it, guests } = await lan(path, 'a', 'b')
    const [first, second] = [await peer(base + 42), await peer(base + 43)]
    await it.attach('a', udp(base + 41, first.port))
    await it.attach('a', udp(base + 41, second.port))
    await guests[0].send('to the second')
    expect(await second.next()).toBe('to the second')
    await it.detach('a')
    await it.attach('b', udp(base + 41, first.port))
    await guests[1].send('to the first')
    expect(await first.next()).toBe('to the first')
  })

  test('a missing peer is reported, and affects no other link', async () => {
    const { lan: it, guests, report } = await lan(path, 'a')
    await it.attach('a', udp(base + 51, base + 52))
    for (let round = 0; round < 50; round++) await guests[0].send('nobody')
    await expect.poll(async () => (await report('a')).link).toBe('peer_unreachable')
    const late = await peer(base + 52)
    await guests[0].send('first refused')
    await guests[0].send('now')
    expect(['first refused', 'now', 'nobody']).toContain(await late.next())
  })

  test('opening an open port does not change it', async () => {
    const { lan: it, guests } = await lan(path, 'a')
    await it.attach('a', udp(base + 61, base + 62))
    const before = it.list()
    await it.open('a', guests[0].port)
    expect(it.list()).toEqual(before)
  })

  test('a serial port has no probes on its link, no device, and no join with an Ethernet port', async () => {
    const { lan: it, guests, report } = await lan(path, 'a')
    const [guest, remote] = [await peer(0), createSocket('udp4')]
    onTestFinished(() => void remote.close())
    await new Promise<void>((resolve) => remote.bind(base + 95, '127.0.0.1', resolve))
    const first = new Promise<string>((resolve) => remote.once('message', (bytes) => resolve(String(bytes))))
    const { switch_port } = await it.open('s', { serial_port: guest.port })
    await expect(it.attach('s', { type: 'ethernet', device: 'lo', suspend: false, filters: [] })).rejects.toMatchObject(
      { code: 'bad_request' },
    )
    await it.attach('s', udp(base + 94, base + 95))
    expect(await report('s')).toMatchObject({ link: expect.not.stringContaining('unreachable') })
    await guest.send('hdlc', switch_port)
    expect(await first).toBe('hdlc')
    await it.joinAll([{ link_id: 'l', ports: ['s', 'a'], suspend: false, filters_ab: [], filters_ba: [] }])
    await guest.send('not there', switch_port)
    await expect.poll(async () => (await report('s')).counters.dropped.not_linked).toBe(1)
    expect(guests[0].got).toEqual([])
  })

  test("only the guest's own datagrams go from its port to the link", async () => {
    const { lan: it, guests } = await lan(path, 'a')
    const remote = await peer(base + 82)
    const stranger = await peer(0)
    await it.attach('a', udp(base + 81, base + 82))
    const { switch_port } = await it.open('a', guests[0].port)
    await stranger.send('forged', switch_port)
    await guests[0].send('genuine')
    expect(await remote.next()).toBe('genuine')
  })

  test('ends that are attached and detached at once have the last attached NIO, and no other', async () => {
    const { lan: it, guests, counted } = await lan(path, 'a', 'b')
    const [a, b] = guests
    for (let round = 0; round < 30; round++) {
      await Promise.all([
        it.attach('a', udp(base + 85, base + 86)),
        it.attach('b', udp(base + 86, base + 85)).then(() => it.detach('b')),
        it.attach('a', udp(base + 85, base + 86)),
      ])
    }
    await b.send('from a port without a link')
    await counted('b', ({ dropped }) => expect(dropped.not_linked).toBe(1))
    // What is opened now may get the descriptor that the other end had.
    const late = await peer(0)
    await it.close('a')
    await it.open('late', late.port)
    await b.send('and again')
    await counted('b', ({ dropped }) => expect(dropped.not_linked).toBe(2))
    await it.attach('late', udp(base + 85, base + 86))
    await it.attach('b', udp(base + 86, base + 85))
    await b.send('linked')
    expect(await late.next()).toBe('linked')
    expect([a.got, late.got]).toEqual([[], []])
  })

  test('frames of a new link do not wait behind those of the old one', async () => {
    const { lan: it, guests, counted } = await lan(path, 'a')
    const [old, late] = [await peer(base + 88), await peer(base + 89)]
    await it.attach('a', udp(base + 87, old.port, { filters: [{ type: 'delay', ms: 30_000, jitter_ms: 0 }] }))
    await guests[0].send('waits')
    await counted('a', ({ out_frames }) => expect(out_frames).toBe(1))
    await it.attach('a', udp(base + 84, late.port))
    await guests[0].send('at once')
    expect(await late.next()).toBe('at once')
    expect(old.got).toEqual([])
  })

  test('links over IPv6 carry frames, to another switch and between two ports of this one', async () => {
    const { lan: here, guests: near } = await lan(path, 'a', 'b')
    const { lan: there, guests: far } = await lan(path, 'c')
    const six = (lport: number, rport: number) => ({ ...udp(lport, rport), rhost: '::1' })
    await here.attach('a', six(base + 95, base + 96))
    await there.attach('c', six(base + 96, base + 95))
    await near[0].send('over v6')
    expect(await far[0].next()).toBe('over v6')
    await far[0].send('and back')
    expect(await near[0].next()).toBe('and back')
    await here.attach('a', six(base + 97, base + 98))
    await here.attach('b', six(base + 98, base + 97))
    await near[0].send('joined')
    expect(await near[1].next()).toBe('joined')
  })

  test('a closed port releases its local port, separates the link, and is then unknown', async () => {
    const { lan: it, guests } = await lan(path, 'a', 'b')
    await it.attach('a', udp(base + 91, base + 92))
    await it.attach('b', udp(base + 92, base + 91))
    await it.close('b')
    await it.close('b')
    await expect(it.attach('b', udp(base + 92, base + 91))).rejects.toMatchObject({ code: 'unknown_key' })
    const outside = await peer(base + 92)
    await guests[0].send('to whoever has it now')
    expect(await outside.next()).toBe('to whoever has it now')
  })
})
