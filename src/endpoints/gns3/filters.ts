import { type FilterName, filterRows } from '../../model/schema/filters.ts'
import { isMembers, type Members, pick } from './members.ts'

/** The filters of GNS3 2.2; its clients refuse others. */
export const theirFilters = ['frequency_drop', 'packet_loss', 'delay', 'corrupt', 'bpf'] as const satisfies FilterName[]

const isOff = (parameters: unknown): boolean =>
  Array.isArray(parameters) && [undefined, 0, ''].includes(parameters[0] as number | string | undefined)

/** The filters that are on: GNS3 clients mark a link with any filter as impaired. */
export const activeFilters = (filters: Members): Members =>
  pick(
    filters,
    theirFilters.filter((name) => name in filters && !isOff(filters[name])),
  )

/** Clients send all filters, those that are off as well (`[0]`, `[]`), and numbers as text. */
export function givenFilters(filters: unknown): unknown {
  if (!isMembers(filters)) return filters
  const given = Object.entries(filters).map(([name, parameters]) => [name, givenParameters(name, parameters)] as const)
  return Object.fromEntries(given.filter(([, parameters]) => !isOff(parameters)))
}

function givenParameters(name: string, parameters: unknown): unknown {
  if (!Array.isArray(parameters)) return parameters
  const texts = parameters.map((value) => (typeof value === 'string' ? value.trim() : value))
  const isNumeric = name !== 'bpf' && Object.hasOwn(filterRows, name)
  return isNumeric ? texts.map((text) => (/^-?\d+(\.\d+)?$/.test(String(text)) ? Number(text) : text)) : texts
}
