import { endpoints } from '../src/endpoints/endpoints.ts'
import { openapi } from '../src/endpoints/openapi/openapi.ts'

/** Types of every call of API version 2, printed from the endpoints: the text of `src/client/calls.ts`. */
export function clientTypes(): string {
  const calls = operations.map(([name, it]) => callOf(it).replace('PATH', name))
  return `// Made by scripts/make-client-types.ts from the endpoints: do not edit.

/** The body of an upload. */
export type Bytes = ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | Blob | string

/** Every call, by its method and path. */
export interface Calls {
${calls.join('\n')}
}

${[...named.values()].join('\n')}`
}

interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly items?: Schema | readonly Schema[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly description?: string
}
interface Parameter {
  readonly $ref?: string
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly schema: Schema
}
type Content = { readonly $ref?: string; readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }
interface Operation {
  readonly summary: string
  readonly parameters: readonly Parameter[]
  readonly requestBody?: Content & { readonly required: boolean }
  readonly responses: Readonly<Record<string, Content>>
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly parameters: Readonly<Record<string, Parameter>>
    readonly responses: Readonly<Record<string, Content>>
  }
}

const { paths, components } = openapi(endpoints, '') as unknown as Document
const json = 'application/json'
const named = new Map<string, string>()

/** The members of the union that a schema is; one for most schemas. */
const membersOf = (schema: Schema): string[] =>
  schema.anyOf?.flatMap(membersOf) ?? schema.enum?.map((it) => JSON.stringify(it)) ?? [simpleTypeOf(schema)]

/** The TypeScript type of a schema. */
const typeOf = (schema: Schema): string => [...new Set(membersOf(schema))].join(' | ')

function simpleTypeOf(schema: Schema): string {
  const { $ref, type, allOf, items, properties, patternProperties, additionalProperties } = schema
  if ($ref !== undefined) return nameOf($ref)
  if (allOf !== undefined) return allOf.map((it) => `(${typeOf(it)})`).join(' & ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (Array.isArray(items)) return `[${items.map(typeOf).join(', ')}]`
  if (items !== undefined) return `(${typeOf(items as Schema)})[]`
  if (type === 'integer') return 'number'
  if (type === 'string' || type === 'number' || type === 'boolean' || type === 'null') return type
  if (properties !== undefined && Object.keys(properties).length > 0) {
    const required = new Set(schema.required)
    const members = Object.entries(properties).map(
      ([name, it]) => `${note(it.description)}${keyOf(name)}${required.has(name) ? '' : '?'}: ${typeOf(it)}`,
    )
    return `{\n${members.join('\n')}\n}`
  }
  const [values] = Object.values(patternProperties ?? {})
  const others = values ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
  if (others !== undefined) return `Record<string, ${typeOf(others)}>`
  return type === 'object' ? 'Record<string, unknown>' : 'unknown'
}

const keyOf = (name: string): string => (/^\w+$/.test(name) ? name : JSON.stringify(name))
const note = (text: string | undefined): string =>
  text === undefined ? '' : `/** ${text.replaceAll('*/', '* /')} */\n`

const lastOf = ($ref: string | undefined): string => $ref?.split('/').at(-1) ?? ''

/** The name of a shared schema; its type is printed once. */
function nameOf($ref: string): string {
  const name = lastOf($ref)
  if (!named.has(name)) {
    named.set(name, '')
    const schema = components.schemas[name] ?? {}
    named.set(name, `${note(schema.description)}export type ${name} = ${typeOf(schema)}\n`)
  }
  return name
}

/** The members `params`, `query`, `body` and `reply` of a call. */
function callOf({ summary, parameters, requestBody, responses }: Operation): string {
  const all = parameters.map((it) => components.parameters[lastOf(it.$ref)] ?? it)
  const inPlace = (place: string, mark: string) =>
    all.filter((it) => it.in === place).map((it) => `${keyOf(it.name)}${mark}: ${typeOf(it.schema)}`)
  const [params, query] = [inPlace('path', ''), inPlace('query', '?')]
  const body = requestBody?.content?.[json]?.schema
  const isIgnored = requestBody?.required === false && body?.properties === undefined && body?.$ref === undefined
  const bytes = requestBody?.content?.['application/octet-stream']
  return [
    `/** ${summary} */`,
    ...[`'PATH': {`],
    ...(params.length > 0 ? [`params: { ${params.join('; ')} }`] : []),
    ...(query.length > 0 ? [`query?: { ${query.join('; ')} }`] : []),
    ...(bytes !== undefined ? ['body: Bytes'] : []),
    ...(body !== undefined && !isIgnored ? [`body${requestBody?.required ? '' : '?'}: ${typeOf(body)}`] : []),
    `reply: ${replyOf(responses)}`,
    '}',
  ].join('\n')
}

/** The type of the answers 2xx: of JSON, `undefined` without a body, or a stream of bytes. */
function replyOf(responses: Operation['responses']): string {
  const kinds = Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([, given]) => {
      const it = components.responses[lastOf(given.$ref)] ?? given
      const content = Object.entries(it.content ?? {})
      const schema = it.content?.[json]?.schema
      if (content.length === 0) return 'undefined'
      // A feed: the type of its lines is printed for whoever reads them.
      if (content.length > 1 && schema !== undefined) typeOf(schema)
      return content.length > 1 || schema === undefined ? 'ReadableStream<Uint8Array>' : typeOf(schema)
    })
  return [...new Set(kinds)].join(' | ') || 'never'
}

/** What a service asks its computes: programs ask for labs. */
const lowerPaths = /^\/v2\/(compute\/projects|links|computes\/(endpoint|join|\{compute_id\}\/\{emulator\}(?!\/images)))/

const operations = Object.entries(paths)
  .filter(([path]) => path.startsWith('/v2/') && !lowerPaths.test(path))
  .flatMap(([path, item]) =>
    Object.entries(item).map(([method, it]) => [`${method.toUpperCase()} ${path}`, it] as const),
  )
