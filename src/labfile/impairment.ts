import { Check } from '@sinclair/typebox/value'
import { type FilterName, type Filters, filterRows } from '../model/schema/filters.ts'
import { expectation } from '../model/validation/validate.ts'
import type { Diagnostics } from './diagnostics.ts'
import type { Position } from './position.ts'
import { type Impairment, impairmentKeys } from './schema.ts'
import { amountOf, type Dimension, quantityText, rounded } from './units.ts'

/** Which key of the file is which parameter of which filter. */
const keys: Readonly<
  Record<keyof Impairment, { filter: FilterName; dimension?: Dimension; byDefault?: number; needs?: keyof Impairment }>
> = {
  drop_every: { filter: 'frequency_drop' },
  loss: { filter: 'packet_loss', dimension: 'share' },
  delay: { filter: 'delay', dimension: 'time' },
  jitter: { filter: 'delay', dimension: 'time', byDefault: 0, needs: 'delay' },
  corrupt: { filter: 'corrupt', dimension: 'share' },
  bpf: { filter: 'bpf' },
  bpf_link_type: { filter: 'bpf', needs: 'bpf' },
  rate: { filter: 'rate', dimension: 'rate' },
  burst: { filter: 'rate', dimension: 'size', byDefault: 16, needs: 'rate' },
  longest_wait: { filter: 'rate', dimension: 'time', byDefault: 100, needs: 'rate' },
  duplicate: { filter: 'duplicate', dimension: 'share' },
  reorder: { filter: 'reorder', dimension: 'share' },
  held: { filter: 'reorder', dimension: 'time', byDefault: 10, needs: 'reorder' },
}

/** The keys of a filter, in the order of its parameters. */
const parametersOf = (filter: FilterName) =>
  (Object.keys(keys) as (keyof Impairment)[]).filter((key) => keys[key].filter === filter)

const filterNames = Object.keys(filterRows) as FilterName[]

/** The impairment of a link: its plain keys, and those of one direction, each with the positions of its values. */
export interface GivenImpairment {
  readonly values: Impairment
  readonly positionOf: (key: keyof Impairment) => Position
  /** Whether the file has a value for it that cannot be read: it is reported already, and so not missed. */
  readonly hasFault?: (key: keyof Impairment) => boolean
}

/** The filters of one direction: a key of `own` replaces that of `plain`, 0 removes it. */
export function filtersOf(plain: GivenImpairment, own: GivenImpairment | undefined, diagnostics: Diagnostics): Filters {
  const values: Impairment = { ...plain.values, ...own?.values }
  const positionOf = (key: keyof Impairment) => (own !== undefined && key in own.values ? own : plain).positionOf(key)
  for (const key of impairmentKeys) {
    const { needs } = keys[key]
    if (needs === undefined || isOff(key, values) || !isOff(needs, values)) continue
    // A direction without the delay of the link has no use for its jitter, either.
    const isTakenAway = own !== undefined && needs in own.values && !(key in own.values)
    const isReported = plain.hasFault?.(needs) === true || own?.hasFault?.(needs) === true
    if (!isTakenAway && !isReported) diagnostics.add(positionOf(key), `${key} needs ${needs}`)
    delete values[key]
  }
  const filters: Record<string, unknown> = {}
  for (const name of filterNames) {
    const [first, ...others] = parametersOf(name)
    if (first === undefined || isOff(first, values)) continue
    const parameters: unknown[] = [amount(first, values)]
    others.forEach((key, index) => {
      if (values[key] === undefined || values[key] === 0) return
      for (let at = 1; at <= index; at++) parameters[at] ??= keys[others[at - 1] as keyof Impairment].byDefault
      parameters[index + 1] = amount(key, values)
    })
    const schema = filterRows[name].schema
    if (Check(schema, parameters)) filters[name] = parameters
    else diagnostics.add(positionOf(first), `expected ${rangeOf(name, first)}`)
  }
  return normalFilters(filters as Filters)
}

function isOff(key: keyof Impairment, values: Impairment): boolean {
  const value = values[key]
  return value === undefined || value === '' || amount(key, values) === 0
}

function amount(key: keyof Impairment, values: Impairment): unknown {
  const { dimension } = keys[key]
  const value = values[key]
  return dimension === undefined ? value : amountOf(dimension, value as string | 0)
}

/** What the model accepts, in the units of the file. */
function rangeOf(filter: FilterName, key: keyof Impairment): string {
  const { dimension } = keys[key]
  const items = filterRows[filter].schema.items as { minimum?: number; maximum?: number } | undefined
  if (dimension === undefined || items?.maximum === undefined) return expectation(filterRows[filter].schema)
  return `${parametersOf(filter).join(', ')} of at most ${quantityText(dimension, items.maximum)}`
}

/** Filters in the order of `filterRows`, without those that are off, and without parameters that have their defaults. */
export function normalFilters(filters: Filters): Filters {
  const normal: Record<string, unknown> = {}
  for (const name of filterNames) {
    const given = filters[name] as readonly (string | number)[] | undefined
    if (given === undefined || given[0] === 0 || given[0] === '') continue
    const parameters = given.map((it) => (typeof it === 'number' ? rounded(it) : it))
    const names = parametersOf(name)
    while (parameters.length > 1) {
      const key = names[parameters.length - 1]
      if (key !== undefined && parameters.at(-1) !== keys[key].byDefault) break
      parameters.pop()
    }
    normal[name] = parameters
  }
  return normal as Filters
}

/** The filters as keys of a lab file; `filters` are normal. */
export function impairmentOf(filters: Filters): Impairment {
  const found: Record<string, unknown> = {}
  for (const name of filterNames) {
    const parameters: readonly (string | number)[] = filters[name] ?? []
    parametersOf(name).forEach((key, index) => {
      const value = parameters[index]
      const { dimension, byDefault } = keys[key]
      if (value === undefined || (index > 0 && value === byDefault)) return
      found[key] = dimension === undefined ? value : quantityText(dimension, Number(value))
    })
  }
  return found as Impairment
}

/** The filters of a link in the model: `filters` for both directions, or those of each when they differ. */
export function filterMembers(
  filters_ab: Filters,
  filters_ba: Filters,
): { filters: Filters; filters_ab: Filters; filters_ba: Filters } {
  if (JSON.stringify(filters_ab) === JSON.stringify(filters_ba))
    return { filters: filters_ab, filters_ab: {}, filters_ba: {} }
  return { filters: {}, filters_ab, filters_ba }
}
