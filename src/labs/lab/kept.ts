import type { TObject } from '@sinclair/typebox'
import { kindOf } from '../../model/kinds/node.ts'
import { isKnownKind } from '../../model/lab/node.ts'

type Members = Readonly<Record<string, unknown>>

/**
 * Splits the properties of a node from a client of another program (its input has `kept`): `properties` has those that the kind
 * accepts, `kept` those that are unknown to it; read-only ones are dropped. Other input stays as it is, and the compute validates it.
 */
export function splitKept(
  node_type: string,
  input: 'create' | 'update',
  { properties = {}, kept }: { readonly properties?: Members | undefined; readonly kept?: Members | null | undefined },
): { properties: Members; kept: Members | undefined } {
  if (kept === undefined || kept === null || !isKnownKind(node_type)) return { properties, kept: kept ?? undefined }
  const { node, [input]: taken } = kindOf(node_type)
  const of = (isWanted: (name: string) => boolean) =>
    Object.fromEntries(Object.entries(properties).filter(([name]) => isWanted(name)))
  const has = (schema: TObject, name: string) => Object.hasOwn(schema.properties, name)
  const unknown = of((name) => !has(taken, name) && !has(node, name))
  return {
    properties: of((name) => has(taken, name)),
    kept: { ...kept, ...(Object.keys(unknown).length > 0 && { properties: unknown }) },
  }
}

/** Merges two sets of kept members. Without any member the result has no `kept`. */
export function keptWith(before: Members | undefined, more: Members | undefined): { kept?: Record<string, unknown> } {
  const all: Record<string, unknown> = { ...before, ...more }
  if (before?.properties !== undefined || more?.properties !== undefined)
    all.properties = { ...(before?.properties as Members), ...(more?.properties as Members) }
  return Object.keys(all).length === 0 ? {} : { kept: all }
}
