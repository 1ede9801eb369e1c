import { type Static, type TObject, type TSchema, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { badRequest } from '../../lib/errors/api-error.ts'
import { maybe } from '../schema/fields.ts'
import { quoteValue, validate } from './validate.ts'

/**
 * Clients send a resource back as it was shown. Read-only members are those of the resource's schema that its input lacks: a create
 * ignores them, and an update accepts them with their present values.
 */
export interface InputWithReadOnly<T extends TObject = TObject> {
  /** A schema of the input with the read-only members. */
  readonly schema: TSchema
  /**
   * The input in a body. 400 for a read-only member with another value than the present one; `current` reads the resource, only when
   * it is needed. Without `current` such members are ignored.
   */
  read(body: unknown, current?: () => Promise<unknown>): Promise<Static<T>>
}

const made = new WeakMap<TObject, WeakMap<TObject, InputWithReadOnly>>()

/** The read-only members that an input accepts, of a resource with the schema `shown`. */
export function withReadOnly<T extends TObject>(input: T, shown: TObject): InputWithReadOnly<T> {
  const ofInput = made.get(input) ?? new WeakMap<TObject, InputWithReadOnly>()
  made.set(input, ofInput)
  const known = ofInput.get(shown)
  if (known !== undefined) return known as InputWithReadOnly<T>
  const derived = derive(input, shown)
  ofInput.set(shown, derived)
  return derived as InputWithReadOnly<T>
}

function derive<T extends TObject>(input: T, shown: TObject): InputWithReadOnly<T> {
  const only = Object.entries<TSchema>(shown.properties).filter(([name]) => !Object.hasOwn(input.properties, name))
  const added = only.map(([name, schema]) => [name, Type.Optional({ ...maybe(schema), readOnly: true })] as const)
  const schema: TSchema = { ...input, properties: { ...input.properties, ...Object.fromEntries(added) } }
  const names = new Map(only)
  return {
    schema,
    async read(body, current) {
      const given = validate(schema, body) as Record<string, unknown>
      const sent = Object.keys(given).filter((name) => names.has(name))
      if (sent.length === 0) return given as Static<T>
      const fixed = sent.filter((name) => given[name] !== null && names.get(name)?.changesByItself !== true)
      if (current !== undefined && fixed.length > 0)
        requireSame(given, fixed, await current(), Object.keys(input.properties))
      return Object.fromEntries(Object.entries(given).filter(([name]) => !names.has(name))) as Static<T>
    },
  }
}

function requireSame(
  given: Record<string, unknown>,
  names: readonly string[],
  current: unknown,
  settable: readonly string[],
): void {
  const now = current as Record<string, unknown>
  const wrong = names.find((name) => !isSame(given[name], now[name]))
  if (wrong === undefined) return
  throw badRequest(
    `${wrong}: this member is read-only: it is ${quoteValue(now[wrong], wrong)}, got ${quoteValue(given[wrong], wrong)}; members that can be set: ${settable.join(', ')}`,
  )
}

/** Ids are compared without regard to case, and members of objects in any order. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a === 'string' && typeof b === 'string') return Check(uuid, a) && a.toLowerCase() === b.toLowerCase()
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const [one, other] = [a as Record<string, unknown>, b as Record<string, unknown>]
  const keys = Object.keys(one)
  return keys.length === Object.keys(other).length && keys.every((key) => isSame(one[key], other[key]))
}

const uuid = Type.String({ format: 'uuid' })
