import { expect, onTestFinished, test, vi } from 'vitest'
import { IdleMemory } from '../../../../runtime/node/os/system/idle-memory.ts'
import { libcIfAny } from '../../../../runtime/node/os/system/libc.ts'
import { provided, testWith } from '../../../support/test-with.ts'

test('memory is given back after the start and after work, once, and never while requests come', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  let collections = 0
  const memory = new IdleMemory(() => {
    collections += 1
  })
  onTestFinished(() => memory.close())
  vi.advanceTimersByTime(60_000)
  expect(collections, 'before the service is ready').toBe(0)
  memory.recordStart()
  vi.advanceTimersByTime(60_000)
  expect(collections).toBe(1)
  for (let count = 0; count < 100; count++) {
    memory.recordRequest()
    vi.advanceTimersByTime(1000)
  }
  expect(collections).toBe(1)
  vi.advanceTimersByTime(60_000)
  expect(collections).toBe(2)
  memory.recordRequest()
  vi.advanceTimersByTime(60_000)
  expect(collections).toBe(2)
})

test('the collector of V8 can be called', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const memory = new IdleMemory()
  onTestFinished(() => memory.close())
  memory.recordStart()
  vi.advanceTimersByTime(10_000)
  expect('gc' in globalThis).toBe(false)
})

testWith(provided(libcIfAny()?.malloc_trim !== undefined, 'libc is not that of GNU'))(
  'what libc has free between memory in use goes back to the system',
  () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const memory = new IdleMemory()
    onTestFinished(() => memory.close())
    // Less than the 128 KiB from which glibc maps memory, and unmaps it when it is free.
    const fill = () => Buffer.alloc(100_000, 1)
    const garbage = Array.from({ length: 1000 }, fill)
    const inUse = fill()
    const before = process.memoryUsage.rss()
    garbage.length = 0
    memory.recordStart()
    vi.advanceTimersByTime(10_000)
    expect(before - process.memoryUsage.rss()).toBeGreaterThan(50_000_000)
    expect(inUse[0]).toBe(1)
  },
)
