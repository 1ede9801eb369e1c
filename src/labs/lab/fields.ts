import type { Static, TProperties, TSchema } from '@sinclair/typebox'

type Values<T extends TProperties> = { [K in keyof T]: Static<T[K]> }

/** The members that have a value: in input, null and absent mean "leave as it is". */
export function withoutNulls<T extends object>(input: T): { [K in keyof T]?: Exclude<T[K], null | undefined> } {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null && value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], null | undefined>
  }
}

/** The members of a new resource: the value of the input, else the default of the schema, else null. */
export function withDefaults<T extends TProperties>(fields: T, input: Readonly<Record<string, unknown>>): Values<T> {
  const each = Object.entries(fields).map(([name, schema]: [string, TSchema]) => [
    name,
    input[name] ?? structuredClone(schema.default ?? null),
  ])
  return Object.fromEntries(each) as Values<T>
}
