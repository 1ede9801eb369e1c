import { Kind, type TSchema, Type } from '@sinclair/typebox'
import { notInEarlierLine, notInLine } from '../../lib/text/one-line.ts'

const made = new WeakMap<TSchema, TSchema>()

/**
 * The schema for answers of newer computes: objects may have more members, a word may be missing in a list of words, an object of a
 * union may have an unknown form, and texts and lists may be longer. Known members must still have their types.
 */
export function tolerant<T extends TSchema>(schema: T): T {
  const known = made.get(schema)
  if (known !== undefined) return known as T
  const {
    additionalProperties,
    properties,
    patternProperties,
    items,
    anyOf,
    allOf,
    maxItems,
    maxLength,
    pattern,
    ...rest
  } = schema
  const open = {
    ...rest,
    // Names that an earlier version took.
    ...(pattern !== undefined && { pattern: pattern.replace(notInLine, notInEarlierLine) }),
    ...(isSchema(additionalProperties) && { additionalProperties: tolerant(additionalProperties) }),
    ...(properties !== undefined && { properties: each(properties) }),
    ...(patternProperties !== undefined && { patternProperties: each(patternProperties) }),
    ...(items !== undefined && { items: Array.isArray(items) ? items.map(tolerant) : tolerant(items) }),
    // A tuple has just as many items as it has schemas.
    ...(schema[Kind] === 'Tuple' && { maxItems }),
    ...(anyOf !== undefined && { anyOf: forms(anyOf) }),
    ...(allOf !== undefined && { allOf: allOf.map(tolerant) }),
  } as unknown as T
  made.set(schema, open)
  return open
}

const isSchema = (value: unknown): value is TSchema => value !== null && typeof value === 'object'

function each(schemas: Record<string, TSchema>): Record<string, TSchema> {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, tolerant(schema)]))
}

/** The members of a union, and those of newer computes. */
function forms(members: readonly TSchema[]): TSchema[] {
  const words = members.filter(({ const: value }) => typeof value === 'string')
  // A single word, or a word or null, is not a list of words that may grow.
  const open = words.length > 1 ? [...members.filter((member) => !words.includes(member)), Type.String()] : [...members]
  const objects = members.filter((member) => member[Kind] === 'Object')
  return [...open.map(tolerant), ...(objects.length > 1 ? unknownForm(objects) : [])]
}

/** An object of an unknown form: the member that distinguishes the forms has another word. */
function unknownForm(objects: readonly TSchema[]): TSchema[] {
  const [first] = objects
  const name = Object.keys(first?.properties ?? {}).find((it) =>
    objects.every(({ properties }) => typeof properties?.[it]?.const === 'string'),
  )
  if (name === undefined) return []
  const known = Type.Union(objects.map(({ properties }) => Type.Literal(properties[name].const as string)))
  return [Type.Object({ [name]: Type.Intersect([Type.String(), Type.Not(known)]) })]
}
