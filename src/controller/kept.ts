import type { TObject } from '@sinclair/typebox'
import { kindOf } from '../kinds/node.ts'
import { isKnownKind } from '../model/lab/node.ts'

type Members = Readonly<Record<string, unknown>>

/**
 * The properties of a node that a client of another program gave: those that its kind takes, and in `kept` those that the kind does
 * not know. What the kind only shows is left out. Without `kept` they are as they were given: the compute says what is wrong.
 */
export function sorted(
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

/** What is kept, with more. Undefined for nothing. */
export function keptWith(before: Members | undefined, more: Members | undefined): { kept?: Record<string, unknown> } {
  const all: Record<string, unknown> = { ...before, ...more }
  if (before?.properties !== undefined || more?.properties !== undefined)
    all.properties = { ...(before?.properties as Members), ...(more?.properties as Members) }
  return Object.keys(all).length === 0 ? {} : { kept: all }
}
