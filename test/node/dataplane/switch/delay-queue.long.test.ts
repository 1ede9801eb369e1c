import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Block, DelayQueue } from '../../../../runtime/node/dataplane/switch/core/delay-queue.ts'

const tickMs = 0.25
/** One turn of the wheel, ms. */
const turnMs = 2048
const capacity = 32 * 1024

interface Waiting {
  readonly number: number
  readonly due: number
  readonly length: number
}

/** A queue of frames that are filled with their number, and what it should hold. */
class Tried {
  readonly queue = new DelayQueue((bytes) => ({ bytes: new Uint8Array(bytes), address: 0 }))
  waiting: Waiting[] = []
  #count = 0

  put(due: number, length: number, now: number): boolean {
    const number = this.#count++
    // Somewhere in other bytes, as it is in a receive buffer.
    const bytes = new Uint8Array(length + 7).fill(0xff)
    bytes.fill(number, 3, 3 + length)
    const isTaken = this.queue.put(bytes, 3, length, due, now, number, number + 1)
    if (isTaken) this.waiting.push({ number, due, length })
    return isTaken
  }

  /** Takes what is due; the frames as they are when the queue is told to release them. */
  take(now: number): Waiting[] {
    const taken: Waiting[] = []
    let held: { number: number; block: Block; place: number; length: number }[] = []
    this.queue.takeDue(
      now,
      (number, row, block, place, length) => {
        expect(row).toBe(number + 1)
        held.push({ number, block, place, length })
      },
      () => {
        for (const { number, block, place, length } of held) {
          const isWhole = block.bytes.subarray(place, place + length).every((byte) => byte === (number & 0xff))
          expect(isWhole, `frame ${number}`).toBe(true)
          const due = this.waiting.find((frame) => frame.number === number)?.due ?? Number.NaN
          taken.push({ number, due, length })
        }
        held = []
      },
    )
    expect(held, 'frames that were never released').toEqual([])
    return taken
  }

  /** What has to be taken: all that is due, by tick and then in the order in which it came. */
  expect(now: number): Waiting[] {
    const tick = ({ due }: Waiting) => Math.ceil(due / tickMs)
    const due = this.waiting.filter((frame) => frame.due <= now).toSorted((a, b) => tick(a) - tick(b))
    this.waiting = this.waiting.filter((frame) => frame.due > now)
    return due
  }
}

const lengths = fc.oneof(fc.integer({ min: 1, max: 1600 }), fc.constantFrom(95, 96, 97, 2047, 2048, 2049, 9000, 65_000))
/** Within a tick, within a turn of the wheel, and beyond several. */
const waits = fc.oneof(
  ...[1, 40, turnMs, 32_767].map((max) => fc.double({ min: 0.001, max, noNaN: true, noDefaultInfinity: true })),
  fc.constantFrom(tickMs, turnMs, turnMs + tickMs, 2 * turnMs),
)
const puts = fc.record({ wait: waits, length: lengths })

test('all frames leave unchanged, in order, and not before they are due', () => {
  const steps = fc.array(fc.record({ puts: fc.array(puts, { maxLength: 8 }), wait: waits }), { maxLength: 40 })
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1e9, noNaN: true }), steps, (start, steps) => {
      const tried = new Tried()
      let now = start
      for (const step of steps) {
        for (const { wait, length } of step.puts) expect(tried.put(now + wait, length, now)).toBe(true)
        expect(tried.queue.size).toBe(tried.waiting.length)
        now += step.wait
        const taken = tried.take(now)
        expect(taken).toEqual(tried.expect(now).map((frame) => expect.objectContaining({ number: frame.number })))
        expect(tried.queue.size).toBe(tried.waiting.length)
        // Otherwise whoever waits for it would not sleep.
        expect(tried.queue.nextDue).toBeGreaterThan(now)
      }
    }),
    { numRuns: 100 },
  )
})

test('a caller that polls at nextDue gets every frame less than a tick after it is due', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1e9, noNaN: true }), fc.array(puts, { maxLength: 60 }), (start, puts) => {
      const tried = new Tried()
      for (const { wait, length } of puts) tried.put(start + wait, length, start)
      let looks = 0
      for (let now = start; tried.queue.size > 0; looks++) {
        expect(tried.queue.nextDue).toBeGreaterThan(now)
        now = tried.queue.nextDue
        for (const { due } of tried.take(now)) {
          expect(due).toBeLessThanOrEqual(now)
          expect(now - due).toBeLessThan(tickMs)
        }
      }
      expect(tried.queue.nextDue).toBe(Number.POSITIVE_INFINITY)
      // Once a frame, and once a turn for those that are due in a later one.
      expect(looks).toBeLessThanOrEqual(puts.length * (1 + Math.ceil(32_768 / turnMs)))
    }),
    { numRuns: 100 },
  )
})

