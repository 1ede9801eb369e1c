import { expect, test, vi } from 'vitest'
import { abortable, aborted, onAbort, untilAborted } from '../../../../src/lib/async/abort.ts'
import { mapLimit } from '../../../../src/lib/async/map-limit.ts'
import { pause } from '../../../../src/lib/async/pause.ts'
import { relay } from '../../../../src/lib/async/relay.ts'
import { SerialQueue } from '../../../../src/lib/async/serial-queue.ts'
import { Slots } from '../../../../src/lib/async/slots.ts'
import { withTimeout } from '../../../../src/lib/async/timeout.ts'

const never = new Promise<never>(() => {})

test('work that ends in time gives its result or its error', async () => {
  expect(await withTimeout(Promise.resolve('done'), 10_000, () => 'late')).toBe('done')
  await expect(withTimeout(Promise.reject(new Error('broken')), 10_000, () => 'late')).rejects.toThrow('broken')
})

test('late work is the value, or the error, of `late`', async () => {
  expect(await withTimeout(never, 1, () => 'late')).toBe('late')
  const late = () => {
    throw new Error('too late')
  }
  await expect(withTimeout(never, 1, late)).rejects.toThrow('too late')
})

test('an abort is reported once, immediately when it has happened, and not after the listener was removed', async () => {
  const over = new AbortController()
  const told: string[] = []
  onAbort(over.signal, () => told.push('first'))
  onAbort(over.signal, () => told.push('forgotten'))()
  over.abort(new Error('enough'))
  onAbort(over.signal, () => told.push('afterwards'))
  onAbort(undefined, () => told.push('never'))
  await aborted(over.signal)
  expect(told).toEqual(['first', 'afterwards'])
  await expect(abortable(never, over.signal)).rejects.toThrow('enough')
  expect(await abortable(Promise.resolve(1), undefined)).toBe(1)
  expect(await untilAborted(Promise.resolve(1), over.signal)).toBeUndefined()
  await expect(untilAborted(Promise.reject(new Error('broken')), new AbortController().signal)).rejects.toThrow(
    'broken',
  )
})

test('many waits on a signal share one listener, which is removed with the last of them', async () => {
  const { signal } = new AbortController()
  const [add, remove] = [vi.spyOn(signal, 'addEventListener'), vi.spyOn(signal, 'removeEventListener')]
  let end = () => {}
  const work = new Promise<void>((resolve) => {
    end = resolve
  })
  const wake: (() => void)[] = []
  const waits = Array.from({ length: 20 }, () => [
    abortable(work, signal),
    untilAborted(work, signal),
    pause(3_600_000, signal, (it) => wake.push(it)),
  ]).flat()
  const forget = onAbort(signal, () => {})
  expect(add).toHaveBeenCalledTimes(1)
  end()
  for (const it of wake) it()
  await Promise.all(waits)
  // What they do after their ends is done then.
  await new Promise(setImmediate)
  expect(remove).not.toHaveBeenCalled()
  forget()
  expect(remove).toHaveBeenCalledTimes(1)
  onAbort(signal, () => {})
  expect(add).toHaveBeenCalledTimes(2)
})

test('all waits on a signal end with it, except those that another wait has cancelled', async () => {
  const over = new AbortController()
  const told: string[] = []
  onAbort(over.signal, () => {
    told.push('first')
    forget()
  })
  const forget = onAbort(over.signal, () => told.push('cancelled'))
  const waits = Array.from({ length: 20 }, () => untilAborted(never, over.signal))
  onAbort(over.signal, () => told.push('last'))
  over.abort()
  expect(await Promise.all(waits)).toEqual(waits.map(() => undefined))
  expect(told).toEqual(['first', 'last'])
})

test('a queue runs one after the other, and goes on after a failure', async () => {
  const queue = new SerialQueue()
  const order: number[] = []
  const first = queue.run(async () => {
    await Promise.resolve()
    order.push(1)
    throw new Error('broken')
  })
  const second = queue.run(() => order.push(2))
  await expect(first).rejects.toThrow('broken')
  expect(await second).toBe(2)
  await queue.idle()
  expect(order).toEqual([1, 2])
})

test('as many operations run as there are slots, and a failed one releases its slot', async () => {
  const slots = new Slots(2)
  const begun: number[] = []
  const ends: (() => void)[] = []
  const results = [1, 2, 3, 4].map((number) =>
    slots.run(async () => {
      begun.push(number)
      await new Promise<void>((resolve) => ends.push(resolve))
      if (number === 1) throw new Error('broken')
      return number
    }),
  )
  expect(begun).toEqual([1, 2])
  ends[0]?.()
  await expect(results[0]).rejects.toThrow('broken')
  expect(begun).toEqual([1, 2, 3])
  ends[1]?.()
  expect(await results[1]).toBe(2)
  for (const end of ends) end()
  ends[3]?.()
  expect(await Promise.all(results.slice(2))).toEqual([3, 4])
})

test('no more operations than the limit run at a time, and results keep their order', async () => {
  let running = 0
  let most = 0
  const results = await mapLimit(
    [5, 4, 3, 2, 1],
    async (item) => {
      running += 1
      most = Math.max(most, running)
      await Promise.resolve()
      running -= 1
      return item * 10
    },
    2,
  )
  expect(results).toEqual([50, 40, 30, 20, 10])
  expect(most).toBe(2)
})

const bytes = (...pieces: number[][]): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new Uint8Array(piece))
      controller.close()
    },
  })

const silent = (cancelled: (reason: unknown) => void): ReadableStream<Uint8Array> =>
  new ReadableStream({ cancel: cancelled })

test('a relayed stream has the same pieces, and its end is reported once', async () => {
  let ends = 0
  const seen: Uint8Array[] = []
  const onPiece = (piece: Uint8Array) => void seen.push(piece)
  const onEnd = () => {
    ends += 1
  }
  const relayed = relay(bytes([1, 2], [3]), { onPiece, onEnd })
  expect([...new Uint8Array(await new Response(relayed).arrayBuffer())]).toEqual([1, 2, 3])
  expect(seen).toHaveLength(2)
  expect(ends).toBe(1)
})

test('a relayed stream ends with its signal, when it is silent or too long, and when its reader goes', async () => {
  const over = new AbortController()
  const cancelled: unknown[] = []
  let ends = 0
  const onEnd = () => {
    ends += 1
  }
  const read = (stream: ReadableStream<Uint8Array>) => new Response(stream).arrayBuffer()
  const aborting = read(
    relay(
      silent((reason) => cancelled.push(reason)),
      { signal: over.signal, onEnd },
    ),
  )
  over.abort(new Error('enough'))
  await expect(aborting).rejects.toThrow('enough')
  await expect(
    read(
      relay(
        silent((reason) => cancelled.push(reason)),
        { idleMs: 1, onEnd },
      ),
    ),
  ).rejects.toThrow('1 ms')
  await expect(read(relay(bytes([1, 2, 3]), { maxBytes: 2, onEnd }))).rejects.toThrow('more than 2 bytes')
  await relay(
    silent((reason) => cancelled.push(reason)),
    { onEnd },
  ).cancel('gone')
  expect(ends).toBe(4)
  expect(cancelled).toHaveLength(3)
})
