import {
  FormatRegistry,
  type SchemaOptions,
  type Static,
  type TProperties,
  type TSchema,
  Type,
} from '@sinclair/typebox'
import { oneLine } from '../../lib/text/one-line.ts'

/** An object, under its name in the OpenAPI document. */
export const objectSchema = <P extends TProperties>($id: string, description: string, properties: P) =>
  Type.Object(properties, { $id, description })
/** The same for input: members that it does not declare are refused. */
export const closedSchema = <P extends TProperties>($id: string, description: string, properties: P) =>
  Type.Object(properties, { $id, additionalProperties: false, description })
/** One of some words or numbers. */
export const oneOf = <const V extends string | number>(values: readonly V[], options: SchemaOptions = {}) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    options,
  )

/** A switch in a query, off by default. */
export const yesOrNo = (description: string) => Type.Optional(oneOf(['yes', 'no'], { default: 'no', description }))

// Any version and variant nibble: clients in the field send more than RFC 9562 allows.
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
FormatRegistry.Set('uuid', (value) => uuid.test(value))

/** Whether a text has the form of an id. Ids are compared lower-cased. */
export const isUuid = (text: string): boolean => uuid.test(text)

export const Uuid = Type.String({ format: 'uuid', description: 'UUID (case-insensitive)' })
/** One line of text: names are inserted into scripts (`%h`), where a line end would begin another command. */
export const Name = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: oneLine,
  expects: 'a string of 1 to 255 characters, in one line',
})
export const PortNumber = Type.Integer({ minimum: 1, maximum: 65535 })

/** Accepts null beside the schema: "leave as it is" in an update, "the default" in a create. */
export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
/** An input member that may be absent or null. */
export const maybe = <T extends TSchema>(schema: T) => Type.Optional(nullable(schema))
/** Input members that may be absent or null. */
export function maybes<T extends TProperties>(members: T): { [K in keyof T]: ReturnType<typeof maybe<T[K]>> } {
  // Object.fromEntries forgets which key has which value.
  return Object.fromEntries(Object.entries(members).map(([key, schema]) => [key, maybe(schema)])) as {
    [K in keyof T]: ReturnType<typeof maybe<T[K]>>
  }
}

/**
 * Marks a member that changes without a request. A client that sends the resource back may have read an older value: any value is
 * accepted.
 */
export const changing = <T extends TSchema>(schema: T): T => ({ ...schema, changesByItself: true })

export type ErrorBody = Static<typeof ErrorBody>
export const ErrorBody = objectSchema('Fault', 'Body of every error', {
  message: Type.String({ description: 'What is wrong, and what is expected' }),
  status: Type.Integer({ description: 'The HTTP status' }),
  exception: Type.Optional(
    Type.String({ description: 'Only for a missing image: `ImageMissingError`, which older clients look for' }),
  ),
  image: Type.Optional(Type.String({ description: 'Only for a missing image: its name' })),
  errors: Type.Optional(
    Type.Array(
      Type.Object({
        line: Type.Integer({ description: 'Counts from 1' }),
        column: Type.Integer({ description: 'Counts from 1, in UTF-16 code units' }),
        path: Type.String({ description: 'The keys to the value, such as `nodes.R1.image`' }),
        message: Type.String(),
        hint: Type.Optional(Type.String({ description: 'How to correct it' })),
      }),
      { description: 'Only for a lab file: its errors, at most 20' },
    ),
  ),
  untrusted: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String({ description: 'Name of a node, or of a file of an archive' }),
        setting: Type.String({ description: 'The setting, such as `options`' }),
        value: Type.String({ description: 'What it would run or open' }),
      }),
      {
        description: 'Only for a file that is not trusted: what it would run or open on the host, at most 100 entries',
      },
    ),
  ),
  more_errors: Type.Optional(
    Type.Integer({
      description:
        'Only if there are more than 20 `errors`: the number of the others; above 180 there may be even more',
    }),
  ),
})
