import type { Role } from '../../model/access/access-token.ts'
import { greater } from '../../model/access/identity.ts'
import { type Endpoint, roleOf } from '../http/endpoint.ts'
import type { Routes } from '../http/router.ts'

/**
 * The role that a request needs. A forwarded request reaches the compute with the credentials of this service, which are those of
 * an administrator: therefore the role that the endpoint of the compute needs counts, too.
 */
export function roleNeeded(routes: Routes, endpoint: Endpoint, method: string, path: string): Role {
  let role = roleOf(endpoint)
  const there = endpoint.forwardPath?.(path)
  if (there === undefined) return role
  // Another program as compute may decode the path before it matches its routes.
  for (const spelling of spellingsOf(there)) {
    const match = routes.match(method, spelling)
    // The settings of the compute may add a kind that is unknown here, and a GET may open a console by its name.
    role = greater(role, match !== undefined ? roleOf(match.endpoint) : 'operate')
  }
  return role
}

/** A path, and how a program reads it that decodes it first. */
export const spellingsOf = (path: string): string[] => [...new Set([path, decoded(path)])]

/** A path without its percent-encoding; as it is where that is malformed. */
export function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
