import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Loop, pairDistance } from '../../../../runtime/node/dataplane/switch/core/bridge.ts'
import { Switch } from '../../../../runtime/node/dataplane/switch/switch.ts'
import type { BridgePortSpec, BridgeSpec } from '../../../../runtime/node/keeper/protocol/protocol.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { mac } from '../../../support/frames.ts'
import { lanWith, type Peer, packetPaths } from '../../../support/lan.ts'
import { hangMs } from '../../../support/limits.ts'
import { holds } from '../../../support/pcap.ts'

type Mode = BridgePortSpec['mode']
type PortOf = [mode: Mode, vlan: number, ethertype?: number]
const access = (vlan: number): PortOf => ['access', vlan]

const spec = (ports: readonly PortOf[], more: Partial<BridgeSpec> = {}): BridgeSpec => ({
  ...{ type: 'bridge', forwards: 'learned', ageing_s: 300 },
  ports: ports.map(([mode, vlan, ethertype = 0x88a8], port_number) => ({ port_number, mode, vlan, ethertype })),
  ...more,
})

const broadcast = [255, 255, 255, 255, 255, 255]
/** A frame with tags, each of an EtherType and a VLAN. */
const frame = (to: readonly number[], from: number, text: string, ...tags: readonly [number, number][]): Buffer =>
  Buffer.concat([
    Buffer.from([...to, ...mac(from)]),
    Buffer.from(tags.flatMap(([type, tci]) => [type >> 8, type & 255, tci >> 8, tci & 255])),
    Buffer.from([0x88, 0xb6]),
    Buffer.from(text),
  ])

/** Guests that are linked to the ports of a switch. */
async function bridged(path: 'fast' | 'portable', ports: readonly PortOf[], more: Partial<BridgeSpec> = {}) {
  const loops: Loop[] = []
  const names = ports.map((_, index) => `g${index}`)
  const { lan: it, guests, report, counted } = await lanWith({ looped: (_, loop) => loops.push(loop) }, path, ...names)
  await it.configure('sw', spec(ports, more))
  for (const [index] of ports.entries()) await it.open(`sw/0/${index}`, it.bridgePort('sw', index))
  const link = (index: number) => ({
    ...{ link_id: `${index}`, ports: [`g${index}`, `sw/0/${index}`] as const },
    ...{ suspend: false, filters_ab: [], filters_ba: [] },
  })
  await it.joinAll(ports.map((_, index) => link(index)))
  return { it, guests: guests as readonly Peer[] as [Peer, Peer, Peer, Peer], report, counted, loops }
}

const next = async (peer: Peer) => (await peer.holds(1)).shift()

