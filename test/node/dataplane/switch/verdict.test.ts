import { createSocket } from 'node:dgram'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { decodeProbe, encodeProbe, isProbe } from '../../../../runtime/node/dataplane/switch/core/probe-frame.ts'
import { Prober } from '../../../../runtime/node/dataplane/switch/prober.ts'
import { lan, packetPaths, peer, udp } from '../../../support/lan.ts'
import { hangMs } from '../../../support/limits.ts'
import { freePorts } from '../../../support/ports.ts'

describe.each(packetPaths)('a link of the %s packet path', (path) => {
  const base = freePorts(100)
  const settled = { timeout: hangMs, interval: 50 }

  test('is ok as soon as the switch at the other end has the link too, without a frame of a guest', async () => {
    const here = await lan(path, 'a')
    const there = await lan(path, 'b')
    await here.lan.attach('a', udp(base + 1, base + 2))
    expect((await here.report('a')).link).not.toBe('ok')
    await there.lan.attach('b', udp(base + 2, base + 1))
    await vi.waitFor(async () => {
      expect((await here.report('a')).link).toBe('ok')
      expect((await there.report('b')).link).toBe('ok')
    }, settled)
    const [a] = here.guests
    const [b] = there.guests
    await a.send('to b')
    expect(await b.next()).toBe('to b')
    // Guests saw no probe, and no counter did.
    expect(b.got).toEqual([])
    expect((await here.report('a')).counters).toMatchObject({ out_frames: 1, in_frames: 0 })
  })

  test('is peer_unreachable when nothing listens at the other end, and ok again when something does', async () => {
    const here = await lan(path, 'a')
    await here.lan.attach('a', udp(base + 11, base + 12))
    await vi.waitFor(async () => expect((await here.report('a')).link).toBe('peer_unreachable'), settled)
    const there = await lan(path, 'b')
    await there.lan.attach('b', udp(base + 12, base + 11))
    await vi.waitFor(async () => expect((await here.report('a')).link).toBe('ok'), settled)
  })

  test('is silent when the other end does not send, one_way when only one of them sends, ok when both do', async () => {
    const here = await lan(path, 'a')
    const other = await peer(base + 22)
    await here.lan.attach('a', udp(base + 21, base + 22))
    expect((await here.report('a')).link).toBe('silent')
    await here.guests[0].send('hello?')
    await other.next()
    expect((await here.report('a')).link).toBe('one_way')
    await other.send('yes', base + 21)
    await here.guests[0].next()
    expect((await here.report('a')).link).toBe('ok')
    for (let frame = 0; frame < 20; frame++) await here.guests[0].send('and now?')
    await other.holds(20)
    expect((await here.report('a')).link).toBe('one_way')
  })

  test('is one_way when the peer sends probes and never gets an answer', async () => {
    const here = await lan(path, 'a')
    // It asks, and throws away what comes: as a firewall on the way back would.
    const deaf = createSocket('udp4')
    onTestFinished(() => void deaf.close())
    await new Promise<void>((resolve) => deaf.bind(base + 32, '127.0.0.1', resolve))
    await here.lan.attach('a', udp(base + 31, base + 32))
    deaf.send(encodeProbe({ isQuestion: true, hearsYou: false, sequence: 1 }), base + 31, '127.0.0.1')
    await vi.waitFor(async () => expect((await here.report('a')).link).toBe('one_way'), settled)
  })

  test('between two ports of this switch is ok, and peer_unreachable without the other guest', async () => {
    const { lan: it, guests, report } = await lan(path, 'a', 'b')
    await it.attach('a', udp(base + 41, base + 42))
    await it.attach('b', udp(base + 42, base + 41))
    await guests[0].send('one')
    await guests[1].next()
    expect((await report('a')).link).toBe('ok')
    await new Promise<void>((resolve) => guests[1].socket.close(() => resolve()))
    await guests[0].send('two')
    await vi.waitFor(async () => expect((await report('a')).link).toBe('peer_unreachable'), settled)
    expect((await report('b')).counters.dropped.no_guest).toBeGreaterThan(0)
    guests[1].socket.close = (() => guests[1].socket) as never
  })

  test('to a guest that was not there at first is ok when it takes a frame, also when it says nothing', async () => {
    const { lan: it, guests, report } = await lan(path, 'a', 'b')
    await it.attach('a', udp(base + 81, base + 82))
    await it.attach('b', udp(base + 82, base + 81))
    const [guest, late] = guests
    const switchPort = late.socket.remoteAddress().port
    await new Promise<void>((resolve) => late.socket.close(() => resolve()))
    await guest.send('too early')
    await vi.waitFor(async () => expect((await report('a')).link).toBe('peer_unreachable'), settled)
    const there = await peer(late.port, switchPort)
    await guest.send('in time')
    expect(await there.next()).toBe('in time')
    await vi.waitFor(async () => expect((await report('a')).link).toBe('ok'), settled)
    late.socket.close = (() => late.socket) as never
  })

  test('has a verdict from the frames since it was attached', async () => {
    const { lan: it, guests, report } = await lan(path, 'a')
    const [one, two] = [await peer(base + 62), await peer(base + 63)]
    await it.attach('a', udp(base + 61, one.port))
    await guests[0].send('to one')
    await one.next()
    await one.send('to a', base + 61)
    await guests[0].next()
    expect((await report('a')).link).toBe('ok')
    await it.attach('a', udp(base + 64, two.port))
    expect((await report('a')).link).toBe('silent')
  })

  test('that is suspended has the verdict suspended', async () => {
    const { lan: it, report } = await lan(path, 'a', 'b')
    await it.attach('a', udp(base + 51, base + 52, { suspend: true }))
    await it.attach('b', udp(base + 52, base + 51))
    expect(await report('a')).toMatchObject({ link: 'suspended', reason: null })
  })

  test('with IPv4 at one end and IPv6 at the other is peer_unreachable, and the reason names both', async () => {
    const { lan: it, report } = await lan(path, 'a', 'b')
    await it.attach('a', udp(base + 61, base + 62))
    await it.attach('b', udp(base + 62, base + 61, {}, '::1'))
    const reason =
      'this end uses IPv4 (rhost 127.0.0.1), the other end IPv6 (rhost ::1): use addresses of one family at both'
    await vi.waitFor(async () => expect(await report('a')).toMatchObject({ link: 'peer_unreachable', reason }), settled)
  })

  test('to a port without a listener names that port', async () => {
    const { lan: it, report } = await lan(path, 'a')
    await it.attach('a', udp(base + 71, base + 72))
    const reason = `nothing listens on UDP port ${base + 72} of 127.0.0.1`
    await vi.waitFor(async () => expect(await report('a')).toMatchObject({ link: 'peer_unreachable', reason }), settled)
  })
})

