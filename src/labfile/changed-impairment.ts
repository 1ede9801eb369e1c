import { badRequest } from '../lib/errors/api-error.ts'
import type { LabLink } from '../model/lab/link.ts'
import type { Filters } from '../model/schema/filters.ts'
import { Diagnostics } from './diagnostics.ts'
import { filterMembers, filtersOf, impairmentOf, normalFilters } from './impairment.ts'
import type { Impairment } from './schema.ts'

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

/** Which frames a change is about, and whether what is not given goes. */
export interface ImpairmentChange {
  /** The only direction that is changed. */
  readonly way: 'there' | 'back' | undefined
  readonly clears: boolean
  /** Makes the error about a key that does not go with the others. Default: 400. */
  readonly fault?: (key: string, message: string) => Error
}

/** The filters of a link after a change. Keys that are not given stay, unless `clears`; 0 removes a key. */
export function changedFilters(
  link: Filtered,
  given: Impairment,
  { way, clears, fault = (key, message) => badRequest(`${key}: ${message}`) }: ImpairmentChange,
): Filtered {
  const diagnostics = new Diagnostics()
  const [there, back] = directionsOf(link).map((filters, index) => {
    if (way !== undefined && (index === 0) !== (way === 'there')) return filters
    const positionOf = (key: string) => ({ line: 0, column: 0, path: key })
    const before = clears ? {} : impairmentOf(filters)
    return filtersOf({ values: before, positionOf }, { values: given, positionOf }, diagnostics)
  }) as [Filters, Filters]
  const [diagnostic] = diagnostics.list()
  if (diagnostic !== undefined) throw fault(diagnostic.path, diagnostic.message)
  return filterMembers(there, back)
}
