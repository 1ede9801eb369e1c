import { type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { kindOfWord, kindWords, nodeSchemas, sectionNames, sections, segmentSchemas } from './schema.ts'
import { segmentKinds } from './segment-kinds.ts'

/** JSON Schema, draft 7: the one that editors of YAML know best. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** The path at which a service has the schema. */
export const schemaPath = '/schemas/lab-1.json'

let made: JsonSchema | undefined

/** The JSON Schema of lab files, for editors. It is derived from the declarations by which lab files are read. */
export function labFileSchema(): JsonSchema {
  made ??= build()
  return made
}

function build(): JsonSchema {
  const { lab, version, about, compute, placement, vars, management, links, starting, checks, tasks } = sections
  const section = (name: string, description: string) => ({
    type: ['object', 'null'],
    description,
    additionalProperties: { $ref: `#/definitions/${name}` },
  })
  const plain: Readonly<Record<string, JsonSchema>> = {
    ...converted({ lab, version, about, compute, placement }),
    vars: { ...schemaOf(vars), type: ['object', 'null'] },
    templates: section('template', 'Settings of nodes by a name, which nodes take over by `is`'),
    nodes: section('node', 'The nodes by their names'),
    segments: section('segment', 'Switches, hubs, nats and clouds, with the links to them'),
    links: { ...schemaOf(links), type: ['array', 'null'] },
    management: { ...schemaOf(management), type: ['object', 'null'] },
    starting: { ...schemaOf(starting), type: ['object', 'null'] },
    checks: { ...schemaOf(checks), type: ['array', 'null'] },
    tasks: { ...schemaOf(tasks), type: ['array', 'null'] },
  }
  const words = (kind: string) => kindWords.filter((word) => kindOfWord(word) === kind)
  const byKind = Object.keys(nodeSchemas).map((kind) => ({
    if: { properties: { kind: { enum: words(kind) } }, required: ['kind'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { $ref: `#/definitions/${kind}` },
  }))
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  const ofTemplate = { if: { not: { required: ['kind'] } }, then: { $ref: '#/definitions/any' } }
  const node = { type: 'object', properties: { kind: { enum: kindWords } }, allOf: [...byKind, ofTemplate] }
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Lab file of Patchbay',
    type: 'object',
    properties: Object.fromEntries(sectionNames.map((name) => [name, plain[name]])),
    required: ['lab', 'nodes'],
    additionalProperties: false,
    definitions: {
      node: { ...node, anyOf: [{ required: ['kind'] }, { required: ['is'] }] },
      template: node,
      segment: {
        type: 'object',
        properties: { kind: { enum: segmentKinds } },
        required: ['kind'],
        allOf: segmentKinds.map((kind) => ({
          if: { properties: { kind: { const: kind } }, required: ['kind'] },
          // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
          then: { $ref: `#/definitions/${kind}` },
        })),
      },
      ...converted(nodeSchemas),
      ...converted(segmentSchemas),
      any: schemaOf(ofAnyKind()),
    },
  }
}

const converted = (schemas: Readonly<Record<string, TSchema>>): Record<string, JsonSchema> =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, schemaOf(schema)]))

/** The keys of nodes of all kinds: for a node whose kind is in its template. */
function ofAnyKind(): TObject {
  const all: TProperties = {}
  for (const { properties } of Object.values(nodeSchemas)) {
    for (const [name, schema] of Object.entries(properties)) {
      const other = all[name]
      const isOther = other !== undefined && JSON.stringify(other) !== JSON.stringify(schema)
      all[name] = isOther ? Type.Optional(Type.Union([other, schema])) : schema
    }
  }
  return Type.Object(all, { additionalProperties: false })
}

/** Keywords that are taken over as they are. */
const keywords = [
  ...['type', 'const', 'minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'pattern', 'required'],
  ...['description', 'default'],
] as const

/** A schema without what only this program knows. A variable may stand for any number, word or text of a form. */
function schemaOf(schema: TSchema): JsonSchema {
  const plain = Object.fromEntries(keywords.flatMap((key) => (schema[key] === undefined ? [] : [[key, schema[key]]])))
  if (Array.isArray(schema.anyOf)) return unionOf(schema.anyOf as TSchema[], plain)
  const result = {
    ...plain,
    ...(schema.properties !== undefined && { properties: converted(schema.properties) }),
    ...(schema.patternProperties !== undefined && { patternProperties: converted(schema.patternProperties) }),
    ...(schema.items !== undefined && {
      items: Array.isArray(schema.items) ? schema.items.map(schemaOf) : schemaOf(schema.items),
    }),
    ...(schema.additionalItems === false && { additionalItems: false }),
    ...((schema.additionalProperties === false || schema.patternProperties !== undefined) && {
      additionalProperties: false,
    }),
  }
  const isForm =
    schema.type === 'integer' || schema.type === 'number' || schema.type === 'boolean' || schema.pattern !== undefined
  return isForm ? orVariable(result) : result
}

const variable = { type: 'string', pattern: '\\$\\{' }

function orVariable({ description, default: byDefault, ...schema }: JsonSchema): JsonSchema {
  return {
    ...(description !== undefined && { description }),
    ...(byDefault !== undefined && { default: byDefault }),
    anyOf: [schema, variable],
  }
}

/** A union; words are an enumeration, and those that look like numbers may be written as such. */
function unionOf(branches: readonly TSchema[], plain: JsonSchema): JsonSchema {
  const flat = branches.flatMap((it): readonly TSchema[] =>
    Array.isArray(it.anyOf) && it.description === undefined ? it.anyOf : [it],
  )
  const words = flat.flatMap((it) => (it.const === undefined ? [] : [it.const]))
  const numbers = words.flatMap((it) => (typeof it === 'string' && /^\d+$/.test(it) ? [Number(it)] : []))
  const others = flat.filter((it) => it.const === undefined).map(schemaOf)
  const enumeration = words.length === 0 ? [] : [{ enum: [...words, ...numbers] }]
  const described = others.find((it) => it.description !== undefined)?.description
  const { type: _, ...rest } = plain
  return {
    ...(described !== undefined && { description: described }),
    ...rest,
    anyOf: [...enumeration, ...others, ...(words.length > 0 ? [variable] : [])],
  }
}