describe('the prober', () => {
  function wired() {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const sent: { isQuestion: boolean; sequence: number }[] = []
    const prober = new Prober((frame) => {
      const probe = decodeProbe(frame)
      if (probe !== undefined) sent.push(probe)
    })
    onTestFinished(() => prober.stop())
    return {
      prober,
      sent,
      answer: () =>
        prober.receive(encodeProbe({ isQuestion: false, hearsYou: true, sequence: sent.at(-1)?.sequence ?? 0 })),
    }
  }

  test('does not probe a peer without answers, until the peer sends a probe', () => {
    const { prober, sent } = wired()
    prober.start()
    vi.advanceTimersByTime(3_600_000)
    expect(sent).toHaveLength(7)
    expect(prober.finding).toBe('unknown')
    prober.receive(encodeProbe({ isQuestion: true, hearsYou: false, sequence: 9 }))
    expect(sent.slice(7)).toMatchObject([{ isQuestion: false, sequence: 9 }, { isQuestion: true }])
  })

  test('probes a peer that answers seldom, and notices when it stops, and when it answers again', () => {
    const { prober, sent, answer } = wired()
    prober.start()
    answer()
    expect(prober.finding).toBe('answers')
    vi.advanceTimersByTime(24_000)
    expect(sent).toHaveLength(1)
    vi.advanceTimersByTime(2000)
    expect(sent).toHaveLength(2)
    vi.advanceTimersByTime(60_000)
    expect(prober.finding).toBe('lost')
    vi.advanceTimersByTime(3_600_000)
    const { length } = sent
    vi.advanceTimersByTime(100_000)
    expect(sent).toHaveLength(length + 4)
    answer()
    expect(prober.finding).toBe('answers')
  })

  test('accepts a late answer', () => {
    const { prober, sent } = wired()
    prober.start()
    vi.advanceTimersByTime(300)
    expect(sent).toHaveLength(2)
    prober.receive(encodeProbe({ isQuestion: false, hearsYou: true, sequence: 1 }))
    expect(prober.finding).toBe('answers')
    prober.receive(encodeProbe({ isQuestion: false, hearsYou: true, sequence: 1 }))
    prober.receive(encodeProbe({ isQuestion: false, hearsYou: true, sequence: 99 }))
    expect(prober.finding).toBe('answers')
  })

  test('has one probe under way at a time, however often the verdict is read', async () => {
    const { prober, sent, answer } = wired()
    prober.start()
    answer()
    vi.advanceTimersByTime(3000)
    const looks = [prober.refresh(), prober.refresh(), prober.refresh()]
    expect(sent).toHaveLength(2)
    vi.advanceTimersByTime(500)
    await Promise.all(looks)
    expect(prober.finding).toBe('answers')
  })

  test('stops', () => {
    const { prober, sent } = wired()
    prober.start()
    prober.stop()
    vi.advanceTimersByTime(60_000)
    expect(sent).toHaveLength(1)
  })
})

test('a probe is distinguished from frames of guests', () => {
  const probe = encodeProbe({ isQuestion: true, hearsYou: true, sequence: 7 })
  expect(decodeProbe(probe)).toEqual({ isQuestion: true, hearsYou: true, sequence: 7 })
  for (const [place, value] of [
    [12, 0x08],
    [13, 0],
    [14, 0],
    [21, 0],
  ] as const) {
    const other = Uint8Array.from(probe)
    other[place] = value
    expect(isProbe(other, 0, other.length)).toBe(false)
  }
  expect(isProbe(probe, 0, 59)).toBe(false)
  // A version to come is a probe, and no frame for a guest, but not understood.
  const later = Uint8Array.from(probe)
  later[22] = 2
  expect(isProbe(later, 0, 60)).toBe(true)
  expect(decodeProbe(later)).toBeUndefined()
})
