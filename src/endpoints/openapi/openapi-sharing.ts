type Json = Record<string, unknown>

/** Shorter than this a reference saves nothing, characters. */
const minLength = 120
const methods = new Set(['get', 'post', 'put', 'delete'])

/**
 * Writes what stands in a document several times once, among its components, and refers to it everywhere else: responses,
 * parameters, and parts of schemas.
 */
export function sharedSchemas(document: Json): Json {
  const { paths, components, ...rest } = document as { paths: Record<string, Json>; components: Record<string, Json> }
  const responses = new Pool('responses', (_, suffix) => `Answer${suffix}`)
  const parameters = new Pool('parameters', ({ name }) => pascal(String(name)))
  const schemas = new Pool('schemas', (_, suffix) => pascal(suffix), new Set(Object.keys(components.schemas ?? {})))
  const operations = Object.values(paths).flatMap((item) => Object.entries(item).filter(([key]) => methods.has(key)))
  // First all are counted, then those that are there more than once are replaced.
  for (const [, it] of operations) {
    const operation = it as Json
    eachOf(operation.responses, (status, response) => responses.count(response, status))
    eachOf(operation.parameters, (_, parameter) => parameters.count(parameter, ''))
  }
  for (const schema of Object.values(components.schemas ?? {})) countIn(schema, schemas)
  const shortened = Object.fromEntries(
    Object.entries(paths).map(([path, item]) => [
      path,
      Object.fromEntries(
        Object.entries(item).map(([key, value]) => {
          if (!methods.has(key)) return [key, value]
          const operation = value as Json
          const replies = Object.entries(operation.responses as Json).map(([status, reply]) => [
            status,
            responses.of(reply),
          ])
          const takes = (operation.parameters as unknown[]).map((parameter) => parameters.of(parameter))
          return [key, { ...operation, parameters: takes, responses: Object.fromEntries(replies) }]
        }),
      ),
    ]),
  )
  const own = Object.entries(components.schemas ?? {}).map(([name, schema]) => [name, replacedIn(schema, schemas)])
  return {
    ...rest,
    paths: shortened,
    components: {
      ...components,
      schemas: { ...Object.fromEntries(own), ...schemas.members },
      responses: responses.members,
      parameters: parameters.members,
    },
  }
}

/** What is counted by its text, and named when it is there again. */
class Pool {
  readonly members: Json = {}
  readonly #section: string
  readonly #nameOf: (value: Json, suffix: string) => string
  readonly #taken: Set<string>
  readonly #seen = new Map<string, { count: number; suffix: string; name?: string }>()

  constructor(section: string, nameOf: (value: Json, suffix: string) => string, taken = new Set<string>()) {
    this.#section = section
    this.#nameOf = nameOf
    this.#taken = taken
  }

  count(value: unknown, suffix: string): void {
    const text = JSON.stringify(value)
    const known = this.#seen.get(text)
    if (known === undefined) this.#seen.set(text, { count: 1, suffix })
    else known.count += 1
  }

  /** A reference to the value where it is there more than once; else the value. */
  of(value: unknown, inner: (value: Json) => unknown = (it) => it): unknown {
    const text = JSON.stringify(value)
    const known = this.#seen.get(text)
    if (known === undefined || known.count < 2 || text.length < minLength) return inner(value as Json)
    if (known.name === undefined) {
      known.name = this.#free(this.#nameOf(value as Json, known.suffix))
      this.members[known.name] = inner(value as Json)
    }
    return { $ref: `#/components/${this.#section}/${known.name}` }
  }

  #free(wanted: string): string {
    let name = wanted
    for (let number = 2; this.#taken.has(name); number++) name = `${wanted}${number}`
    this.#taken.add(name)
    return name
  }
}

/** The schemas of members, by the member's name; what they are made of is counted with them. */
function countIn(schema: unknown, pool: Pool): void {
  eachProperty(schema, (name, property) => {
    // What has a name of its own in the reference has to say what it is.
    if (isObject(property) && property.description !== undefined) pool.count(property, name)
    countIn(property, pool)
  })
}

function replacedIn(schema: unknown, pool: Pool): unknown {
  if (!isObject(schema)) return schema
  const { properties, items } = schema
  return {
    ...schema,
    ...(isObject(properties) && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, it]) => [name, pool.of(it, (inner) => replacedIn(inner, pool))]),
      ),
    }),
    ...(isObject(items) && { items: replacedIn(items, pool) }),
  }
}

function eachProperty(schema: unknown, visit: (name: string, property: unknown) => void): void {
  if (!isObject(schema)) return
  if (isObject(schema.properties)) eachOf(schema.properties, visit)
  if (isObject(schema.items)) eachProperty(schema.items, visit)
}

function eachOf(values: unknown, visit: (key: string, value: unknown) => void): void {
  for (const [key, value] of Object.entries((values ?? {}) as Json)) visit(key, value)
}

const isObject = (value: unknown): value is Json => value !== null && typeof value === 'object' && !Array.isArray(value)

const pascal = (name: string): string =>
  name.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase()) || 'Value'
