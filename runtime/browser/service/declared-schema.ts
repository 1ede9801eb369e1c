import type { Schema } from '../forms/fields.ts'
import { send } from '../state/client.ts'

type Schemas = Readonly<Record<string, unknown>>
const prefix = '#/components/schemas/'
let schemas: Promise<Schemas> | undefined

/** The schema of a body of a request, by its name in the OpenAPI document, without references. */
export async function declaredSchema(name: string): Promise<Schema> {
  schemas ??= read()
  schemas.catch(() => {
    schemas = undefined
  })
  const all = await schemas
  return resolved(all[name], all) as Schema
}

async function read(): Promise<Schemas> {
  const response = await send('/openapi.json', {})
  if (!response.ok) throw new Error(`The service answered ${response.status} for its own description`)
  const document = (await response.json()) as { components: { schemas: Schemas } }
  return document.components.schemas
}

/** A schema with the schemas that it names in their places. */
function resolved(schema: unknown, all: Schemas): unknown {
  if (Array.isArray(schema)) return schema.map((it) => resolved(it, all))
  if (typeof schema !== 'object' || schema === null) return schema
  const { $ref } = schema as { $ref?: unknown }
  if (typeof $ref === 'string' && $ref.startsWith(prefix)) return resolved(all[$ref.slice(prefix.length)], all)
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, resolved(value, all)]))
}
