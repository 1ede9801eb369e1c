import { Kind, type TObject, type TSchema } from '@sinclair/typebox'
import { errorCodes, errorHeader } from '../../lib/errors/error-codes.ts'
import { ErrorBody } from '../../model/schema/fields.ts'
import { withReadOnly } from '../../model/validation/read-only-members.ts'
import { type Endpoint, type ReplyShape, roleOf } from '../../server/http/endpoint.ts'
import { errorReply } from '../../server/http/params.ts'
import { apiOverview, tagOf, tagsOf, titlesOf } from './openapi-outline.ts'
import { sharedSchemas } from './openapi-sharing.ts'

type Json = Record<string, unknown>

/** Statuses that every endpoint may answer with. */
const everywhere: Readonly<Record<number, string>> = {
  400: 'The request is not valid; nothing was changed',
  401: 'Credentials are configured, and the request had no valid ones',
  403: 'The role of the credentials does not allow it, the request came from a web page of another site or for an unknown host name, or it is not allowed here',
  429: 'Too many requests with these credentials; Retry-After says how long to wait',
}

/** The OpenAPI 3.1 document of the endpoints. TypeBox schemas are JSON Schema already, so they go in nearly as they are. */
export function openapi(endpoints: readonly Endpoint[], version: string): Json {
  const components = new Components()
  const paths: Record<string, Json> = {}
  const titles = titlesOf(endpoints)
  for (const endpoint of endpoints) {
    const shown = { ...endpoint, tag: tagOf(endpoint), summary: titles.get(endpoint) ?? endpoint.summary }
    paths[endpoint.path] = { ...paths[endpoint.path], [endpoint.method.toLowerCase()]: operation(shown, components) }
  }
  return sharedSchemas({
    openapi: '3.1.1',
    info: {
      title: 'Patchbay',
      version,
      description: apiOverview,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{}, { basic: [] }, { bearer: [] }, { session: [] }],
    tags: tagsOf(endpoints),
    paths,
    components: {
      schemas: components.schemas,
      headers: { [errorHeader]: errorWord },
      securitySchemes: {
        basic: { type: 'http', scheme: 'basic' },
        bearer: { type: 'http', scheme: 'bearer' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'patchbay',
          description: 'The cookie that `POST /v2/session` sets',
        },
      },
    },
  })
}

function operation(endpoint: Endpoint, components: Components): Json {
  const { method, path, summary, description, tag, params, query, websocket } = endpoint
  const notes = [
    description,
    websocket === true ? 'Can be opened as a websocket.' : undefined,
    endpoint.public === true ? 'Needs no credentials.' : `Needs the role \`${roleOf(endpoint)}\`.`,
  ].filter((it) => it !== undefined)
  return {
    operationId: method.toLowerCase() + path.replace(/\W+(\w)?/g, (_, letter?: string) => letter?.toUpperCase() ?? ''),
    summary,
    description: notes.join(' '),
    tags: [tag],
    parameters: [
      ...parameters(params, 'path', components),
      ...parameters(query, 'query', components),
      ...(query?.properties.since === undefined ? [] : [lastEventId]),
    ],
    ...requestBody(endpoint, components),
    responses: responses(endpoint, components),
  }
}

const lastEventId: Json = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'seq of the last event that the client received, as an EventSource sends it',
  schema: { type: 'string' },
}

function parameters(schemas: TObject | undefined, location: 'path' | 'query', components: Components): Json[] {
  return Object.entries(schemas?.properties ?? {}).map(([name, schema]) => ({
    name,
    in: location,
    required: location === 'path',
    ...(schema.description !== undefined && { description: schema.description }),
    schema: components.reference(schema),
  }))
}

