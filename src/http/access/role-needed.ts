import { greater } from '../../auth/identity.ts'
import type { Role } from '../../model/access-token.ts'
import { type Endpoint, roleOf } from '../endpoint.ts'
import type { Routes } from '../router.ts'

/**
 * The role that a request needs. What is handed on to a compute is asked there with the credentials of this service, which may
 * do everything: so the role counts that is needed there, too.
 */
export async function roleNeeded(routes: Routes, endpoint: Endpoint, method: string, path: string): Promise<Role> {
  let role = roleOf(endpoint)
  const there = endpoint.handsOn?.(path)
  if (there === undefined) return role
  // A compute that is another program may decode the path before it looks for what is meant.
  for (const spelling of new Set([there, decoded(there)])) {
    const match = await routes.find(method, spelling).catch(() => undefined)
    // It may know what we do not: by a word for a kind that only its settings have, a GET opens a console.
    role = greater(role, match !== undefined && 'endpoint' in match ? roleOf(match.endpoint) : 'operate')
  }
  return role
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
