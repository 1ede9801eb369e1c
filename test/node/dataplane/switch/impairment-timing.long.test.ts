import { describe, expect, test, vi } from 'vitest'
import type { Filter } from '../../../../runtime/node/dataplane/filters/index.ts'
import { packetPaths } from '../../../support/lan.ts'
import { hangMs } from '../../../support/limits.ts'
import { quickest } from '../../../support/rounds.ts'
import { median, numbered, numberOf, percentile, sorted, type Way, wires } from '../../../support/traffic.ts'

/** How much later than they should 99 of 100 frames come at worst, where other programs take the processors, ms. */
const lateMs = 500
const some = 500

const delay = (ms: number, jitter_ms = 0): Filter => ({ type: 'delay', ms, jitter_ms })

/** How often a frame came after one that was sent later. */
const overtakings = (numbers: readonly number[]): number =>
  numbers.filter((number, index) => number < (numbers[index - 1] ?? 0)).length

/** Where other work takes the processors frames are late as well: such a measurement is made again. */
const whenQuiet = (measure: () => Promise<void>) => vi.waitFor(measure, { timeout: hangMs, interval: 10 })

/**
 * Sends frames, so many every millisecond; how long each was on its way. Those that are under way must fit into the buffer of a socket
 * of 208 KB: all of them come while this process has a pause.
 */
async function round(way: Way, make?: (number: number) => Buffer, everyMs = 8): Promise<number[]> {
  const before = way.came.length
  await way.stream(some, everyMs, make)
  await way.holds(before + some)
  return way.transits.slice(before)
}

/** The delay of the frames that nothing else disturbed: of one in twenty, where other programs take the processors. */
const quietest = (transits: readonly number[]): number => percentile(transits, 5)

