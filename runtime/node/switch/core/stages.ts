import type { Filter } from '../../keeper-protocol/protocol.ts'
import { bpfMatcher } from './bpf-matcher.ts'
import { at, type Counters } from './counters.ts'

/**
 * What a frame meets on its way: gets it with the time (performance.now(), ms) at which it would leave, and gives back when it
 * leaves. Negative: it is dropped, and counted.
 */
export type Stage = (bytes: Uint8Array, offset: number, length: number, due: number) => number

/** Set by a stage that wants the frame to leave more than once, or out of order. */
export interface Departure {
  /** They stay together: what becomes of one becomes of all, and each counts. */
  copies: number
  mayOvertake: boolean
}

const dropped = -1

/** The stage of a filter for one direction of a row; each has its own state. */
export function makeStage(
  filter: Filter,
  row: number,
  counters: Counters,
  random: () => number,
  departure: Departure,
): Stage {
  const drop = (place: number): number => {
    counters.add(row, place, departure.copies)
    return dropped
  }
  switch (filter.type) {
    case 'suspend':
      return () => drop(at.suspended)
    case 'frequency_drop': {
      if (filter.every < 0) return () => drop(at.frequencyDrop)
      let count = 0
      return (_bytes, _offset, _length, due) => {
        count += 1
        if (count < filter.every) return due
        count = 0
        return drop(at.frequencyDrop)
      }
    }
    case 'packet_loss': {
      const chance = filter.percent / 100
      return (_bytes, _offset, _length, due) => (random() < chance ? drop(at.packetLoss) : due)
    }
    case 'bpf': {
      const matchers = filter.programs.map(bpfMatcher)
      return (bytes, offset, length, due) => {
        for (const matches of matchers) if (matches(bytes, offset, length)) return drop(at.bpf)
        return due
      }
    }
    case 'corrupt': {
      const chance = filter.percent / 100
      return (bytes, offset, length, due) => {
        if (random() < chance) {
          const place = offset + Math.floor(random() * length)
          // A value other than 0, so that the byte does change.
          bytes[place] = (bytes[place] as number) ^ (1 + Math.floor(random() * 255))
          counters.add(row, at.corrupted, departure.copies)
        }
        return due
      }
    }
    case 'duplicate': {
      const chance = filter.percent / 100
      return (_bytes, _offset, _length, due) => {
        if (random() < chance) {
          counters.add(row, at.duplicated, departure.copies)
          departure.copies *= 2
        }
        return due
      }
    }
    case 'reorder': {
      const chance = filter.percent / 100
      return (_bytes, _offset, _length, due) => {
        if (random() >= chance) return due
        departure.mayOvertake = true
        return due + filter.ms
      }
    }
    case 'delay': {
      const { ms, jitter_ms } = filter
      if (jitter_ms === 0) return (_bytes, _offset, _length, due) => due + ms
      return (_bytes, _offset, _length, due) => {
        departure.mayOvertake = true
        return due + Math.max(0, ms + (random() * 2 - 1) * jitter_ms)
      }
    }
    case 'rate': {
      // The bucket as a schedule: when the line has sent all it took, at most a burst in the past. 1 kbit/s is 1 bit a ms.
      const burstMs = (filter.burst_kb * 8192) / filter.kbps
      let busyUntil = 0
      return (_bytes, _offset, length, due) => {
        const end = Math.max(busyUntil, due - burstMs) + (departure.copies * length * 8) / filter.kbps
        if (end - due > filter.queue_ms) return drop(at.rate)
        busyUntil = end
        return Math.max(due, end)
      }
    }
  }
}

/** A small generator of numbers from 0 to 1 (xoshiro128**, Blackman and Vigna), seeded from the system. */
export function randomSource(): () => number {
  const state = crypto.getRandomValues(new Uint32Array(4))
  let [a, b, c, d] = state as unknown as [number, number, number, number]
  return () => {
    const scaled = Math.imul(b, 5)
    const result = Math.imul((scaled << 7) | (scaled >>> 25), 9)
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << 11) | (d >>> 21)
    return (result >>> 0) / 4294967296
  }
}