function requestBody({ method, body, bodyShown, bodyKind, viewSchema }: Endpoint, components: Components): Json {
  if (bodyKind === 'raw' && bodyShown !== undefined) {
    const yaml = { schema: { type: 'string', description: 'The lab file alone, when it names no other files' } }
    const content = { 'application/json': { schema: components.reference(bodyShown) }, 'application/yaml': yaml }
    return { requestBody: { required: true, content } }
  }
  if (bodyKind === 'raw') {
    return {
      requestBody: {
        required: true,
        content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
      },
    }
  }
  const input = body === undefined || viewSchema === undefined ? body : withReadOnly(body as TObject, viewSchema).schema
  const schema = input === undefined ? undefined : components.reference(bodyShown ?? input)
  if (schema !== undefined) {
    return { requestBody: { required: method !== 'GET', content: { 'application/json': { schema } } } }
  }
  if (bodyKind !== 'ignored') return {}
  return {
    requestBody: {
      required: false,
      description: 'Ignored',
      content: { 'application/json': { schema: { type: 'object' } } },
    },
  }
}

function responses({ replies, errors, body, bodyKind, websocket }: Endpoint, components: Components): Json {
  const takesJson = body !== undefined || bodyKind === 'ignored'
  const all: Record<number, ReplyShape> = {
    ...(websocket === true && { 101: { description: 'The websocket is open' } }),
    ...replies,
    ...errorReplies({
      ...everywhere,
      ...(takesJson && { 408: 'The body sent no data for too long', 413: 'The body is too large' }),
      ...errors,
    }),
  }
  return Object.fromEntries(
    Object.entries(all).map(([status, { description, schema, media }]) => {
      const content =
        schema !== undefined
          ? { [media ?? 'application/json']: { schema: components.reference(schema) } }
          : media && {
              [media]: {
                schema: { type: 'string', ...(media === 'application/octet-stream' && { format: 'binary' }) },
              },
            }
      const feed =
        websocket === true && status === '200'
          ? { ...content, 'text/event-stream': { schema: { type: 'string' } } }
          : content
      const headers = schema === ErrorBody && {
        headers: { [errorHeader]: { $ref: `#/components/headers/${errorHeader}` } },
      }
      return [status, { description, ...headers, ...(feed !== undefined && { content: feed }) }]
    }),
  )
}

const errorReplies = (errors: Readonly<Record<number, string>>): Record<number, ReplyShape> =>
  Object.fromEntries(Object.entries(errors).map(([status, description]) => [status, errorReply(description)]))

const errorWord: Json = {
  description: Object.entries(errorCodes)
    .map(([word, [statuses, meaning]]) => `\`${word}\` (${statuses.join(', ')}): ${meaning}.`)
    .join(' '),
  // A newer version has more of them.
  schema: { type: 'string', examples: Object.keys(errorCodes) },
}

/** A choice of words is shorter, and easier to read, as one list. */
function asEnum(schema: Json): Json {
  const { anyOf, ...rest } = schema
  if (!Array.isArray(anyOf) || anyOf.length < 2) return schema
  const words = (anyOf as Json[]).map((option) =>
    Object.keys(option).every((key) => key === 'const' || key === 'type') ? option : {},
  )
  const [first] = words
  const isChoice = words.every((it) => typeof it.const === 'string' && it.type === first?.type)
  return isChoice ? { ...rest, type: 'string', enum: words.map((it) => it.const) } : schema
}

/** Collects schemas that have an $id: written once, referenced everywhere else. */
class Components {
  readonly schemas: Record<string, unknown> = {}

  reference(schema: TSchema): Json {
    const { $id, expects, changesByItself, ...rest } = Object.fromEntries(
      Object.entries(schema).map(([key, value]) => [key, this.#visit(value)]),
    )
    if (typeof $id !== 'string') return asEnum(rest)
    this.schemas[$id] = rest
    return { $ref: `#/components/schemas/${$id}` }
  }

  #visit(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#visit(item))
    if (value === null || typeof value !== 'object') return value
    if (Kind in value) return this.reference(value as TSchema)
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, this.#visit(inner)]))
  }
}
