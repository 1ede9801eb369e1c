import { Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { Router } from 'itty-router'
import { ApiError, badRequest, notFound } from '../../lib/errors/api-error.ts'
import type { Method } from '../../lib/http/method.ts'
import type { Endpoint } from './endpoint.ts'
import { pathHint } from './path-hint.ts'

/** An endpoint and the parameters of the path that matched it, decoded. */
export interface RouteMatch {
  readonly endpoint: Endpoint
  readonly params: Readonly<Record<string, string>>
}

/** The endpoints at one path template. */
interface Route {
  readonly template: string
  readonly segments: readonly string[]
  /** The name of each parameter and the index of its segment. */
  readonly params: readonly (readonly [name: string, index: number])[]
  /** Whether the last parameter matches the rest of the path, with its slashes. */
  readonly hasTail: boolean
  /** How itty-router matches the path. Made when first asked for: a service has hundreds of routes. */
  readonly pattern: () => RegExp
  readonly methods: Map<Method, Endpoint>
  /** The route with a parameter in place of the last word, see `Endpoint.leavesName`. */
  named?: Route
}

/** Limit of the cache of path shapes. Ordinary requests have about as many shapes as there are routes. */
const maxShapes = 2000
/** Limits of the cache of paths. */
const maxPaths = 2000
const maxPathLength = 300

/** Finds the endpoint of a request: the first route that matches the path. */
export class Routes {
  readonly #routes: readonly Route[]
  readonly #fallback: Routes | undefined
  /** The literal segments of all templates. */
  readonly #words: ReadonlySet<string>
  /**
   * Cache: the shape of a path -> the route that matches it. A shape is a path in which `*` stands for each segment that is not a
   * literal of any template. A parameter matches any segment, so all paths of a shape have the same route.
   */
  readonly #known = new Map<string, Route>()
  /** Cache: a path -> its matches by method. Clients ask for the same nodes again and again. */
  readonly #matches = new Map<string, Map<string, RouteMatch>>()

  /** `fallback`: endpoints for paths that match none of the others. */
  constructor(endpoints: readonly Endpoint[], fallback: readonly Endpoint[] = []) {
    this.#fallback = fallback.length === 0 ? undefined : new Routes(fallback)
    const routes = new Map<string, Route>()
    for (const endpoint of endpoints) {
      const route = routes.get(endpoint.path) ?? routeOf(endpoint.path)
      route.methods.set(endpoint.method, endpoint)
      routes.set(endpoint.path, route)
    }
    this.#routes = [...routes.values()]
    for (const route of this.#routes) {
      if (![...route.methods.values()].some(({ leavesName }) => leavesName === true)) continue
      const isNamed = (it: Route) => it !== route && !it.hasTail && it.pattern().test(route.template)
      const named = this.#routes.find((it) => isNamed(it) && hasWordsOf(it, route.segments))
      if (named !== undefined) route.named = named
    }
    this.#words = new Set(this.#routes.flatMap(({ segments }) => segments.filter((segment) => !segment.includes('{'))))
  }

  /** The match, or the methods of the path for OPTIONS. 404, 405 with `Allow`, 400 for a malformed path. */
  find(method: string, path: string): RouteMatch | { methods: string } {
    try {
      return this.#find(method, path)
    } catch (error) {
      const found = this.#fallback?.match(method, path)
      if (found === undefined || !Check(found.endpoint.params ?? Type.Object({}), found.params)) throw error
      return found
    }
  }

  /** The match; undefined where `find` throws, and for OPTIONS. */
  match(method: string, path: string): RouteMatch | undefined {
    try {
      const found = this.find(method, path)
      return 'endpoint' in found ? found : undefined
    } catch {
      return undefined
    }
  }

  #find(method: string, path: string): RouteMatch | { methods: string } {
    const known = this.#matches.get(path)?.get(method)
    if (known !== undefined) return known
    const found = this.#findAnew(method, path)
    if ('endpoint' in found && path.length <= maxPathLength) {
      if (this.#matches.size >= maxPaths) this.#matches.clear()
      this.#matches.set(path, (this.#matches.get(path) ?? new Map<string, RouteMatch>()).set(method, found))
    }
    return found
  }

  #findAnew(method: string, path: string): RouteMatch | { methods: string } {
    if (path.includes('//') && !path.includes('/files/')) throw this.#nothingAt(path)
    const segments = path.split('/')
    const route = this.#routeOf(path, segments)
    if (route === undefined) throw this.#nothingAt(path)
    const methods = route.named === undefined ? route.methods : new Map([...route.named.methods, ...route.methods])
    if (method === 'OPTIONS') return { methods: allowed(methods) }
    const wanted = (method === 'HEAD' ? 'GET' : method) as Method
    for (const it of [route, route.named]) {
      const endpoint = it?.methods.get(wanted)
      if (it !== undefined && endpoint !== undefined) return { endpoint, params: paramsOf(it, segments) }
    }
    const allow = allowed(methods)
    const instead = allow.replace(/, (?=[A-Z]+$)/, ' or ')
    throw new ApiError(405, `Method ${method} is not allowed; use ${instead}`, { headers: { Allow: allow } })
  }

  #routeOf(path: string, segments: readonly string[]): Route | undefined {
    let shape = ''
    for (const word of segments) shape += word === '' || this.#words.has(word) ? `/${word}` : '/*'
    const known = this.#known.get(shape)
    if (known !== undefined) return known
    const found = this.#routes.find((route) => hasWordsOf(route, segments) && route.pattern().test(path))
    if (found !== undefined && !found.hasTail && this.#known.size < maxShapes) this.#known.set(shape, found)
    return found
  }

  #nothingAt(path: string): ApiError {
    const hint = pathHint(
      path,
      this.#routes.map(({ template }) => template),
    )
    return notFound(`No such endpoint: ${path.slice(0, 200)}${hint}`, {
      code: 'no-such-path',
    })
  }
}

