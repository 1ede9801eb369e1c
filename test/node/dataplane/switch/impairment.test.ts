import { describe, expect, test } from 'vitest'
import { compileBpf } from '../../../../runtime/node/dataplane/bpf/compile.ts'
import type { Filter } from '../../../../runtime/node/dataplane/filters/index.ts'
import { packetPaths } from '../../../support/lan.ts'
import { hangMs } from '../../../support/limits.ts'
import { requireLibpcap } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'
import { numbered, numberOf, sorted, type Way, wires } from '../../../support/traffic.ts'

const libpcap = requireLibpcap()
const ethernet = 1
/** Frames of each of the four ways. */
const many = 2500
const some = 1000

const bpf = (...expressions: string[]): Filter => ({
  type: 'bpf',
  programs: expressions.map((expression) => compileBpf(expression, ethernet)),
})

/** The count of a binomial distribution, within five standard deviations. */
function expectShare(count: number, of: number, percent: number, name: string): void {
  const chance = percent / 100
  expect(Math.abs(count - of * chance), `${name}: ${count} of ${of}`).toBeLessThan(
    5 * Math.sqrt(of * chance * (1 - chance)),
  )
}

/** Each of the frames that came is one that was sent, unchanged, and they are in order; copies follow each other. */
function expectInOrder({ name, sent, came, numbers }: Way): void {
  expect(numbers, name).toEqual(sorted(numbers))
  for (const { frame } of came) {
    if (!frame.equals(sent[numberOf(frame)]?.frame ?? Buffer.alloc(0))) throw new Error(`${name}: a frame was changed`)
  }
}

