import { ApiError, badRequest } from '../../lib/errors/api-error.ts'
import { nearest } from '../../lib/text/nearest-word.ts'
import { kindOf, nodeKinds } from '../../model/kinds/node.ts'
import { isKnownKind, type LabNodeUpdate } from '../../model/lab/node.ts'
import { oursFor } from '../../model/validation/foreign-words.ts'
import { withoutNulls } from '../lab/fields.ts'

/** 400 for a kind that is not here, with the word that was probably meant. */
export function noSuchKind(field: string, kind: string): ApiError {
  const guess = oursFor(kind) ?? nearest(kind, nodeKinds)
  const help = guess === undefined ? `expected one of ${nodeKinds.join(', ')}` : `did you mean ${guess}?`
  return badRequest(`${field}: this service has no kind ${kind}, ${help}`)
}

/** For `catch`: an error about a property names the property as the input of the client has it: `properties.{name}`. */
export const refusedOf =
  (properties: Readonly<Record<string, unknown>>) =>
  (error: unknown): never => {
    if (!(error instanceof ApiError) || error.status !== 400) throw error
    const [, field = ''] = /^(\w+)[^\w ]/.exec(error.message) ?? []
    if (!Object.hasOwn(properties, field)) throw error
    throw badRequest(`properties.${error.message}`, { cause: error, code: error.code })
  }

/** The settings of single adapters; only for kinds whose nodes have them on computes, too. */
export const adaptersFor = (
  node_type: string,
  input: 'create' | 'update',
  { custom_adapters }: Pick<LabNodeUpdate, 'custom_adapters'>,
): object =>
  isKnownKind(node_type) && 'custom_adapters' in kindOf(node_type)[input].properties
    ? withoutNulls({ custom_adapters })
    : {}
