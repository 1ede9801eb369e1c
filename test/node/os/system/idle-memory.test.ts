import { expect, onTestFinished, test, vi } from 'vitest'
import { IdleMemory } from '../../../../runtime/node/os/system/idle-memory.ts'

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