describe.each(packetPaths)('the %s packet path', (path) => {
  test('packet_loss drops its share of the frames, the others pass', async () => {
    const { ways } = await wires(path, { filters: [{ type: 'packet_loss', percent: 10 }] })
    let lost = 0
    for (const way of ways) {
      await way.send(many)
      const { dropped } = way.tally
      expectShare(dropped.packet_loss ?? 0, many, 10, way.name)
      lost += dropped.packet_loss ?? 0
      expect(dropped, way.name).toEqual({ packet_loss: many - way.came.length })
      expectInOrder(way)
    }
    expectShare(lost, 4 * many, 10, 'all')
  })

  test('frequency_drop drops every n-th frame, and no other', async () => {
    const { ways } = await wires(path, { filters: [{ type: 'frequency_drop', every: 7 }] })
    for (const way of ways) {
      await way.send(some)
      expect(way.numbers, way.name).toEqual([...way.sent.keys()].filter((number) => number % 7 !== 6))
      expect(way.tally.dropped, way.name).toEqual({ frequency_drop: Math.floor(some / 7) })
    }
  })

  test('frequency_drop of -1 drops all', async () => {
    const { ways, impair } = await wires(path, { filters: [{ type: 'frequency_drop', every: -1 }] })
    for (const way of ways) {
      await way.send(some)
      expect(way.tally.dropped, way.name).toEqual({ frequency_drop: some })
    }
    // Frames stay in order: nothing that was sent before can come after these.
    await impair({})
    for (const way of ways) {
      await way.send(1)
      expect(way.numbers, way.name).toEqual([some])
    }
  })

  test('corrupt changes one byte of its share of the frames', async () => {
    const { ways } = await wires(path, { filters: [{ type: 'corrupt', percent: 50 }] })
    for (const way of ways) {
      await way.send(many)
      const places = way.came.flatMap(({ frame }, index) => {
        const original = way.sent[index]?.frame ?? Buffer.alloc(0)
        expect(frame.length).toBe(original.length)
        const changed = frame.equals(original)
          ? []
          : [...frame.keys()].filter((place) => frame[place] !== original[place])
        if (changed.length > 1) throw new Error(`${way.name}: frame ${index} differs at ${changed}`)
        return changed
      })
      expectShare(places.length, many, 50, way.name)
      expect(way.tally, way.name).toMatchObject({ corrupted: places.length, passed: many, dropped: {} })
      // Any byte may be it.
      expect(new Set(places).size, way.name).toBe(64)
    }
  })

  test('duplicate lets its share of the frames leave twice, one after the other', async () => {
    const { ways } = await wires(path, { filters: [{ type: 'duplicate', percent: 30 }] })
    for (const way of ways) {
      await way.send(many)
      const { duplicated, dropped } = way.tally
      expectShare(duplicated, many, 30, way.name)
      await way.holds(many + duplicated)
      expect(way.came.length, way.name).toBe(many + duplicated)
      expect(new Set(way.numbers).size, way.name).toBe(many)
      expect(dropped).toEqual({})
      expectInOrder(way)
    }
  })

  testWith(libpcap)('bpf drops what one of the programs matches, and lets the rest pass', async () => {
    const { ways } = await wires(path, {
      filters: [bpf('ether proto 0x88b6 and ether[17] & 3 = 0', 'ether[17] & 3 = 1', 'tcp')],
    })
    for (const way of ways) {
      await way.send(some)
      expect(way.numbers, way.name).toEqual([...way.sent.keys()].filter((number) => (number & 3) > 1))
      expect(way.tally.dropped, way.name).toEqual({ bpf: some / 2 })
      expectInOrder(way)
    }
  })

  testWith(libpcap)('frames meet the filters in the order of the list', async () => {
    // The one byte of such a frame is the one that is changed.
    const make = () => Buffer.of(0x55)
    const corrupt: Filter = { type: 'corrupt', percent: 100 }
    const drop = bpf('ether[0] = 0x55')
    const first = await wires(path, { filters: [corrupt, drop] })
    for (const way of first.ways) {
      await way.send(some, make)
      expect(way.tally, way.name).toMatchObject({ passed: some, corrupted: some, dropped: {} })
    }
    const second = await wires(path, { filters: [drop, corrupt] })
    for (const way of second.ways) {
      await way.send(some, make)
      expect(way.tally, way.name).toMatchObject({ passed: 0, corrupted: 0, dropped: { bpf: some } })
    }
  })

  test('a suspended link counts the frames that it drops, and its filters get none', async () => {
    const stages = { filters: [{ type: 'packet_loss' as const, percent: 50 }] }
    const { ways, impair } = await wires(path, { suspend: true, ...stages })
    for (const way of ways) {
      await way.send(some)
      expect(way.tally.dropped, way.name).toEqual({ suspended: some })
    }
    await impair({})
    for (const way of ways) {
      await way.send(1)
      expect(way.numbers, way.name).toEqual([some])
    }
  })

  test('every frame is counted once, also when it is dropped', async () => {
    const { ways } = await wires(path, {
      filters: [
        { type: 'frequency_drop', every: 10 },
        { type: 'packet_loss', percent: 20 },
        { type: 'duplicate', percent: 20 },
        { type: 'corrupt', percent: 0 },
        // So slow that a host that is busy with other things sends faster, too.
        { type: 'rate', kbps: 100, burst_kb: 16, queue_ms: 10 },
      ],
    })
    for (const way of ways) {
      await way.put(many)
      const { dropped, duplicated, passed } = way.tally
      const { frequency_drop = 0, packet_loss = 0, rate = 0, ...others } = dropped
      expect(frequency_drop, way.name).toBe(many / 10)
      expectShare(packet_loss, many - frequency_drop, 20, way.name)
      expectShare(duplicated, many - frequency_drop - packet_loss, 20, way.name)
      expect(rate, way.name).toBeGreaterThan(0)
      expect(others, way.name).toEqual({})
      await way.holds(passed)
      expect(way.came.length, way.name).toBe(many + duplicated - frequency_drop - packet_loss - rate)
      expectInOrder(way)
    }
  })

  test('the filters of both ends of joined ports apply', async () => {
    const { outOfJoined, intoJoined, impairOther, otherCounters } = await wires(path, {
      filters: [{ type: 'frequency_drop', every: 2 }],
    })
    await impairOther({ filters: [{ type: 'frequency_drop', every: 3 }] })
    await outOfJoined.put(600)
    await outOfJoined.holds(200)
    expect(outOfJoined.numbers).toEqual([...Array(600).keys()].filter((number) => number % 6 === 0 || number % 6 === 2))
    expect(outOfJoined.tally.dropped).toEqual({ frequency_drop: 300 })
    expect(await otherCounters()).toMatchObject({ in_frames: 200, dropped: { frequency_drop: 100 } })
    // The other end is the first here, and what it drops the filtered port never sees.
    intoJoined.emit(60)
    await intoJoined.holds(20)
    expect(intoJoined.numbers).toEqual([...Array(60).keys()].filter((number) => number % 6 === 0 || number % 6 === 3))
    // The last of them are dropped after the last that passes has come.
    await expect
      .poll(otherCounters, { timeout: hangMs })
      .toMatchObject({ out_frames: 40, dropped: { frequency_drop: 120 } })
  })

  test('copies of one end are counted by the other', async () => {
    const twice: Filter = { type: 'duplicate', percent: 100 }
    const { outOfJoined, impairOther, otherCounters } = await wires(path, { filters: [twice] })
    await impairOther({ filters: [twice, { type: 'corrupt', percent: 100 }] })
    await outOfJoined.put(100)
    await outOfJoined.holds(400)
    expect(outOfJoined.tally).toMatchObject({ passed: 200, duplicated: 100 })
    expect(await otherCounters()).toMatchObject({ in_frames: 400, duplicated: 200, corrupted: 400 })
    await impairOther({ filters: [{ type: 'packet_loss', percent: 100 }] })
    await outOfJoined.put(100)
    expect(await otherCounters()).toMatchObject({ in_frames: 400, dropped: { packet_loss: 200 } })
  })

  test('other filters apply to the next frame, while frames flow', async () => {
    const { ways, impair } = await wires(path, {})
    const steps: [Filter[], boolean][] = [
      [[{ type: 'packet_loss', percent: 100 }], false],
      [[], true],
      [[{ type: 'frequency_drop', every: -1 }], false],
      [[{ type: 'corrupt', percent: 0 }], true],
    ]
    const passing: number[] = []
    for (let round = 0; round < 40; round++) {
      const [filters, passes] = steps[round % steps.length] ?? [[], true]
      await impair({ filters })
      for (const way of ways) await way.put(25)
      if (passes) passing.push(...Array.from({ length: 25 }, (_, index) => round * 25 + index))
    }
    for (const way of ways) {
      await way.holds(passing.length)
      expect(way.numbers, way.name).toEqual(passing)
      expect(way.tally.dropped, way.name).toEqual({ packet_loss: 250, frequency_drop: 250 })
    }
  })

  test('probabilities apply to frames of any length', async () => {
    const { toRemote } = await wires(path, { filters: [{ type: 'corrupt', percent: 50 }] })
    await toRemote.send(some, (number) => numbered(number, 18 + (number % 1483)))
    expect(toRemote.came.map(({ frame }) => frame.length)).toEqual(toRemote.sent.map(({ frame }) => frame.length))
    expectShare(toRemote.tally.corrupted, some, 50, toRemote.name)
  })
})
