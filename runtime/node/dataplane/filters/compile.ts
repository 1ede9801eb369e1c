import type { TProperties } from '@sinclair/typebox'
import { badRequest } from '../../../../src/lib/errors/api-error.ts'
import type { LineType } from '../../../../src/model/capture.ts'
import type { Filters } from '../../../../src/model/schema/filters.ts'
import { type Filter, filters as known } from './index.ts'
import type { FilterRow } from './row.ts'

const rows: Readonly<Record<string, FilterRow<TProperties>>> = known

/** Compiles filters for the switch, in their order, without filters that are off. 400 for wrong parameters. */
export const compileFilters = (filters: Filters = {}, line: LineType = 'ethernet'): Filter[] =>
  Object.entries(filters).flatMap(([type, parameters]) => {
    const [first] = parameters
    if (first === undefined || first === 0 || first === '') return []
    const row = Object.hasOwn(rows, type) ? rows[type] : undefined
    if (row === undefined) throw badRequest(`filters.${type}: unknown filter`)
    const compiled = row.compile(parameters, line)
    return compiled === undefined ? [] : [{ type, ...compiled } as Filter]
  })