function allowed(methods: ReadonlyMap<Method, Endpoint>): string {
  return [
    ...(methods.has('GET') ? ['GET', 'HEAD'] : []),
    ...[...methods.keys()].filter((it) => it !== 'GET'),
    'OPTIONS',
  ].join(', ')
}

const parameter = /^\{(\w+)\}$/
/** The name of an image and the path of an action at a compute have slashes, too. */
const tail = /\{(path|filename|action)\}$/

function routeOf(template: string): Route {
  const segments = template.split('/')
  const params = segments.flatMap((segment, index) => {
    const name = parameter.exec(segment)?.[1]
    return name === undefined ? [] : [[name, index] as const]
  })
  let known: RegExp | undefined
  return {
    template,
    segments,
    params,
    hasTail: tail.test(template),
    methods: new Map(),
    pattern: () => (known ??= patternOf(template)),
  }
}

/** Only the pattern is taken: the router itself would parse a URL for each request, and try one route after the other. */
function patternOf(template: string): RegExp {
  const pattern = Router().all(ittyPath(template)).routes[0]?.[1]
  if (pattern === undefined) throw new Error(`itty-router has no pattern for ${template}`)
  return pattern
}

/** Whether the path has the words of the template where the template has them. */
const hasWordsOf = ({ segments }: Route, path: readonly string[]): boolean =>
  segments.every((word, at) => word === path[at] || word.includes('{'))

/** `/a/{b}/files/{path}` -> `/a/:b/files/:path+` */
const ittyPath = (template: string): string => template.replace(tail, ':$1+').replace(/\{(\w+)\}/g, ':$1')

/** The parameters, decoded exactly once. */
function paramsOf({ params, hasTail }: Route, path: readonly string[]): Record<string, string> {
  const decoded: Record<string, string> = {}
  for (const [at, [name, index]] of params.entries()) {
    const text = hasTail && at === params.length - 1 ? path.slice(index).join('/') : (path[index] ?? '')
    decoded[name] = text.includes('%') ? decode(name, text) : text
    if (decoded[name].includes('\0')) throw badRequest(`${name}: must not contain a NUL character`)
  }
  return decoded
}

function decode(name: string, text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (cause) {
    throw badRequest(`${name}: malformed percent-encoding in the path; write a literal percent sign as %25`, { cause })
  }
}