describe.each(packetPaths)('a switch on the %s packet path', (path) => {
  test('floods frames to unknown addresses, and learns', async () => {
    const { it, guests, report } = await bridged(path, [access(1), access(1), access(1)])
    const [a, b, c] = guests
    const hello = frame(broadcast, 1, 'hello')
    await a.send(hello)
    expect([await next(b), await next(c)]).toEqual([hello, hello])
    const reply = frame(mac(1), 2, 'reply')
    await b.send(reply)
    expect(await next(a)).toEqual(reply)
    const unicast = frame(mac(2), 1, 'unicast')
    await a.send(unicast)
    expect(await next(b)).toEqual(unicast)
    // Whatever was for c has come by now, because frames keep their order.
    const last = frame(broadcast, 1, 'last')
    await a.send(last)
    expect(await next(c)).toEqual(last)
    expect(await it.entries('sw')).toMatchObject([
      { mac: '02:00:00:00:00:01', vlan: 1, port_number: 0 },
      { mac: '02:00:00:00:00:02', vlan: 1, port_number: 1 },
    ])
    expect((await report('sw/0/1')).counters).toMatchObject({ out_frames: 3, in_frames: 1 })
    await it.clear('sw')
    expect(await it.entries('sw')).toEqual([])
    await b.send(frame(mac(1), 2, 'unknown again'))
    expect(String(await next(c))).toContain('unknown again')
  })

  test('a capture of frames that it forwards has the time of each frame', async () => {
    const { it, guests } = await bridged(path, [access(1), access(1)])
    const file = join(await freshDirectory(), 'behind.pcap')
    await it.captured('g1').start(file, 1, 0)
    const before = Date.now()
    for (const text of ['one', 'two']) {
      await guests[0].send(frame(broadcast, 1, text))
      await next(guests[1])
    }
    const { records } = await holds(file, 2)
    for (const { time } of records) expect(Math.abs(time - before)).toBeLessThan(hangMs)
  })

  test('keeps VLANs apart, and tags them on a trunk', async () => {
    const { guests, counted } = await bridged(path, [access(10), access(20), ['dot1q', 1], access(1)])
    const [ten, twenty, trunk, native] = guests
    await ten.send(frame(broadcast, 1, 'of ten'))
    expect(await next(trunk)).toEqual(frame(broadcast, 1, 'of ten', [0x8100, 10]))
    await native.send(frame(broadcast, 4, 'of one'))
    expect(await next(trunk)).toEqual(frame(broadcast, 4, 'of one'))
    // The priority of a tag stays on a trunk.
    await trunk.send(frame(broadcast, 3, 'to twenty', [0x8100, 0xa000 | 20]))
    expect(await next(twenty)).toEqual(frame(broadcast, 3, 'to twenty'))
    await trunk.send(frame(broadcast, 3, 'priority', [0x8100, 0xa000]))
    expect(await next(native)).toEqual(frame(broadcast, 3, 'priority'))
    await trunk.send(frame(mac(1), 3, 'to ten', [0x8100, 10]))
    expect(await next(ten)).toEqual(frame(mac(1), 3, 'to ten'))
    // An access port takes no frames of other VLANs.
    await ten.send(frame(broadcast, 1, 'forged', [0x8100, 20]))
    await counted('sw/0/0', ({ dropped }) => expect(dropped.filtered).toBe(1))
    expect(twenty.got).toEqual([])
  })

  test.each([0x8100, 0x88a8, 0x9100, 0x9200])('carries VLANs in an outer one with EtherType %i', async (ethertype) => {
    const { guests } = await bridged(path, [['dot1q', 1], ['qinq', 100, ethertype], access(10)])
    const [trunk, outer, ten] = guests
    await trunk.send(frame(broadcast, 1, 'in ten', [0x8100, 0x6000 | 10]))
    expect(await next(outer)).toEqual(frame(broadcast, 1, 'in ten', [ethertype, 0x6000 | 100], [0x8100, 0x6000 | 10]))
    expect(await next(ten)).toEqual(frame(broadcast, 1, 'in ten'))
    await outer.send(frame(broadcast, 2, 'back', [ethertype, 100], [0x8100, 10]))
    expect(await next(trunk)).toEqual(frame(broadcast, 2, 'back', [0x8100, 10]))
    expect(await next(ten)).toEqual(frame(broadcast, 2, 'back'))
    // Of another outer VLAN, and without one.
    await outer.send(frame(broadcast, 2, 'foreign', [ethertype, 101], [0x8100, 10]))
    await outer.send(frame(broadcast, 2, 'bare'))
    await outer.send(frame(broadcast, 2, 'last', [ethertype, 100], [0x8100, 10]))
    expect(await next(ten)).toEqual(frame(broadcast, 2, 'last'))
  })

  test('floods all frames as a hub, when it does not learn', async () => {
    const { guests, it } = await bridged(path, [access(1), access(2), access(3)], { forwards: 'all' })
    const [a, b, c] = guests
    const tagged = frame(mac(2), 1, 'x', [0x8100, 7])
    await a.send(tagged)
    expect([await next(b), await next(c)]).toEqual([tagged, tagged])
    expect(await it.entries('sw')).toEqual([])
  })

  test('forwards nothing when it is stopped, and has other ports when it is changed', async () => {
    const { guests, it, counted } = await bridged(path, [access(1), access(1), access(1)])
    const [a, b, c] = guests
    await it.configure('sw', spec([access(1), access(2), access(1)]))
    await a.send(frame(broadcast, 1, 'not to b'))
    await next(c)
    expect(b.got).toEqual([])
    await it.configure('sw', null)
    await a.send(frame(broadcast, 1, 'lost'))
    await counted('sw/0/0', ({ dropped }) => expect(dropped.no_guest).toBe(1))
  })

  test('applies the filters of a link to forwarded frames', async () => {
    const { guests, it, counted } = await bridged(path, [access(1), access(1), access(1)])
    const link = { link_id: '1', ports: ['g1', 'sw/0/1'] as const, suspend: false, filters_ab: [] }
    await it.joinAll([{ ...link, filters_ba: [{ type: 'frequency_drop', every: 1 }] }])
    await guests[0].send(frame(broadcast, 1, 'x'))
    expect(String(await next(guests[2]))).toContain('x')
    await counted('sw/0/1', ({ dropped }) => expect(dropped.frequency_drop).toBe(1))
    expect(guests[1].got).toEqual([])
  })

  test('passes frames on to another switch when the link between them has filters', async () => {
    const { guests, it } = await bridged(path, [access(1), access(1), access(1)])
    await it.configure('other', spec([access(1), access(1)]))
    for (const index of [0, 1]) await it.open(`other/0/${index}`, it.bridgePort('other', index))
    const twice = [{ type: 'duplicate' as const, percent: 100 }]
    await it.joinAll([
      { link_id: 'x', ports: ['sw/0/2', 'other/0/0'], suspend: false, filters_ab: twice, filters_ba: [] },
      { link_id: 'y', ports: ['other/0/1', 'g2'], suspend: false, filters_ab: [], filters_ba: [] },
    ])
    for (const text of ['one', 'two']) {
      const sent = frame(broadcast, 1, text)
      await guests[0].send(sent)
      expect([await next(guests[2]), await next(guests[2])]).toEqual([sent, sent])
    }
  })

  test('passes frames that leave a cloud by another port than they came by', async () => {
    const { guests, it } = await bridged(path, [access(1), access(1)])
    const numbers = [0, 1, pairDistance, pairDistance + 1]
    const ports = numbers.map((port_number) => ({ port_number, mode: 'access' as const, vlan: 1, ethertype: 0x8100 }))
    await it.configure('outside', { type: 'bridge', forwards: 'paired', ageing_s: 300, ports })
    for (const port of numbers) await it.open(`outside/0/${port}`, it.bridgePort('outside', port))
    const none = { suspend: false, filters_ab: [], filters_ba: [] }
    await it.joinAll(
      [0, 1].flatMap((index) => [
        { link_id: `in${index}`, ports: [`sw/0/${index}`, `outside/0/${index}`] as const, ...none },
        { link_id: `out${index}`, ports: [`g${index}`, `outside/0/${index + pairDistance}`] as const, ...none },
      ]),
    )
    const sent = frame(broadcast, 1, 'through both')
    await guests[0].send(sent)
    expect(await next(guests[1])).toEqual(sent)
  })

  test('floods to all of 1,024 ports, and learns at the last', async () => {
    const { guests, it, report } = await bridged(path, [access(1), access(1)])
    const specs = Array.from({ length: 1024 }, () => access(1))
    await it.configure('sw', spec(specs))
    await it.open('sw/0/1023', it.bridgePort('sw', 1023))
    for (let index = 2; index < 1023; index++) await it.open(`sw/0/${index}`, it.bridgePort('sw', index))
    const none = { suspend: false, filters_ab: [], filters_ba: [] }
    await it.joinAll([{ link_id: '1', ports: ['g1', 'sw/0/1023'], ...none }])
    await guests[0].send(frame(broadcast, 1, 'to all'))
    expect(await next(guests[1])).toEqual(frame(broadcast, 1, 'to all'))
    await guests[1].send(frame(mac(1), 2, 'back'))
    expect(await next(guests[0])).toEqual(frame(mac(1), 2, 'back'))
    expect(await it.entries('sw')).toMatchObject([{ port_number: 0 }, { port_number: 1023 }])
    // A port without a link counts what it could not send.
    expect((await report('sw/0/500')).counters.dropped.not_linked).toBe(1)
  })

  test('reports a loop, and still works', async () => {
    const { guests, it, loops } = await bridged(path, [access(1), access(1)])
    await it.configure('other', spec([access(1), access(1)]))
    // The second switch hangs on the first by two cables, in the places of two guests.
    await it.configure('sw', spec([access(1), access(1), access(1)]))
    await it.open('sw/0/2', it.bridgePort('sw', 2))
    for (const index of [0, 1]) await it.open(`other/0/${index}`, it.bridgePort('other', index))
    const cable = (link_id: string, a: string, b: string) => ({
      ...{ link_id, ports: [a, b] as const, suspend: false, filters_ab: [], filters_ba: [] },
    })
    await it.joinAll([cable('x', 'sw/0/1', 'other/0/0'), cable('y', 'sw/0/2', 'other/0/1')])
    await guests[0].send(frame(broadcast, 1, 'round'))
    await expect.poll(() => loops.length).toBeGreaterThan(0)
    expect(loops[0]).toMatchObject({ mac: '02:00:00:00:00:01' })
  })

  test('reports an address that moves all the time, and drops its frames', async () => {
    const { guests, loops, report } = await bridged(path, [access(1), access(1), access(1)])
    // Each is waited for, so that they take turns in the switch, too.
    for (let index = 0; index < 60; index++) {
      await guests[index % 2 === 0 ? 0 : 1].send(frame(broadcast, 9, `${index}`))
      await next(guests[2])
    }
    await expect.poll(() => loops).toMatchObject([{ mac: '02:00:00:00:00:09', vlan: 1 }])
    expect([...(loops[0]?.port_numbers ?? [])].sort()).toEqual([0, 1])
    const filtered = async (index: number) => (await report(`sw/0/${index}`)).counters.dropped.filtered ?? 0
    const dropped = async () => {
      for (const guest of guests.slice(0, 2)) await guest.send(frame(broadcast, 9, 'more'))
      return (await filtered(0)) + (await filtered(1))
    }
    await expect.poll(dropped).toBeGreaterThan(0)
  })
})

test('a switch without ports is removed', async () => {
  const it = await Switch.start({ captureFailed: () => {}, log: () => {}, path: 'portable' })
  await it.configure('sw', spec([access(1)]))
  await it.open('sw/0/0', it.bridgePort('sw', 0))
  await it.configure('sw', null)
  await it.close('sw/0/0')
  expect(await it.entries('sw')).toEqual([])
  await it.closeAll()
})
