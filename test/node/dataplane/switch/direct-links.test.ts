import { setImmediate } from 'node:timers/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { compileFilters } from '../../../../runtime/node/dataplane/filters/compile.ts'
import { PortablePath } from '../../../../runtime/node/dataplane/portable/portable-path.ts'
import type { JoinedLink } from '../../../../runtime/node/keeper/protocol/protocol.ts'
import type { Filters } from '../../../../src/model/schema/filters.ts'
import { lan, packetPaths, peer, udp } from '../../../support/lan.ts'
import { freePorts } from '../../../support/ports.ts'

const link = (
  link_id: string,
  a: string,
  b: string,
  { ab = {}, ba = {}, suspend = false }: { ab?: Filters; ba?: Filters; suspend?: boolean } = {},
): JoinedLink => ({
  ...{ link_id, ports: [a, b], suspend },
  filters_ab: compileFilters(ab),
  filters_ba: compileFilters(ba),
})

afterEach(() => void vi.restoreAllMocks())

describe('where the packet path refuses a change', () => {
  test('a port is not half open, and can be opened again', async () => {
    const { lan: it, guests } = await lan('portable', 'a')
    await it.joinAll([link('1', 'a', 'b')])
    const guest = await peer(0)
    vi.spyOn(PortablePath.prototype, 'reset').mockRejectedValueOnce(new Error('refused'))
    await expect(it.open('b', guest.port)).rejects.toThrow('refused')
    expect(it.list().map(({ key }) => key)).toEqual(['a'])
    const { switch_port } = await it.open('b', guest.port)
    await guest.send('there', switch_port)
    expect(await guests[0].next()).toBe('there')
  })

  test('the other links are joined before the failure is reported', async () => {
    const { lan: it } = await lan('portable', 'a', 'b', 'c', 'd')
    const setLane = PortablePath.prototype.setLane
    let underWay = 0
    vi.spyOn(PortablePath.prototype, 'setLane').mockImplementation(async function (this: PortablePath, ...args) {
      underWay++
      await setImmediate()
      await setLane.apply(this, args)
      underWay--
    })
    vi.spyOn(PortablePath.prototype, 'reset').mockRejectedValueOnce(new Error('refused'))
    await expect(it.joinAll([link('1', 'a', 'b'), link('2', 'c', 'd')])).rejects.toThrow('refused')
    expect(underWay).toBe(0)
  })
})

