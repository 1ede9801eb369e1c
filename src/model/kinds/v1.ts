import type { TObject, TProperties } from '@sinclair/typebox'
import { closedSchema, objectSchema } from '../schema/fields.ts'

type Members = Readonly<Record<string, unknown>>

/** The schemas and conversions of a kind for v1. */
export interface KindV1 {
  readonly instance: TObject
  readonly create: TObject
  readonly update: TObject
  /** A node in the form of v1. */
  toView(node: Members): Members
  /** The input of a create or an update in the form of v2. */
  input(body: Members): Members
  /** Whether `start` answers with the instance. */
  readonly startShows: boolean
  /** Whether starts and stops are events. */
  readonly hasEvents: boolean
}

interface Differences extends Partial<Pick<KindV1, 'toView' | 'input' | 'startShows' | 'hasEvents'>> {
  /** Members of v2 that v1 does not have. */
  readonly lacks?: readonly string[]
  /** Members that v1 takes and does not show. */
  readonly hides?: readonly string[]
  /** Members that only v1 has, or whose schema differs in v1. */
  readonly instance?: TProperties
  readonly create?: TProperties
  readonly update?: TProperties
}

const without = <T extends Members>(members: T, names: readonly string[]): T =>
  Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name))) as T

/** The v1 of a kind, derived from its v2: `vm_id` and `vm_directory` stand for the id and the directory of the node. */
export function v1Of(
  noun: string,
  { node, create, update }: { readonly node: TObject; readonly create: TObject; readonly update: TObject },
  { lacks = [], hides = [], ...more }: Differences = {},
): KindV1 {
  const $id = String(node.$id).replace(/Node$/, 'Instance')
  const hidden = [...lacks, ...hides]
  const { node_id, node_directory, ...members } = node.properties
  const { node_id: newId, ...inputs } = without(create.properties, lacks)
  const toView: KindV1['toView'] = ({ node_id, node_directory, ...rest }) => ({
    vm_id: node_id,
    vm_directory: node_directory,
    ...without(rest, hidden),
  })
  return {
    instance: objectSchema($id, `${node.description}, as v1 shows it`, {
      vm_id: node_id,
      vm_directory: node_directory,
      ...without(members, hidden),
      ...more.instance,
    } as TProperties),
    create: closedSchema(
      `${$id}Create`,
      `The input that creates a ${noun} in v1; absent or null members get their defaults`,
      {
        ...inputs,
        vm_id: newId,
        ...more.create,
      } as TProperties,
    ),
    update: closedSchema(`${$id}Update`, `Changes to a ${noun}; absent or null members stay unchanged`, {
      ...without(update.properties, lacks),
      ...more.update,
    } as TProperties),
    toView: more.toView ?? toView,
    input: more.input ?? ((body) => body),
    startShows: more.startShows ?? false,
    hasEvents: more.hasEvents ?? true,
  }
}
