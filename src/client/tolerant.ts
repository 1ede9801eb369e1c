import type { TSchema } from '@sinclair/typebox'

const made = new WeakMap<TSchema, TSchema>()

/** The schema with all its objects open: a newer compute may tell more than we know of. */
export function tolerant<T extends TSchema>(schema: T): T {
  const known = made.get(schema)
  if (known !== undefined) return known as T
  const { additionalProperties, properties, patternProperties, items, anyOf, allOf, ...rest } = schema
  const open = {
    ...rest,
    ...(isSchema(additionalProperties) && { additionalProperties: tolerant(additionalProperties) }),
    ...(properties !== undefined && { properties: each(properties) }),
    ...(patternProperties !== undefined && { patternProperties: each(patternProperties) }),
    ...(items !== undefined && { items: Array.isArray(items) ? items.map(tolerant) : tolerant(items) }),
    ...(anyOf !== undefined && { anyOf: anyOf.map(tolerant) }),
    ...(allOf !== undefined && { allOf: allOf.map(tolerant) }),
  } as unknown as T
  made.set(schema, open)
  return open
}

const isSchema = (value: unknown): value is TSchema => value !== null && typeof value === 'object'

function each(schemas: Record<string, TSchema>): Record<string, TSchema> {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, tolerant(schema)]))
}
