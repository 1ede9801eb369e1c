import { Kind, type TSchema } from '@sinclair/typebox'
import fc from 'fast-check'
import type { Endpoint } from '../../src/server/http/endpoint.ts'

/** A request made from the declaration of an endpoint, and then perhaps spoiled. */
export interface Made {
  readonly endpoint: Endpoint
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string | undefined
}

/** Values that fit a schema. */
function fitting(schema: TSchema): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (Array.isArray(schema.anyOf)) return fc.oneof(...(schema.anyOf as TSchema[]).map(fitting))
  switch (schema[Kind]) {
    case 'Null':
      return fc.constant(null)
    case 'Boolean':
      return fc.boolean()
    case 'Integer':
      return fc.integer({
        min: (schema.minimum as number | undefined) ?? 0,
        max: (schema.maximum as number | undefined) ?? 70_000,
      })
    case 'Array':
      return fc.array(fitting(schema.items as TSchema), { maxLength: 3 })
    case 'Object': {
      const required = (schema.required ?? []) as string[]
      const properties = Object.entries(schema.properties as Record<string, TSchema>)
      return fc.record(Object.fromEntries(properties.map(([name, it]) => [name, fitting(it)])), {
        requiredKeys: required as never[],
      })
    }
    case 'String':
      if (schema.format === 'uuid') return fc.uuid()
      return fc.string({ minLength: (schema.minLength as number | undefined) ?? 0, maxLength: 20, unit: 'grapheme' })
    default:
      return fc.jsonValue()
  }
}

/** Anything that a client may put in place of a value. */
const odd = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom(
    '',
    ' ',
    '..',
    '../..',
    '\u0000',
    '/etc/passwd',
    '%00',
    '__proto__',
    'constructor',
    '9'.repeat(400),
    -1,
    1e308,
    0.5,
    [],
    {},
  ),
)

/** Requests for the endpoints; `known` are ids that exist, so that handlers are reached. */
export function requests(
  endpoints: readonly Endpoint[],
  known: Readonly<Record<string, readonly string[]>>,
): fc.Arbitrary<Made> {
  return fc.constantFrom(...endpoints).chain((endpoint) =>
    fc
      .record({
        params: params(endpoint.path, known),
        body: bodies(endpoint),
        method: fc.oneof(
          { weight: 12, arbitrary: fc.constant<string>(endpoint.method) },
          fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD'),
        ),
        query: fc.oneof(
          { weight: 6, arbitrary: fc.constant('') },
          fc.constantFrom('?', '?since=', '?since=1', '?since=x', '?since=99999999999999999', '?ticket=abc', '?%zz'),
        ),
        headers: fc.oneof(
          { weight: 6, arbitrary: fc.constant({}) },
          fc.constantFrom<Record<string, string>>(
            { 'content-type': 'text/plain' },
            { accept: 'text/event-stream' },
            { 'last-event-id': 'x' },
            { authorization: 'Basic ???' },
            { origin: 'https://evil.example' },
          ),
        ),
      })
      .map(({ params, body, method, query, headers }) => ({
        endpoint,
        method,
        path: endpoint.path.replace(/\{(\w+)\}/g, (_, name: string) => params[name] ?? '') + query,
        headers,
        body: method === 'GET' || method === 'HEAD' ? undefined : body,
      })),
  )
}

function params(
  path: string,
  known: Readonly<Record<string, readonly string[]>>,
): fc.Arbitrary<Record<string, string>> {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '')
  const of = (name: string) =>
    fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(...(known[name] ?? ['0'])) },
      fc.uuid(),
      fc.string().map((text) => encodeURIComponent(text) || '-'),
      fc.constantFrom('%', '%zz', '%00', '..', '%2e%2e', '..%2f..%2fetc', '//etc/passwd', '-1', '99999', '0'),
    )
  return fc.record(Object.fromEntries(names.map((name) => [name, of(name)])))
}

function bodies({ body, bodyShown, bodyKind }: Endpoint): fc.Arbitrary<string | undefined> {
  if (bodyKind === 'raw') return fc.string({ maxLength: 200 })
  const schema = bodyShown ?? body
  if (schema === undefined) return fc.constantFrom(undefined, '', '{}', '{"a":1}', '[', 'null')
  const valid = fitting(schema)
  const spoiled = fc.tuple(valid, fc.string({ maxLength: 12 }), odd).map(([value, name, other]) => {
    const copy = { ...(value as Record<string, unknown>) }
    const keys = Object.keys(copy)
    copy[keys.length > 0 && name.length % 3 !== 0 ? (keys[name.length % keys.length] ?? name) : name] = other
    return copy
  })
  return fc.oneof(
    { weight: 5, arbitrary: valid.map((value) => JSON.stringify(value)) },
    { weight: 5, arbitrary: spoiled.map((value) => JSON.stringify(value)) },
    odd.map((value) => JSON.stringify(value)),
    fc.string(),
  )
}
