import { Check } from '@sinclair/typebox/value'
import type { LabLink } from '../../../src/client/patchbay.ts'
import { changedFilters } from '../../../src/labfile/changed-impairment.ts'
import { type Impairment, Impairment as ImpairmentSchema, impairmentKeys } from '../../../src/labfile/schema.ts'
import { expectation } from '../../../src/model/validation/validate.ts'
import { wrongArguments } from './exits.ts'

/** The words of a change of impairment: by key of lab files, as texts. `0` removes a key. */
type GivenWords = Readonly<Record<string, string | undefined>>

/** The filters of a link after a change by flags. Keys that are not given stay, unless `clears`. CommandError 64. */
export function filtersByFlags(
  link: LabLink,
  given: GivenWords,
  { way, clears }: { way: 'there' | 'back' | undefined; clears: boolean },
): Pick<LabLink, 'filters' | 'filters_ab' | 'filters_ba'> {
  const values: Record<string, unknown> = {}
  for (const key of impairmentKeys) {
    const flag = key.replaceAll('_', '-')
    const text = given[flag]
    if (text === undefined) continue
    const value = key === 'drop_every' || text === '0' ? Number(text) : text
    const schema = ImpairmentSchema.properties[key]
    if (!Check(schema, value))
      throw wrongArguments(`--${flag}: expected ${expectation(schema)}, got ${JSON.stringify(text)}`)
    values[key] = value
  }
  const fault = (key: string, message: string) => wrongArguments(`--${key.replaceAll('_', '-')}: ${message}`)
  return changedFilters(link, values as Impairment, { way, clears, fault })
}
