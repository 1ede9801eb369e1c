import { type MetricFamily, type MetricSample, single } from '../../model/metrics.ts'

/** Known methods; others share one series, so that clients cannot make new series. */
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'other'] as const
const statuses = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const
/** Upper bounds of the buckets, seconds. */
const bounds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5] as const

/** Counters of one route, in preallocated arrays: counting allocates nothing. */
class RouteFigures {
  /** By method and status class. */
  readonly requests = new Float64Array(methods.length * statuses.length)
  /** Not cumulative; the last bucket is for values above every bound. */
  readonly buckets = new Float64Array(bounds.length + 1)
  seconds = 0
}

/** Counters of one route, as one program sends them to another. */
interface RouteCounts {
  readonly route: string
  readonly requests: readonly number[]
  readonly buckets: readonly number[]
  readonly seconds: number
}

/** Counters, as one program sends them to another. */
export interface RequestCounts {
  readonly routes: readonly RouteCounts[]
  /** Requests by the name of the credentials. */
  readonly credentials: readonly (readonly [name: string, requests: number])[]
}

/** Most names of credentials with a series of their own; all others share one. */
const maxNames = 100
const otherNames = 'other'

/** Counts the requests of the app. The number of series is bounded by the number of endpoints. */
export class RequestMetrics {
  readonly #routes = new Map<string, RouteFigures>()
  readonly #credentials = new Map<string, number>()
  #inFlight = 0

  /** Counts a request that begins; `end` must follow. */
  begin(): void {
    this.#inFlight += 1
  }

  /** Counts an answer that begins. `route` is the template of the endpoint, or empty: never the path, which clients choose. */
  end(route: string, method: string, status: number, seconds: number, name?: string): void {
    this.#inFlight -= 1
    this.count(route, method, status, seconds, name)
  }

  /** Reverts `begin` for a request that another program counts. */
  cancel(): void {
    this.#inFlight -= 1
  }

  /** Counts a request whose beginning was not counted. */
  count(route: string, method: string, status: number, seconds: number, name?: string): void {
    if (name !== undefined) this.#countName(name, 1)
    const figures = this.#figures(route)
    const request = indexOfMethod(method) * statuses.length + indexOfStatus(status)
    figures.requests[request] = (figures.requests[request] ?? 0) + 1
    const bucket = indexOfBucket(seconds)
    figures.buckets[bucket] = (figures.buckets[bucket] ?? 0) + 1
    figures.seconds += seconds
  }

  /** The counters since the last call, which resets them. */
  drain(): RequestCounts {
    const routes = [...this.#routes].map(([route, { requests, buckets, seconds }]) => ({
      route,
      requests: [...requests],
      buckets: [...buckets],
      seconds,
    }))
    const credentials = [...this.#credentials]
    this.#routes.clear()
    this.#credentials.clear()
    return { routes, credentials }
  }

  /** Adds the counters of another program. */
  add({ routes, credentials }: RequestCounts): void {
    for (const [name, requests] of credentials) this.#countName(name, requests)
    for (const { route, requests, buckets, seconds } of routes) {
      const figures = this.#figures(route)
      for (const index of figures.requests.keys())
        figures.requests[index] = (figures.requests[index] ?? 0) + (requests[index] ?? 0)
      for (const index of figures.buckets.keys())
        figures.buckets[index] = (figures.buckets[index] ?? 0) + (buckets[index] ?? 0)
      figures.seconds += seconds
    }
  }

  /** The metrics of all counters. */
  families(): MetricFamily[] {
    const routes = [...this.#routes]
    return [
      {
        name: 'patchbay_http_requests_total',
        help: 'Requests answered, by method, path template and class of status; route is empty where there is no endpoint.',
        type: 'counter',
        samples: routes.flatMap(([route, figures]) => requestSamples(route, figures)),
      },
      {
        name: 'patchbay_http_request_duration_seconds',
        help: 'Time from a request to the beginning of its answer, by path template.',
        type: 'histogram',
        samples: routes.flatMap(([route, figures]) => durationSamples(route, figures)),
      },
      {
        name: 'patchbay_credential_requests_total',
        help: `Requests of clients with credentials, by the name of the token or the user; beyond ${maxNames} names all others are "${otherNames}".`,
        type: 'counter',
        samples: [...this.#credentials].map(([credential, value]) => ({ labels: { credential }, value })),
      },
      single(
        'patchbay_http_requests_in_flight',
        'gauge',
        'Requests whose answer has not begun, this one among them.',
        this.#inFlight,
      ),
    ]
  }

  #countName(name: string, requests: number): void {
    const isOwn = this.#credentials.has(name) || this.#credentials.size < maxNames
    const counted = isOwn ? name : otherNames
    this.#credentials.set(counted, (this.#credentials.get(counted) ?? 0) + requests)
  }

  #figures(route: string): RouteFigures {
    const known = this.#routes.get(route)
    if (known !== undefined) return known
    const figures = new RouteFigures()
    this.#routes.set(route, figures)
    return figures
  }
}

function indexOfMethod(method: string): number {
  const index = methods.indexOf(method as (typeof methods)[number])
  return index < 0 ? methods.length - 1 : index
}

const indexOfStatus = (status: number): number => Math.min(Math.max(Math.floor(status / 100), 1), statuses.length) - 1

function indexOfBucket(seconds: number): number {
  let index = 0
  while (index < bounds.length && seconds > (bounds[index] ?? 0)) index += 1
  return index
}

/** Only series with a count: most endpoints have one method and few statuses. */
function requestSamples(route: string, { requests }: RouteFigures): MetricSample[] {
  return methods.flatMap((method, row) =>
    statuses.flatMap((status, column) => {
      const value = requests[row * statuses.length + column] ?? 0
      return value === 0 ? [] : [{ labels: { method, route, status }, value }]
    }),
  )
}

function durationSamples(route: string, { buckets, seconds }: RouteFigures): MetricSample[] {
  let count = 0
  const cumulative = [...buckets].map((value, index): MetricSample => {
    count += value
    return { suffix: '_bucket', labels: { route, le: String(bounds[index] ?? '+Inf') }, value: count }
  })
  return [
    ...cumulative,
    { suffix: '_sum', labels: { route }, value: seconds },
    { suffix: '_count', labels: { route }, value: count },
  ]
}
