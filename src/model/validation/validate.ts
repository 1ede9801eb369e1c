import { Kind, type Static, type TSchema } from '@sinclair/typebox'
import { Errors, type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import { Check } from '@sinclair/typebox/value'
import { badRequest } from '../../lib/errors/api-error.ts'
import { mayBeSecret } from '../../lib/http/body.ts'
import { counted } from '../../lib/text/counted.ts'
import { nearest } from '../../lib/text/nearest-word.ts'
import { oursFor } from './foreign-words.ts'

/** The value, when it fits the schema; else 400 with the field, the expectation and the value. */
export function validate<T extends TSchema>(schema: T, value: unknown, where = 'body'): Static<T> {
  if (Check(schema, value)) return value
  throw badRequest(formatIssue(schema, value, where))
}

/** A sentence about the first fault of a value; `where` names the value when no field does. */
export function formatIssue(schema: TSchema, value: unknown, where: string): string {
  const found = firstOf(Errors(schema, value))
  if (found === undefined) return `${where}: not valid`
  const { path, schema: wanted, value: got, unknownIn } = found
  const field = fieldName(path) || where
  if (unknownIn !== undefined) return unknownField(field, unknownIn)
  if (got === undefined) return `${field}: missing, expected ${expectation(wanted)}`
  return `${field}: expected ${expectation(wanted)}, got ${quoteValue(got, field)}${hint(wanted, got, field)}`
}

/** A misspelt field is both unknown and missing under its right name: the unknown one is reported. */
function firstOf(errors: Iterable<ValueError>): Issue | undefined {
  let first: Issue | undefined
  let count = 0
  for (const error of errors) {
    const blamed = blame(error)
    first ??= blamed
    if (first.value !== undefined || first.unknownIn !== undefined) return first
    if (blamed.unknownIn !== undefined && parentOf(blamed.path) === parentOf(first.path)) return blamed
    count += 1
    if (count === maxErrors) break
  }
  return first
}

const maxErrors = 100
const parentOf = (pointer: string): string => pointer.slice(0, pointer.lastIndexOf('/'))

/** How to correct a value, where that is clear. */
function hint(wanted: TSchema, got: unknown, field: string): string {
  if (typeof got !== 'string' || mayBeSecret.test(field)) return ''
  const words = literalsOf(wanted)
  const guess = words.includes(oursFor(got) ?? '') ? oursFor(got) : got.length < 3 ? undefined : nearest(got, words)
  if (guess !== undefined) return `, did you mean ${JSON.stringify(guess)}?`
  const kinds = new Set(branchesOf(wanted).map((it) => it[Kind]))
  if (kinds.has('String')) return ''
  if (kinds.has('Integer') || kinds.has('Number')) {
    if (/^-?\d+(\.\d+)?$/.test(got)) return ': write the number without quotes'
    if (/^-?\d+(\.\d+)?\s*[a-z%]+$/i.test(got))
      return `: write the number alone, without unit and quotes${unitOf(wanted)}`
  }
  if (kinds.has('Boolean') && /^(yes|no|on|off|true|false|0|1)$/i.test(got))
    return ': write true or false, without quotes'
  return ''
}

const branchesOf = (schema: TSchema): TSchema[] =>
  (Array.isArray(schema.anyOf) ? schema.anyOf : [schema]).flatMap((branch) =>
    branch === schema ? [branch] : branchesOf(branch),
  )
const literalsOf = (schema: TSchema): string[] =>
  branchesOf(schema).flatMap(({ const: word }) => (typeof word === 'string' ? [word] : []))

/** ` (Memory, MB)`: descriptions name the units. */
function unitOf(schema: TSchema): string {
  const description = branchesOf(schema).find((it) => it.description !== undefined)?.description ?? schema.description
  return description === undefined ? '' : ` (${description})`
}

interface Issue {
  readonly path: string
  readonly schema: TSchema
  readonly value: unknown
  /** For an unknown field: the schema of its object. */
  readonly unknownIn?: TSchema
}

/** TypeBox only says "Expected union value". The client needs the field, so the likely branch of the union is followed. */
function blame(error: ValueError): Issue {
  const { path, schema, value, errors } = error
  if (isUnknownProperty(error)) return { path, schema, value, unknownIn: schema }
  // The errors of a branch can be read once.
  const branches = errors.map((branch) => [...branch].map((inner) => ({ inner, blamed: blame(inner) })))
  const isInside = ({ inner, blamed }: (typeof branches)[number][number]) =>
    blamed.path !== path || isUnknownProperty(inner)
  const meant = branches.find((found) => found.length > 0 && found.every(isInside))
  return meant?.[0]?.blamed ?? { path, schema, value }
}

const isUnknownProperty = (error: ValueError): boolean => error.type === ValueErrorType.ObjectAdditionalProperties

function unknownField(field: string, object: TSchema): string {
  const known = Object.entries((object.properties ?? {}) as Record<string, TSchema>).flatMap(([name, { readOnly }]) =>
    readOnly === true ? [] : name,
  )
  const name = field.split('.').at(-1) ?? field
  const guess = nearest(name, known)
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

/** The values that a schema accepts, in words. */
export function expectation(schema: TSchema): string {
  if (typeof schema.expects === 'string') return schema.expects
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (Array.isArray(schema.anyOf)) {
    // That null is accepted too is of no help to the client.
    const branches = (schema.anyOf as TSchema[]).filter((it) => it[Kind] !== 'Null').map(expectation)
    return branches.length < 2 ? (branches[0] ?? 'null') : `${branches.slice(0, -1).join(', ')} or ${branches.at(-1)}`
  }
  return expected[schema[Kind]]?.(schema) ?? 'another value'
}

const expected: Readonly<Record<string, (schema: TSchema) => string>> = {
  Null: () => 'null',
  Boolean: () => 'true or false',
  Integer: ({ minimum, maximum }) => bounded('an integer', minimum, maximum),
  Number: ({ minimum, maximum }) => bounded('a number', minimum, maximum),
  ...{ Array: listOf, Tuple: listOf, Object: () => 'an object', Record: () => 'an object', String: text },
}

function listOf({ minItems = 0, maxItems }: TSchema): string {
  if (maxItems === undefined) return minItems === 0 ? 'a list' : `a list of at least ${items(minItems)}`
  if (minItems === maxItems) return `a list of ${items(maxItems)}`
  return minItems === 0 ? `a list of at most ${items(maxItems)}` : `a list of ${minItems} to ${items(maxItems)}`
}

const items = (count: number): string => counted(count, 'item')

function text({ format, pattern, minLength, maxLength }: TSchema): string {
  if (format === 'uuid') return 'a UUID'
  if (pattern !== undefined) return `a string that matches ${pattern}`
  if (maxLength !== undefined) return `a string of ${minLength ?? 0} to ${maxLength} characters`
  return minLength === undefined ? 'a string' : `a string of at least ${counted(minLength, 'character')}`
}

function bounded(what: string, minimum: unknown, maximum: unknown): string {
  if (minimum !== undefined && maximum !== undefined) return `${what} from ${minimum} to ${maximum}`
  return minimum === undefined ? what : `${what} of at least ${minimum}`
}

/** A value for a message: short, and never a secret. */
export function quoteValue(value: unknown, field: string): string {
  if (mayBeSecret.test(field)) return 'another value'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : `a list of ${items(value.length)}`
  if (value !== null && typeof value === 'object') return 'an object'
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}
