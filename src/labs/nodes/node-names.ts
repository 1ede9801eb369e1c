import { type ApiError, badRequest, conflict } from '../../lib/errors/api-error.ts'
import { type FreeName, freeName, nameKey } from '../../model/lab/names.ts'
import { isUuid } from '../../model/schema/fields.ts'
import type { Lab } from '../lab/lab.ts'

/** 409 when a snapshot that was restored meanwhile has brought back a node of this name. `self`: the node that gets it. */
export function requireStillFree({ document }: Lab, name: string, self: string): void {
  const key = nameKey(name)
  const taken = [...document.nodes.values()].find((it) => it.node_id !== self && nameKey(it.name) === key)
  if (taken !== undefined) throw nameTaken(taken.name)
}

const nameTaken = (name: string): ApiError =>
  conflict(`name: the project already has a node ${name}; choose another name`, { code: 'name-taken' })

export const nameClaim = (name: string): string => `name/${nameKey(name)}`

/**
 * Claims names that nodes get again, until the result is called: of nodes that have others now, or are not there. 409 when another request is
 * giving one to a node.
 */
export function claimNames(lab: Lab, names: readonly string[]): () => void {
  const pending = names.find((name) => lab.claimed.has(nameClaim(name)))
  if (pending !== undefined) throw conflict(`Another request is naming a node ${pending}: try again when it is done`)
  for (const name of names) lab.claimed.add(nameClaim(name))
  return () => {
    for (const name of names) lab.claimed.delete(nameClaim(name))
  }
}

interface Naming {
  readonly unique?: 'refuse' | undefined
  readonly free?: FreeName | undefined
  /** The node that gets the name. */
  readonly self?: string
}

/** Claims a free name for a node; the caller deletes the claim. 400 for a UUID, 409 for a taken name with `unique`. */
export function takeName(lab: Lab, wanted: string, { unique, free = freeName, self }: Naming): string {
  if (isUuid(wanted)) throw badRequest('name: a name must not look like an id (UUID); choose another name')
  const others = [...lab.document.nodes.values()].filter(({ node_id }) => node_id !== self)
  const taken = new Map(others.map(({ name }) => [nameKey(name), name]))
  const isTaken = (key: string) => taken.has(key) || lab.claimed.has(`name/${key}`)
  if (unique === 'refuse' && isTaken(nameKey(wanted))) throw nameTaken(taken.get(nameKey(wanted)) ?? wanted)
  const name = free(wanted, isTaken)
  lab.claimed.add(nameClaim(name))
  return name
}
