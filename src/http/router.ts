import { Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { type IRequestStrict, Router } from 'itty-router'
import { ApiError, badRequest, notFound } from '../errors/api-error.ts'
import type { Endpoint, Method } from './endpoint.ts'
import { pathHint } from './path-hint.ts'

/** An endpoint and the still percent-encoded parameters of the path that matched it. */
export interface Match {
  readonly endpoint: Endpoint
  readonly params: Readonly<Record<string, string>>
}

/** The used part of itty-router's type, which types every unknown property as a route. */
interface Table {
  all(path: string, handler: (request: Probe) => Found | undefined): unknown
  fetch(request: Probe): Promise<Found | undefined>
}
type Probe = Pick<IRequestStrict, 'params'> & { method: string; url: string }
interface Found {
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
}

/** The endpoints at one path template. */
interface Route {
  readonly template: string
  readonly methods: ReadonlyMap<Method, Endpoint>
  /** The parameter in each segment. */
  readonly names: readonly (string | undefined)[]
}

/** Limit of the cache of path shapes. Ordinary requests have about as many shapes as there are routes. */
const maxShapes = 2000

/** Finds the endpoint of a request. Throws 404 for an unknown path, and 405 with the methods of a known one. */
export class Routes {
  /** A router with all routes. itty-router tries them one after the other. */
  readonly #table = Router() as unknown as Table
  readonly #templates: readonly string[]
  readonly #onward: Routes | undefined
  /** The literal segments of all templates. */
  readonly #words: ReadonlySet<string>
  /**
   * Cache: the shape of a path -> the route that matches it. A shape is a path in which `*` stands for each segment that is not a
   * literal of any template. A parameter matches any segment, so all paths of a shape have the same route.
   */
  readonly #known = new Map<string, Route>()

  /** `onward`: tried for what is not among the others. */
  constructor(endpoints: readonly Endpoint[], onward: readonly Endpoint[] = []) {
    this.#onward = onward.length === 0 ? undefined : new Routes(onward)
    const byPath = new Map<string, Map<Method, Endpoint>>()
    for (const endpoint of endpoints) {
      const methods = byPath.get(endpoint.path) ?? new Map<Method, Endpoint>()
      byPath.set(endpoint.path, methods.set(endpoint.method, endpoint))
    }
    this.#templates = [...byPath.keys()]
    this.#words = new Set(this.#templates.flatMap((template) => template.split('/').filter((it) => !it.includes('{'))))
    for (const [template, methods] of byPath) {
      const names = template.split('/').map((segment) => /^\{(\w+)\}$/.exec(segment)?.[1])
      const route: Route = { template, methods, names }
      this.#table.all(ittyPath(template), ({ params }) => ({ route, params }))
    }
  }

  /** `methods` of the path beside the match, for OPTIONS. 404, 405 with `Allow`, 400 for a path that is malformed. */
  async find(method: string, path: string): Promise<Match | { methods: string }> {
    try {
      return await this.#find(method, path)
    } catch (error) {
      const found = await this.#onward?.find(method, path).catch(() => undefined)
      if (found === undefined || !('endpoint' in found)) throw error
      if (!Check(found.endpoint.params ?? Type.Object({}), found.params)) throw error
      return found
    }
  }

  async #find(method: string, path: string): Promise<Match | { methods: string }> {
    if (path.includes('//') && !path.includes('/files/')) throw this.#nothingAt(path)
    // itty-router reads only the path of the URL. `//` in a tail is replaced, so that it matches as one segment.
    const segments = path.replaceAll('//', '/%2F')
    const words = segments.split('/')
    const shape = this.#shapeOf(words)
    let route = this.#known.get(shape)
    let params = route === undefined ? {} : paramsAt(route, words)
    if (route === undefined) {
      const found = await this.#table.fetch({ method: 'GET', url: `http://path${segments}`, params: {} })
      if (found === undefined) throw this.#nothingAt(path)
      ;({ route, params } = found)
      if (isOfShape(route, params, words) && this.#known.size < maxShapes) this.#known.set(shape, route)
    }
    if (method === 'OPTIONS') return { methods: allowed(route.methods) }
    const endpoint = route.methods.get((method === 'HEAD' ? 'GET' : method) as Method)
    if (endpoint !== undefined) return { endpoint, params: decode(params) }
    const allow = allowed(route.methods)
    throw new ApiError(405, `${method} is not possible here; ${allow} are`, { headers: { Allow: allow } })
  }

  #shapeOf(words: readonly string[]): string {
    let shape = ''
    for (const word of words) shape += this.#words.has(word) ? `/${word}` : '/*'
    return shape
  }

  #nothingAt(path: string): ApiError {
    return notFound(`There is nothing at ${path.slice(0, 200)}${pathHint(path, this.#templates)}`, {
      word: 'no-such-path',
    })
  }
}

/** Not with a tail of several segments, nor where the runtime folds dot segments of the path. */
const isOfShape = ({ template, names }: Route, params: Readonly<Record<string, string>>, words: readonly string[]) =>
  words.length === names.length &&
  !tail.test(template) &&
  template.split('/').every((word, index) => (params[names[index] ?? ''] ?? word) === words[index])

function paramsAt({ names }: Route, words: readonly string[]): Record<string, string> {
  const params: Record<string, string> = {}
  for (const [index, name] of names.entries()) if (name !== undefined) params[name] = words[index] ?? ''
  return params
}

function allowed(methods: ReadonlyMap<Method, Endpoint>): string {
  return [
    ...(methods.has('GET') ? ['GET', 'HEAD'] : []),
    ...[...methods.keys()].filter((it) => it !== 'GET'),
    'OPTIONS',
  ].join(', ')
}

const tail = /\{(path|filename|action)\}$/

/** `/a/{b}/files/{path}` -> `/a/:b/files/:path+`; the name of an image and what a compute is asked may have slashes too. */
export function ittyPath(template: string): string {
  return template.replace(tail, ':$1+').replace(/\{(\w+)\}/g, ':$1')
}

/** Decodes the parameters, exactly once. */
function decode(params: Readonly<Record<string, string>>): Record<string, string> {
  const decoded: Record<string, string> = {}
  for (const name of Object.keys(params)) {
    const value = params[name] ?? ''
    try {
      decoded[name] = value.includes('%') ? decodeURIComponent(value) : value
    } catch (cause) {
      const message = `${name}: malformed percent-encoding in the path: a percent sign itself is written %25`
      throw badRequest(message, { cause })
    }
    if (decoded[name]?.includes('\0')) throw badRequest(`${name}: a NUL character is not possible here`)
  }
  return decoded
}
