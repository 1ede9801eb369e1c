import { Check } from '@sinclair/typebox/value'
import type { LabLink } from '../../../src/client/patchbay.ts'
import { Diagnostics } from '../../../src/labfile/diagnostics.ts'
import { filterMembers, filtersOf, impairmentOf, normalFilters } from '../../../src/labfile/impairment.ts'
import { Impairment, impairmentKeys } from '../../../src/labfile/schema.ts'
import type { Filters } from '../../../src/model/schema/filters.ts'
import { expectation } from '../../../src/model/validation/validate.ts'
import { wrongArguments } from './exits.ts'

type Filtered = Pick<LabLink, 'filters' | 'filters_ab' | 'filters_ba'>

/** The filters of both directions of a link. */
const directionsOf = ({ filters, filters_ab, filters_ba }: Filtered) =>
  [filters_ab, filters_ba].map((own) => normalFilters({ ...filters, ...own } as Filters)) as [Filters, Filters]

/** The impairment of a link, in the words of lab files, such as `delay 40ms jitter 5ms`; `none` without impairment. */
export function impairmentText(link: Filtered): string {
  const [there, back] = directionsOf(link).map((filters) =>
    Object.entries(impairmentOf(filters))
      .map(([key, value]) => `${key.replaceAll('_', ' ')} ${value}`)
      .join(' '),
  )
  if (there === back) return there || 'none'
  return [there && `there ${there}`, back && `back ${back}`].filter(Boolean).join(', ')
}

/** The words of a change of impairment: by key of lab files, as texts. `0` removes a key. */
export type GivenWords = Readonly<Record<string, string | undefined>>

/**
 * The filters of a link after a change. Keys that are not given stay, unless `clears`. `way`: the only direction that is changed.
 * CommandError 64.
 */
export function changedFilters(
  link: Filtered,
  given: GivenWords,
  { way, clears }: { way: 'there' | 'back' | undefined; clears: boolean },
): Filtered {
  const values: Record<string, unknown> = {}
  for (const key of impairmentKeys) {
    const flag = key.replaceAll('_', '-')
    const text = given[flag]
    if (text === undefined) continue
    const value = key === 'drop_every' || text === '0' ? Number(text) : text
    const schema = Impairment.properties[key]
    if (!Check(schema, value))
      throw wrongArguments(`--${flag}: expected ${expectation(schema)}, got ${JSON.stringify(text)}`)
    values[key] = value
  }
  const diagnostics = new Diagnostics()
  const [there, back] = directionsOf(link).map((filters, index) => {
    if (way !== undefined && (index === 0) !== (way === 'there')) return filters
    const positionOf = (key: string) => ({ line: 0, column: 0, path: key })
    const before = clears ? {} : impairmentOf(filters)
    return filtersOf({ values: before, positionOf }, { values: values as Impairment, positionOf }, diagnostics)
  }) as [Filters, Filters]
  const [diagnostic] = diagnostics.list()
  if (diagnostic !== undefined) throw wrongArguments(`--${diagnostic.path.replaceAll('_', '-')}: ${diagnostic.message}`)
  return filterMembers(there, back)
}
