import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { SharedTimer } from '../../../../src/lib/async/shared-timer.ts'

beforeEach(() => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
})

/** A timer of 5 s, what it keeps, and which of the waits it has ended. */
function timer() {
  const kept: Promise<unknown>[] = []
  const shared = new SharedTimer(5000, (work) => void kept.push(work))
  const ended: string[] = []
  return {
    kept,
    ended,
    wait(name: string) {
      const { fired, cancel } = shared.wait()
      void fired.then(() => ended.push(name))
      return cancel
    },
  }
}

test('one timer ends all waits that have begun before it fires, and the next wait makes another', async () => {
  const { kept, ended, wait } = timer()
  wait('first')
  await vi.advanceTimersByTimeAsync(4000)
  wait('second')
  expect(vi.getTimerCount()).toBe(1)
  await vi.advanceTimersByTimeAsync(999)
  expect(ended).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect([ended, vi.getTimerCount()]).toEqual([['first', 'second'], 0])
  wait('third')
  await vi.advanceTimersByTimeAsync(5000)
  expect(ended).toEqual(['first', 'second', 'third'])
  await Promise.all(kept)
  expect(kept).toHaveLength(2)
})

test('a wait that was cancelled does not end', async () => {
  const { ended, wait } = timer()
  const cancel = wait('cancelled')
  wait('other')
  cancel()
  await vi.advanceTimersByTimeAsync(5000)
  expect(ended).toEqual(['other'])
})

test('a timer that was lost with its request is made again', async () => {
  const { ended, wait } = timer()
  wait('first')
  vi.clearAllTimers()
  await vi.advanceTimersByTimeAsync(5999)
  wait('soon')
  expect(vi.getTimerCount()).toBe(0)
  await vi.advanceTimersByTimeAsync(2)
  wait('later')
  await vi.advanceTimersByTimeAsync(5000)
  expect(ended).toEqual(['first', 'soon', 'later'])
})