test('a frame that comes when another is due does not leave before it', () => {
  const tried = new Tried()
  tried.put(1000.3, 60, 1000)
  tried.put(1000.4, 60, 1000)
  expect(tried.take(1000.29)).toEqual([])
  // Both have the same tick, which is not over.
  expect(tried.take(1000.35)).toMatchObject([{ number: 0 }])
  expect(tried.queue.nextDue).toBe(1000.5)
  expect(tried.take(1000.4)).toMatchObject([{ number: 1 }])
})

test('frames of several turns of the wheel leave in order, however late the queue is polled', () => {
  const tried = new Tried()
  // The later ones come to the same places of the wheel, or to earlier ones.
  for (const due of [3 * turnMs + 5, 2 * turnMs + 5, turnMs + 5, 5, turnMs + 1, 2 * turnMs + 9]) tried.put(due, 60, 0)
  expect(tried.take(10 * turnMs).map(({ number }) => number)).toEqual([3, 4, 2, 1, 5, 0])
})

test('frames of an end that is gone are dropped, and their room is free; others leave as before', () => {
  const tried = new Tried()
  const lengths = [60, 9000, 2049, 1514]
  for (let number = 0; number < 400; number++) tried.put(1 + (number % 7) * turnMs, lengths[number % 4] ?? 0, 0)
  const isGone = (number: number) => number % 3 === 0
  for (let number = 0; number < 400; number++) if (isGone(number)) tried.queue.forget(number)
  tried.waiting = tried.waiting.filter(({ number }) => !isGone(number))
  expect(tried.queue.size).toBe(tried.waiting.length)
  const taken = tried.take(8 * turnMs)
  expect(taken).toEqual(tried.expect(8 * turnMs).map(({ number }) => expect.objectContaining({ number })))

  const one = new DelayQueue((bytes) => ({ bytes: new Uint8Array(bytes), address: 0 }))
  const put = (end: number) => one.put(new Uint8Array(60), 0, 60, 30_000, 0, end, 1)
  for (let number = 0; number < capacity; number++) expect(put(1)).toBe(true)
  expect(put(2)).toBe(false)
  one.forget(1)
  expect([one.size, one.nextDue, put(2), one.nextDue]).toEqual([0, Number.POSITIVE_INFINITY, true, expect.any(Number)])
  expect(one.nextDue).toBeLessThan(30_001)
})

test('frames without a delay leave at the next poll', () => {
  const tried = new Tried()
  tried.put(1000, 60, 1000)
  tried.put(990, 60, 1000)
  expect(tried.take(1000.01).map(({ number }) => number)).toEqual([0, 1])
})

test('the number of frames is limited; there is room again when some have left', () => {
  const queue = new DelayQueue((bytes) => ({ bytes: new Uint8Array(bytes), address: 0 }))
  const bytes = new Uint8Array(60)
  const put = (due: number) => queue.put(bytes, 0, bytes.length, due, 0, 1, 1)
  for (let frame = 0; frame < capacity; frame++) expect(put(frame < 100 ? 1 : 2)).toBe(true)
  expect([put(1), put(2)]).toEqual([false, false])
  let taken = 0
  const count = () => {
    taken += 1
  }
  queue.takeDue(1, count, () => {})
  expect(taken).toBe(100)
  for (let frame = 0; frame < 100; frame++) expect(put(2)).toBe(true)
  expect(put(2)).toBe(false)
  queue.takeDue(2, count, () => {})
  expect([taken, queue.size]).toEqual([capacity + 100, 0])
})

test('long frames have a separate limit in bytes, which does not apply to short ones', () => {
  const queue = new DelayQueue((bytes) => ({ bytes: new Uint8Array(bytes), address: 0 }))
  const bytes = new Uint8Array(64 * 1024)
  const put = (length: number) => queue.put(bytes, 0, length, 1, 0, 1, 1)
  for (let frame = 0; frame < 512; frame++) expect(put(bytes.length)).toBe(true)
  expect([put(bytes.length), put(2049), put(2048)]).toEqual([false, false, true])
  queue.takeDue(
    1,
    () => {},
    () => {},
  )
  for (let frame = 0; frame < 512; frame++) expect(put(bytes.length)).toBe(true)
  expect(put(2049)).toBe(false)
})
