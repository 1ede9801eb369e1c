import { expect, test } from 'vitest'
import { HeldOutput } from '../../../runtime/browser/console/held-output.ts'

/** An output whose terminal takes nothing until the test says so, and whose timer ends when the test says so. */
function output() {
  const given: string[] = []
  const taken: (() => void)[] = []
  const timers = new Set<() => void>()
  const held = new HeldOutput(
    (data, done) => {
      given.push(new TextDecoder().decode(data.subarray(0, 10)))
      taken.push(done)
    },
    (work) => {
      timers.add(work)
      return () => timers.delete(work)
    },
  )
  const write = (text: string) => held.write(new TextEncoder().encode(text))
  return { held, given, taken, timers, write }
}

test('a terminal that is shown takes output at once', async () => {
  const { given, timers, write } = output()
  await write('a')
  await write('b')
  expect([given, timers.size]).toEqual([['a', 'b'], 0])
})

test('a hidden terminal takes the waiting output in one piece, and the rest when it is shown', async () => {
  const { held, given, timers, write } = output()
  held.setShown(false)
  await write('a')
  await write('b')
  expect([given, timers.size]).toEqual([[], 1])
  for (const end of timers) end()
  expect([given, timers.size]).toEqual([['a', 'b'], 0])
  await write('c')
  held.setShown(true)
  expect([given, timers.size]).toEqual([['a', 'b', 'c'], 0])
})

test('a reader waits while much output waits for the terminal, shown or hidden', async () => {
  for (const isShown of [true, false]) {
    const { held, given, taken, timers, write } = output()
    held.setShown(isShown)
    await write('x'.repeat(200_000))
    let hasRoom = false
    const second = write('y'.repeat(100_000)).then(() => {
      hasRoom = true
    })
    for (const end of timers) end()
    expect(given).toEqual(['x'.repeat(10), 'y'.repeat(10)])
    taken[0]?.()
    await Promise.resolve()
    expect(hasRoom).toBe(false)
    taken[1]?.()
    await second
  }
})

test('nothing remains of a closed terminal', async () => {
  const { held, given, timers, write } = output()
  held.setShown(false)
  await write('a')
  held.close()
  held.flush()
  expect([given, timers.size]).toEqual([[], 0])
})
