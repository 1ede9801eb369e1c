import type { LabLink } from '../../../src/client/patchbay.ts'

/** The filters of a link in one form: parameters by the name of the filter. */
export type LinkFilters = LabLink['filters']
/** Which frames of a link are impaired; the members of a link. */
export type ImpairedDirection = 'filters' | 'filters_ab' | 'filters_ba'

/** A number of a filter that a slider sets. */
export interface Knob {
  readonly filter: 'delay' | 'packet_loss' | 'rate' | 'corrupt' | 'duplicate' | 'reorder'
  /** Position in the list of parameters. */
  readonly index: number
  readonly title: string
  readonly unit: string
  /** The end of the slider. A larger number can be typed, up to `most`. */
  readonly reach: number
  readonly most: number
}

const chance = { unit: '%', reach: 100, most: 100, index: 0 } as const
export const knobs: readonly Knob[] = [
  { filter: 'delay', index: 0, title: 'Delay', unit: 'ms', reach: 1000, most: 32767 },
  { filter: 'delay', index: 1, title: 'Jitter', unit: 'ms', reach: 500, most: 32767 },
  { filter: 'packet_loss', title: 'Loss', ...chance },
  { filter: 'rate', index: 0, title: 'Rate', unit: 'kbit/s', reach: 100_000, most: 100_000_000 },
  { filter: 'corrupt', title: 'Corrupt', ...chance },
  { filter: 'duplicate', title: 'Duplicate', ...chance },
  { filter: 'reorder', title: 'Reorder', ...chance },
]

/** Well-known kinds of lines, for both directions. Typical values, rounded. */
export const presets: readonly { readonly title: string; readonly filters: LinkFilters }[] = [
  { title: 'None', filters: {} },
  { title: 'DSL', filters: { delay: [15, 3], rate: [16_000] } },
  { title: '4G', filters: { delay: [45, 15], packet_loss: [0.5], rate: [20_000] } },
  { title: 'Satellite', filters: { delay: [300, 10], packet_loss: [0.5], rate: [10_000] } },
  { title: 'Bad Wi-Fi', filters: { delay: [8, 20], packet_loss: [5], reorder: [3] } },
]

/** The number of a knob; 0: the filter is off. */
export function numberOf(filters: LinkFilters, { filter, index }: Knob): number {
  const value = (filters[filter] as readonly number[] | undefined)?.[index]
  return value ?? 0
}

/** Why a number cannot be set, in a sentence; empty: it can. */
export const numberFault = ({ title, unit, most }: Knob, given: number): string =>
  given >= 0 && given <= most ? '' : `${title}: expected 0 to ${most.toLocaleString('en')} ${unit}.`

/** The filters with a knob at a number. A filter whose numbers are all 0 is left out; the other numbers stay. */
export function withValue(filters: LinkFilters, { filter, index, most }: Knob, given: number): LinkFilters {
  const value = Math.min(most, Math.max(0, Number.isFinite(given) ? given : 0))
  const list = [...((filters[filter] as readonly number[] | undefined) ?? [])]
  while (list.length < index) list.push(0)
  list[index] = value
  const { [filter]: _, ...others } = filters
  return list.every((it) => it === 0) ? others : { ...others, [filter]: list }
}

/** The position of a number on a slider of 0 to 100: the first half of the slider has the small numbers. */
export const sliderAt = (value: number, { reach }: Knob): number => 100 * Math.cbrt(Math.min(value, reach) / reach)
export function valueAt(slider: number, { reach }: Knob): number {
  const value = reach * (slider / 100) ** 3
  const step = value < 1 ? 0.1 : value < 100 ? 1 : 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1)
  // 3 * 0.1 is more than 0.3.
  return Number((Math.round(value / step) * step).toPrecision(6))
}

/** The next number, or the one before, when a key moves the slider. Neighbouring positions of the slider may have the same small number. */
export function steppedBy(value: number, way: 1 | -1, knob: Knob): number {
  let slider = sliderAt(value, knob)
  while (slider > 0 || way > 0) {
    slider += way
    if (slider >= 100) return Math.max(value, knob.reach)
    const next = valueAt(Math.max(0, slider), knob)
    if (next !== value) return next
  }
  return 0
}

/** The impairment of a link in a few words for the map, such as `100 ms · 1 %`; empty: none. */
export function shortImpairment({ filters, filters_ab, filters_ba }: Pick<LabLink, ImpairedDirection>): string {
  const words = [filters, filters_ab, filters_ba].map((it) => wordsOf(it))
  const [both = '', ab = '', ba = ''] = words
  return [both, ab && `→ ${ab}`, ba && `← ${ba}`].filter((it) => it !== '').join('  ')
}

function wordsOf(filters: LinkFilters): string {
  // Most links have none, and there are thousands.
  if (Object.keys(filters).length === 0) return ''
  const first = (name: keyof LinkFilters) => (filters[name] as readonly unknown[] | undefined)?.[0]
  const number = (name: keyof LinkFilters, unit: string) => {
    const value = first(name)
    return typeof value === 'number' && value !== 0 ? [`${value} ${unit}`] : []
  }
  const rate = first('rate')
  return [
    ...number('delay', 'ms'),
    ...number('packet_loss', '%'),
    ...(typeof rate === 'number' && rate !== 0 ? [rateText(rate * 1000)] : []),
    ...(['frequency_drop', 'corrupt', 'duplicate', 'reorder', 'bpf'] as const).flatMap((name) => {
      const value = first(name)
      return value === undefined || value === 0 || value === '' ? [] : [name.replace('_', ' ')]
    }),
  ].join(' · ')
}

/** A rate in bits per second, in a unit that people read. */
export function rateText(bits: number): string {
  if (bits >= 1e9) return `${short(bits / 1e9)} Gbit/s`
  if (bits >= 1e6) return `${short(bits / 1e6)} Mbit/s`
  if (bits >= 1e3) return `${short(bits / 1e3)} kbit/s`
  return `${short(bits)} bit/s`
}

const short = (value: number): string => (value >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(2))))
