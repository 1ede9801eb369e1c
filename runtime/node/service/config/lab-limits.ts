import { getHeapStatistics } from 'node:v8'
import { type LabLimits, mebibyte } from '../../../../src/labs/lab/lab-limits.ts'
import type { Config } from './config.ts'

/** Open labs take at most this part of the heap of V8, which has fewer bytes on a small host. */
const heapPart = 1 / 6

/** How much clients can store, by the settings in force. */
export const labLimitsOf = (config: Config) => (): LabLimits => {
  const { limits } = config.current
  const most = Math.floor((getHeapStatistics().heap_size_limit * heapPart) / mebibyte)
  return { ...limits, open_labs_mb: Math.min(limits.open_labs_mb, most) }
}
