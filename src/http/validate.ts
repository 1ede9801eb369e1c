import { Kind, type Static, type TSchema } from '@sinclair/typebox'
import { Errors, type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import { Check } from '@sinclair/typebox/value'
import { badRequest } from '../errors.ts'
import { mayBeSecret } from './body.ts'
import { nearest } from './nearest.ts'

/** The value, known to fit the schema; else a 400 that names the field, what was expected and what came. */
export function check<T extends TSchema>(schema: T, value: unknown, where = 'body'): Static<T> {
  if (Check(schema, value)) return value
  throw badRequest(complaint(schema, value, where))
}

/** The sentence about the first thing that is wrong with a value; `where` names the value itself when no field does. */
export function complaint(schema: TSchema, value: unknown, where: string): string {
  const [error] = Errors(schema, value)
  if (error === undefined) return `${where}: not valid`
  const { path, schema: wanted, value: got, unknownIn } = blame(error)
  const field = fieldName(path) || where
  if (unknownIn !== undefined) return unknownField(field, unknownIn)
  if (got === undefined) return `${field}: missing, expected ${expectation(wanted)}`
  return `${field}: expected ${expectation(wanted)}, got ${shown(got, field)}`
}

interface Blame {
  readonly path: string
  readonly schema: TSchema
  readonly value: unknown
  /** Set when the field is not known: the schema of the object it stands in. */
  readonly unknownIn?: TSchema
}

/** TypeBox only says "Expected union value"; the client wants the field, so the branch that was meant is followed. */
function blame(error: ValueError): Blame {
  const { path, schema, value, errors } = error
  if (isUnknownProperty(error)) return { path, schema, value, unknownIn: schema }
  const branches = errors.map((branch) => [...branch]).filter((found) => found.length > 0)
  const meant = branches.find((found) => found.every((it) => it.path !== path || isUnknownProperty(it)))
  const [first] = meant ?? []
  return first === undefined ? { path, schema, value } : blame(first)
}

const isUnknownProperty = (error: ValueError): boolean => error.type === ValueErrorType.ObjectAdditionalProperties

function unknownField(field: string, object: TSchema): string {
  const known = Object.keys((object.properties ?? {}) as Record<string, unknown>)
  const guess = nearest(field.split('.').at(-1) ?? field, known)
  if (guess !== undefined) return `${field}: unknown field, did you mean ${guess}?`
  return known.length === 0
    ? `${field}: unknown field, none is expected here`
    : `${field}: unknown field, expected one of ${known.join(', ')}`
}

/** `/a/b~1c/0` -> `a.b/c[0]`. */
function fieldName(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replace(/~1/g, '/').replace(/~0/g, '~'))
    .map((part, index) => (/^\d+$/.test(part) ? `[${part}]` : index === 0 ? part : `.${part}`))
    .join('')
}

/** What a schema accepts, in words. */
export function expectation(schema: TSchema): string {
  if (typeof schema.expects === 'string') return schema.expects
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (Array.isArray(schema.anyOf)) {
    const branches = (schema.anyOf as TSchema[]).map(expectation)
    return branches.length === 1 ? (branches[0] ?? '') : `${branches.slice(0, -1).join(', ')} or ${branches.at(-1)}`
  }
  switch (schema[Kind]) {
    case 'Null':
      return 'null'
    case 'Boolean':
      return 'true or false'
    case 'Integer':
      return bounded('an integer', schema.minimum, schema.maximum)
    case 'Number':
      return bounded('a number', schema.minimum, schema.maximum)
    case 'Array':
    case 'Tuple':
      return schema.maxItems === undefined ? 'a list' : `a list of at most ${schema.maxItems} items`
    case 'Object':
    case 'Record':
      return 'an object'
    case 'String':
      return text(schema)
    default:
      return 'another value'
  }
}

function text({ format, pattern, minLength, maxLength }: TSchema): string {
  if (format === 'uuid') return 'a UUID'
  if (pattern !== undefined) return `a text that matches ${pattern}`
  if (maxLength !== undefined) return `a text of ${minLength ?? 0} to ${maxLength} characters`
  return minLength === undefined ? 'a text' : `a text of at least ${minLength} character${minLength === 1 ? '' : 's'}`
}

function bounded(what: string, minimum: unknown, maximum: unknown): string {
  if (minimum !== undefined && maximum !== undefined) return `${what} from ${minimum} to ${maximum}`
  return minimum === undefined ? what : `${what} of at least ${minimum}`
}

/** A value as it may be repeated to the client: short, and never a secret. */
function shown(value: unknown, field: string): string {
  if (mayBeSecret.test(field)) return 'another value'
  if (Array.isArray(value)) return 'a list'
  if (value !== null && typeof value === 'object') return 'an object'
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}
