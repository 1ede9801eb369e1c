import { expect, test } from 'vitest'
import {
  knobs,
  numberFault,
  numberOf,
  rateText,
  shortImpairment,
  sliderAt,
  steppedBy,
  valueAt,
  withValue,
} from '../../../runtime/browser/links/impairment.ts'
import { verdictOf } from '../../../runtime/browser/links/verdict.ts'

const knob = (title: string) => {
  const found = knobs.find((it) => it.title === title)
  if (found === undefined) throw new Error(`no knob ${title}`)
  return found
}

test('a control changes only its own number', () => {
  const filters = { delay: [20, 5], bpf: ['icmp'] }
  expect(withValue(filters, knob('Delay'), 100)).toEqual({ delay: [100, 5], bpf: ['icmp'] })
  expect(withValue({}, knob('Jitter'), 7)).toEqual({ delay: [0, 7] })
  expect(withValue(filters, knob('Loss'), 150)).toEqual({ ...filters, packet_loss: [100] })
})

test('a filter whose numbers are all 0 is gone', () => {
  expect(withValue({ delay: [20] }, knob('Delay'), 0)).toEqual({})
  expect(withValue({ delay: [20, 5] }, knob('Delay'), 0)).toEqual({ delay: [0, 5] })
  expect(numberOf({}, knob('Rate'))).toBe(0)
})

test.for(knobs.map((it) => [it.title, it] as const))('the slider of %s finds its numbers again', ([, it]) => {
  expect([valueAt(0, it), valueAt(100, it)]).toEqual([0, it.reach])
  for (const value of [0, 1, 2, 10, 50, 90]) expect(valueAt(sliderAt(value, it), it)).toBeCloseTo(value, 5)
})

test.for(knobs.map((it) => [it.title, it] as const))(
  'keys move the slider of %s from each number, both ways',
  ([, it]) => {
    for (const [way, from, to] of [
      [1, 0, it.reach],
      [-1, it.reach, 0],
    ] as const) {
      let value: number = from
      for (let keys = 0; value !== to; keys++) {
        const next = steppedBy(value, way, it)
        expect((next - value) * way).toBeGreaterThan(0)
        expect(String(next).length).toBeLessThan(7)
        expect(keys).toBeLessThan(200)
        value = next
      }
      expect(steppedBy(to, way, it)).toBe(to)
    }
  },
)

test('the map says in a few words how a link is impaired', () => {
  const none = { filters: {}, filters_ab: {}, filters_ba: {} }
  expect(shortImpairment(none)).toBe('')
  expect(shortImpairment({ ...none, filters: { delay: [100], packet_loss: [1] } })).toBe('100 ms · 1 %')
  expect(shortImpairment({ ...none, filters_ab: { rate: [2000] }, filters_ba: { corrupt: [3] } })).toBe(
    '→ 2 Mbit/s  ← corrupt',
  )
  expect([rateText(0), rateText(1234), rateText(999_000_000)]).toEqual(['0 bit/s', '1.2 kbit/s', '999 Mbit/s'])
})

test('a verdict is a sentence, by the reason of the service where it has one', () => {
  expect(verdictOf({ verdict: 'ok', verdict_reason: null })).toEqual({
    grade: 'good',
    sentence: 'Frames pass in both directions.',
  })
  expect(verdictOf({ verdict: 'silent', verdict_reason: 'the guest has not opened its port' })).toEqual({
    grade: 'bad',
    sentence: 'The guest has not opened its port.',
  })
  expect(verdictOf({ verdict: null, verdict_reason: null }).grade).toBe('unknown')
})

test('a number that a link cannot have is refused with what would be right', () => {
  expect([numberFault(knob('Loss'), 100), numberFault(knob('Loss'), 150)]).toEqual(['', 'Loss: expected 0 to 100 %.'])
  expect(numberFault(knob('Delay'), -1)).toBe('Delay: expected 0 to 32,767 ms.')
})
