import { type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { badRequest } from '../../../../src/lib/errors/api-error.ts'
import type { FilterName } from '../../../../src/model/schema/filters.ts'
import { bpf } from './bpf.ts'
import { type FilterRow, row, type StageContext } from './row.ts'

const Percent = Type.Number({ minimum: 0, maximum: 100 })
const Milliseconds = Type.Number({ minimum: 0, maximum: 3_600_000 })

const defaultBurstKb = 16
const defaultQueueMs = 100
const defaultHoldMs = 10

/** Every filter, by its name in `src/model/schema/filters.ts`. */
export const filters = {
  /** Every n-th frame; -1: all. */
  frequency_drop: row({
    compiled: { every: Type.Integer({ minimum: -1 }) },
    compile: ([every]) => ({ every: Number(every) }),
    stage({ every }, { drop }) {
      let count = 0
      return (_bytes, _offset, _length, due) => {
        count += 1
        if (every >= 0 && count < every) return due
        count = 0
        return drop()
      }
    },
  }),
  packet_loss: byChance(({ drop }) => drop),
  delay: row({
    compiled: { ms: Milliseconds, jitter_ms: Milliseconds },
    compile: ([ms, jitter_ms = 0]) => ({ ms: Number(ms), jitter_ms: Number(jitter_ms) }),
    stage({ ms, jitter_ms }, { random, departure }) {
      if (jitter_ms === 0) return (_bytes, _offset, _length, due) => due + ms
      return (_bytes, _offset, _length, due) => {
        departure.mayOvertake = true
        return due + Math.max(0, ms + (random() * 2 - 1) * jitter_ms)
      }
    },
  }),
  corrupt: byChance(({ random, count }) => (bytes, offset, length, due) => {
    const index = offset + Math.floor(random() * length)
    // XOR with a value other than 0 always changes the byte.
    bytes[index] = (bytes[index] as number) ^ (1 + Math.floor(random() * 255))
    count()
    return due
  }),
  bpf,
  /** A token bucket; frames wait at most `queue_ms`. */
  rate: row({
    compiled: {
      kbps: Type.Number({ exclusiveMinimum: 0 }),
      burst_kb: Type.Number({ minimum: 0 }),
      queue_ms: Type.Number({ minimum: 0 }),
    },
    compile: ([kbps, burst_kb = defaultBurstKb, queue_ms = defaultQueueMs]) => ({
      kbps: Number(kbps),
      burst_kb: Number(burst_kb),
      queue_ms: Number(queue_ms),
    }),
    stage({ kbps, burst_kb, queue_ms }, { departure, drop }) {
      // The bucket as a time: when the line has sent all accepted frames, at most a burst in the past. 1 kbit/s is 1 bit per ms.
      const burstMs = (burst_kb * 8192) / kbps
      let busyUntil = 0
      return (_bytes, _offset, length, due) => {
        const end = Math.max(busyUntil, due - burstMs) + (departure.copies * length * 8) / kbps
        if (end - due > queue_ms) return drop()
        busyUntil = end
        return Math.max(due, end)
      }
    },
  }),
  duplicate: byChance(({ departure, count }) => (_bytes, _offset, _length, due) => {
    count()
    departure.copies *= 2
    return due
  }),
  /** Delays the chosen frames, so that later frames overtake them. */
  reorder: row({
    compiled: { percent: Percent, ms: Milliseconds },
    compile([percent, ms = defaultHoldMs]) {
      if (Number(percent) > 100) throw badRequest(`filters.reorder[0]: expected a number from 0 to 100, got ${percent}`)
      return { percent: Number(percent), ms: Number(ms) }
    },
    stage({ percent, ms }, { random, departure }) {
      const chance = percent / 100
      return (_bytes, _offset, _length, due) => {
        if (random() >= chance) return due
        departure.mayOvertake = true
        return due + ms
      }
    },
  }),
} as const satisfies Readonly<Record<FilterName, unknown>>

/** A filter that applies to a percentage of the frames, chosen at random. */
function byChance(stageOf: (context: StageContext) => ReturnType<FilterRow<TProperties>['stage']>) {
  return row({
    compiled: { percent: Percent },
    compile: ([percent]) => ({ percent: Number(percent) }),
    stage({ percent }, context) {
      const chance = percent / 100
      const chosen = stageOf(context)
      return (bytes, offset, length, due) => (context.random() < chance ? chosen(bytes, offset, length, due) : due)
    },
  })
}

/** A compiled filter in the keeper protocol. */
export type Filter = {
  [N in FilterName]: { type: N } & Static<TObject<(typeof filters)[N]['compiled']>>
}[FilterName]
export const Filter = Type.Unsafe<Filter>(
  Type.Union(
    Object.entries<FilterRow<TProperties>>(filters).map(
      ([name, { compiled }]): TSchema => Type.Object({ type: Type.Literal(name), ...compiled }),
    ),
  ),
)