describe.each(packetPaths)('the %s packet path', (path) => {
  /** How late the frame in the middle may be. A timer of Node wakes the portable path, to the millisecond. */
  const usuallyLateMs = path === 'fast' ? 1 : 2

  /** Sends frames until the usual delay shows, and expects it of all of them. */
  async function expectDelay(way: Way, ms: number, make?: (number: number) => Buffer, everyMs?: number): Promise<void> {
    await whenQuiet(async () => {
      const transits = await round(way, make, everyMs)
      expect(quietest(transits), way.name).toBeLessThan(ms + usuallyLateMs)
    })
    const { name, transits, numbers } = way
    expect(Math.min(...transits), name).toBeGreaterThanOrEqual(ms)
    expect(percentile(transits, 99), name).toBeLessThan(ms + lateMs)
    expect(numbers, name).toEqual(sorted(numbers))
  }

  test('delay holds every frame for its time, in order', async () => {
    const { ways } = await wires(path, { filters: [delay(20)] })
    for (const way of ways) await expectDelay(way, 20)
  })

  test('the delays of both ends of joined ports add up', async () => {
    const { outOfJoined, intoJoined, impairOther } = await wires(path, { filters: [delay(10)] })
    await impairOther({ filters: [delay(15)] })
    for (const way of [outOfJoined, intoJoined]) await expectDelay(way, 25)
  })

  test('jitter spreads the delay over its range, and frames overtake each other', async () => {
    const { ways } = await wires(path, { filters: [delay(20, 10)] })
    for (const way of ways) {
      await whenQuiet(async () => {
        // The middle of so many is that of the range within 2.3 ms (five standard deviations).
        expect(median(await round(way)), way.name).toBeLessThan(22.3 + usuallyLateMs)
      })
      const { name, transits, numbers } = way
      expect(Math.min(...transits), name).toBeGreaterThanOrEqual(10)
      expect(Math.min(...transits), name).toBeLessThan(12 + usuallyLateMs)
      expect(median(transits), name).toBeGreaterThan(17.7)
      expect(Math.max(...transits), name).toBeGreaterThan(28)
      expect(percentile(transits, 99), name).toBeLessThan(30 + lateMs)
      expect(overtakings(numbers), name).toBeGreaterThan(some / 10)
    }
  })

  test('reorder holds its share of the frames back, the others stay in order', async () => {
    const holdMs = 60
    const { ways } = await wires(path, { filters: [{ type: 'reorder', percent: 20, ms: holdMs }] })
    for (const way of ways) {
      await way.put(some)
      await way.holds(some)
      let latest = -1
      const overtaken = way.came.filter(({ frame }) => {
        const isOvertaken = numberOf(frame) < latest
        latest = Math.max(latest, numberOf(frame))
        return isOvertaken
      })
      expect(overtaken.length, way.name).toBeGreaterThan(some * 0.2 - 5 * Math.sqrt(some * 0.2 * 0.8) - 20)
      expect(overtaken.length, way.name).toBeLessThan(some * 0.2 + 5 * Math.sqrt(some * 0.2 * 0.8))
      const heldMs = overtaken.map(({ frame, at }) => at - (way.sent[numberOf(frame)]?.at ?? Number.NaN))
      expect(Math.min(...heldMs), way.name).toBeGreaterThanOrEqual(holdMs)
      expect(way.tally, way.name).toMatchObject({ passed: some, dropped: {} })
    }
  })

  test('rate lets a burst pass, and then its bit rate', async () => {
    const [kbps, size, burst] = [2000, 1000, 16 * 1024]
    const frameMs = (size * 8) / kbps
    const round = async () => {
      const { ways } = await wires(path, {
        filters: [{ type: 'rate', kbps, burst_kb: 16, queue_ms: 2000 }],
      })
      await Promise.all(
        ways.map(async (way) => {
          await way.stream(150, 10, (number) => numbered(number, size))
          await way.holds(150)
        }),
      )
      const spacings = ways.map(({ name, came, sent, numbers }) => {
        expect(numbers, name).toEqual(sorted(numbers))
        const first = sent[0]?.at ?? Number.NaN
        for (const [index, { at }] of came.entries()) {
          expect(at - first, `${name}: ${index}`).toBeGreaterThanOrEqual((((index + 1) * size - burst) * 8) / kbps)
        }
        const times = came.slice(20).map(({ at }) => at)
        const span = times.length >> 1
        return median(times.slice(span).map((at, index) => (at - (times[index] ?? Number.NaN)) / span))
      })
      // Without a burst these would wait for eight others and more.
      const burstMs = Math.max(...ways.map(({ transits }) => Math.min(...transits.slice(8, 16))))
      const spacing = { least: Math.min(...spacings) / frameMs, most: Math.max(...spacings) / frameMs }
      // Frames that a busy host takes late are closer to those after them.
      return Math.max(burstMs / (6 * frameMs), spacing.most / 1.1, 0.9 / spacing.least)
    }
    expect(await quickest(1, round)).toBeLessThan(1)
  })

  test('rate drops and counts frames that would have to wait too long', async () => {
    const { ways } = await wires(path, {
      filters: [{ type: 'rate', kbps: 2000, burst_kb: 16, queue_ms: 100 }],
    })
    for (const way of ways) {
      const start = performance.now()
      await way.put(100, (number) => numbered(number, 1000))
      // 16 in the burst and 25 that wait; one more for every 4 ms that pass meanwhile.
      const more = (performance.now() - start) / 4
      const { passed, dropped } = way.tally
      await way.holds(passed)
      expect(passed, way.name).toBeGreaterThanOrEqual(41)
      expect(passed, way.name).toBeLessThanOrEqual(42 + more)
      expect(dropped, way.name).toEqual({ rate: 100 - passed })
      expect(way.numbers.slice(0, 41), way.name).toEqual([...Array(41).keys()])
      expect(way.came.length, way.name).toBe(passed)
      expect(percentile(way.transits, 99), way.name).toBeLessThan(100 + lateMs)
    }
  })

  test('rate counts copies too', async () => {
    const { toRemote } = await wires(path, {
      filters: [
        { type: 'duplicate', percent: 100 },
        { type: 'rate', kbps: 2000, burst_kb: 16, queue_ms: 0 },
      ],
    })
    const start = performance.now()
    await toRemote.put(100, (number) => numbered(number, 1000))
    expect(toRemote.tally.passed).toBeGreaterThanOrEqual(16)
    expect(toRemote.tally.passed).toBeLessThanOrEqual(18 + (performance.now() - start) / 4)
  })

  test('rate keeps the order where frames hardly wait', async () => {
    const { ways } = await wires(path, {
      filters: [{ type: 'rate', kbps: 30_000, burst_kb: 1, queue_ms: 100 }],
    })
    for (const way of ways) {
      // Some of them find room in the burst while others of the millisecond before wait still.
      await way.stream(4 * some, 40)
      await way.holds(4 * some)
      expect(overtakings(way.numbers), way.name).toBe(0)
    }
  })

  test('a changed delay applies at once; waiting frames keep their time, and are not overtaken', async () => {
    const { ways, impair } = await wires(path, {})
    for (const way of ways) {
      const steps = [60, 20, 0, 40]
      for (const ms of steps) {
        await impair({ filters: ms === 0 ? [] : [delay(ms)] })
        await way.stream(240, 8)
        // Time for the last of the long delays to end, so that the others show.
        if (ms === 0) await way.stream(400, 8)
      }
      await way.holds(1360)
      const { name, numbers, transits } = way
      expect(numbers, name).toEqual(sorted(numbers))
      expect(Math.min(...transits.slice(0, 240)), name).toBeGreaterThanOrEqual(60)
      expect(percentile(transits.slice(0, 240), 99), name).toBeLessThan(60 + lateMs)
      expect(Math.min(...transits.slice(240, 480)), name).toBeGreaterThanOrEqual(20)
      expect(Math.min(...transits.slice(1020, 1120)), name).toBeLessThan(20)
      expect(Math.min(...transits.slice(1120)), name).toBeGreaterThanOrEqual(40)
    }
  })

  test('frames that find the queue full are counted, and others go on', async () => {
    const { toRemote, fromRemote, outOfJoined, impair } = await wires(path, { filters: [delay(30_000)] })
    const capacity = 32 * 1024
    await toRemote.put(capacity + 500)
    expect(toRemote.tally).toMatchObject({ passed: capacity, dropped: { queue_full: 500 } })
    await outOfJoined.put(10)
    expect(outOfJoined.tally).toMatchObject({ passed: 10, dropped: {} })
    await impair({})
    // These would have to wait behind the others, not to overtake them.
    await toRemote.put(10)
    expect(toRemote.tally).toMatchObject({ passed: capacity, dropped: { queue_full: 510 } })
    await fromRemote.send(100)
    expect(fromRemote.numbers).toEqual([...Array(100).keys()])
    expect(toRemote.came).toEqual([])
  })

  test('frames of any length are delayed whole', async () => {
    const { ways } = await wires(path, { filters: [delay(20)] })
    const sizes = [64, 9000, 1514, 2048, 2049]
    for (const way of ways) {
      await expectDelay(way, 20, (number) => numbered(number, sizes[number % sizes.length]), 1)
      expect(way.came.every(({ frame }, index) => way.sent[index]?.frame.equals(frame))).toBe(true)
    }
  })
})