describe.each(packetPaths)('a direct link on the %s packet path', (path) => {
  const base = freePorts(100)

  test('joins two ports, and separates them', async () => {
    const { lan: it, guests, report, counted } = await lan(path, 'a', 'b')
    const [a, b] = guests
    await it.joinAll([link('1', 'a', 'b')])
    await a.send('there')
    await b.send('back')
    expect([await b.next(), await a.next()]).toEqual(['there', 'back'])
    expect(await report('a')).toMatchObject({ link: 'ok', counters: { out_frames: 1, in_frames: 1 } })
    await it.separate([{ link_id: '1', ports: ['a', 'b'] }])
    await a.send('lost')
    await counted('a', ({ dropped }) => expect(dropped.not_linked).toBe(1))
    expect(await report('a')).toMatchObject({ link: null })
  })

  test('waits for its ports, and joins them again when one is opened again', async () => {
    const { lan: it, guests, report } = await lan(path, 'a')
    await it.joinAll([link('1', 'a', 'b')])
    expect(await report('a')).toMatchObject({ link: 'peer_unreachable', reason: expect.stringContaining('not run') })
    for (const round of ['first', 'second']) {
      const guest = await peer(0)
      const { switch_port } = await it.open('b', guest.port)
      await guest.send(round, switch_port)
      expect(await guests[0].next()).toBe(round)
      await it.close('b')
    }
    expect(it.links()).toMatchObject([{ link_id: '1' }])
  })

  test('has filters of its own for each direction', async () => {
    const { lan: it, guests, counted, report } = await lan(path, 'a', 'b')
    const [a, b] = guests
    await it.joinAll([link('1', 'a', 'b', { ab: { frequency_drop: [-1] } })])
    await a.send('lost')
    await counted('a', ({ dropped }) => expect(dropped.frequency_drop).toBe(1))
    await b.send('passes')
    expect(await a.next()).toBe('passes')
    await it.joinAll([link('1', 'a', 'b', { ba: { frequency_drop: [-1] } })])
    await b.send('lost')
    await counted('b', ({ dropped }) => expect(dropped.frequency_drop).toBe(1))
    await a.send('passes')
    expect(await b.next()).toBe('passes')
    await it.joinAll([link('1', 'a', 'b', { suspend: true })])
    await a.send('lost')
    await counted('a', ({ dropped }) => expect(dropped.suspended).toBe(1))
    expect((await report('b')).link).toBe('suspended')
  })

  test('gives a port to a NIO, or to another link', async () => {
    const { lan: it, guests } = await lan(path, 'a', 'b', 'c')
    const [a, b, c] = guests
    await it.joinAll([link('1', 'a', 'b')])
    const remote = await peer(base + 2)
    await it.attach('a', udp(base + 1, base + 2))
    await a.send('out')
    expect(await remote.next()).toBe('out')
    expect(it.links()).toEqual([])
    // And takes it back.
    await it.joinAll([link('1', 'a', 'b'), link('2', 'c', 'b')])
    expect(it.links()).toMatchObject([{ link_id: '2' }])
    await c.send('over')
    expect(await b.next()).toBe('over')
    await it.detach('b')
    expect(it.links()).toEqual([])
  })

  test('does not change when it is requested again', async () => {
    const { lan: it, guests } = await lan(path, 'a', 'b')
    const delayed = link('1', 'a', 'b', { ab: { delay: [50] } })
    await it.joinAll([delayed])
    await guests[0].send('late')
    await it.joinAll([structuredClone(delayed)])
    expect(await guests[1].next()).toBe('late')
  })

  test('takes the frames that wait for it with it, and their room', async () => {
    const { lan: it, guests, counted, report } = await lan(path, 'a', 'b', 'c')
    const [a, b, c] = guests
    const late = { delay: [30_000, 0] }
    await it.joinAll([link('1', 'a', 'b', { ab: late })])
    // More than can wait: the room for long frames, 32 MiB, is that of all links.
    const long = Buffer.alloc(9000)
    for (let sent = 0; sent < 4000; sent += 20) {
      for (let index = 0; index < 20; index++) void a.send(long)
      await counted('a', ({ out_frames }) => expect(out_frames).toBe(sent + 20))
    }
    expect((await report('b')).counters.dropped.queue_full).toBeGreaterThan(0)
    await it.separate([{ link_id: '1', ports: ['a', 'b'] }])
    await it.joinAll([link('2', 'c', 'b', { ab: { delay: [20, 0] } })])
    await c.send(long.fill('c'))
    expect(await b.next()).toMatch(/^c+$/)
    expect(b.got).toEqual([])
  })

  test('still delivers what a node sent before it was closed', async () => {
    const { lan: it, guests, counted } = await lan(path, 'a', 'b')
    const [a, b] = guests
    await it.joinAll([link('1', 'a', 'b', { ab: { delay: [100, 0] } })])
    await a.send('farewell')
    await counted('a', ({ out_frames }) => expect(out_frames).toBe(1))
    await it.close('a')
    expect(await b.next()).toBe('farewell')
  })

  test('joins hundreds at once', async () => {
    const names = Array.from({ length: 200 }, (_, index) => `p${index}`)
    const { lan: it, guests } = await lan(path, ...names)
    const pairs = names.slice(0, 100).map((name, index) => link(name, name, `p${100 + index}`))
    await it.joinAll(pairs)
    for (const index of [0, 99]) {
      await guests[index]?.send('hello')
      expect(await guests[100 + index]?.next()).toBe('hello')
    }
  })
})
