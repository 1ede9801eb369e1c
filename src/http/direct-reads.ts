import { setNewest } from '../async/newest.ts'
import { isUuid } from '../schema/fields.ts'
import { type Endpoint, roleOf } from './endpoint.ts'
import { isPlainTarget } from './plain-target.ts'
import type { RouteMatch, Routes } from './router.ts'

/** A GET about one project, which a gateway hands on as it is. */
export interface DirectRead {
  readonly endpoint: Endpoint
  /** In our words for kinds. */
  readonly path: string
  /** Lower-case. */
  readonly projectId: string
  /** Whether the endpoint answers with JSON. */
  readonly isJson: boolean
}

/** Most paths that are remembered, and the length of the longest. */
const maxPaths = 2000
const maxPathLength = 300

/** Which GETs a gateway may hand on without a look at anything but their path: the others open websockets, or need more than the role `read`. */
export class DirectReads {
  readonly #routes: Routes
  readonly #ours: (path: string) => string
  readonly #isValid: (match: RouteMatch) => boolean
  readonly #known = new Map<string, DirectRead | 'none'>()

  /** `ours`: a path in our words for kinds. `isValid`: whether the parameters of a path are. */
  constructor(routes: Routes, ours: (path: string) => string, isValid: (match: RouteMatch) => boolean) {
    this.#routes = routes
    this.#ours = ours
    this.#isValid = isValid
  }

  /** The read of a GET; undefined: any other way. For paths of clients that were let in, as it remembers them. */
  of(path: string): DirectRead | undefined {
    const known = this.#known.get(path) ?? this.#remember(path)
    return known === 'none' ? undefined : known
  }

  #remember(path: string): DirectRead | 'none' {
    const found = this.#find(path) ?? 'none'
    if (path.length <= maxPathLength) setNewest(this.#known, path, found, maxPaths)
    return found
  }

  #find(asked: string): DirectRead | undefined {
    const path = this.#ours(asked)
    const match = this.#routes.match('GET', path)
    if (match === undefined || !this.#isValid(match) || !isPlainTarget(path)) return undefined
    const { endpoint, params } = match
    const projectId = params.project_id?.toLowerCase()
    const isPlain = endpoint.owner === 'project' && endpoint.method === 'GET' && roleOf(endpoint) === 'read'
    const isOther = endpoint.websocket === true || endpoint.handsOn !== undefined || endpoint.public === true
    if (!isPlain || isOther || projectId === undefined || !isUuid(projectId)) return undefined
    return { endpoint, path, projectId, isJson: endpoint.replies[200]?.schema !== undefined }
  }
}
