import type { TObject } from '@sinclair/typebox'
import { validate } from '../model/validation/validate.ts'
import type { Endpoint } from './http/endpoint.ts'
import type { RouteMatch } from './http/router.ts'

/** Parameters that were validated, by those of the match, which the router has for a path that is asked for again. */
const validated = new WeakMap<object, Readonly<Record<string, unknown>>>()

/** The parameters of the path. Ids are compared without regard to case; from here on they are lower-case. 400. */
export function validParams(
  { params: schema }: Endpoint,
  params: RouteMatch['params'],
): Readonly<Record<string, unknown>> {
  if (schema === undefined) return {}
  const known = validated.get(params)
  if (known !== undefined) return known
  const given = Object.entries(validate(schema as TObject, params, 'path'))
  const lower = given.map(([name, value]) => [name, name.endsWith('_id') ? String(value).toLowerCase() : value])
  const valid = Object.freeze(Object.fromEntries(lower) as Record<string, unknown>)
  validated.set(params, valid)
  return valid
}

export function hasValidParams({ endpoint, params }: RouteMatch): boolean {
  try {
    validParams(endpoint, params)
    return true
  } catch {
    return false
  }
}
