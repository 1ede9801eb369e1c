import type { TProperties, TSchema } from '@sinclair/typebox'
import { closedSchema, maybes, Name } from '../schema/fields.ts'
import { consolePort, newNodeId } from '../schema/node-fields.ts'

type None = Record<never, never>

/** The schema of a node, as far as it matters here. */
interface Shown<T> {
  readonly $id?: string
  readonly properties: { readonly console_type: T }
}

interface Members<R, C, O> {
  /** What a new node must be given, beside its name. */
  readonly required?: R
  /** What only a new node may be given. */
  readonly atCreation?: C
  readonly optional?: O
  /** What is to be said of changes. */
  readonly note?: string
}

/** What new nodes of a kind are given, and changes of them. Null and absent mean the default, and "leave as it is". */
export function inputsOf<
  T extends TSchema,
  R extends TProperties = None,
  C extends TProperties = None,
  O extends TProperties = None,
>(
  noun: string,
  node: Shown<T>,
  { required = {} as R, atCreation = {} as C, optional = {} as O, note = '' }: Members<R, C, O>,
) {
  const { console_type } = node.properties
  const both = { ...maybes({ console: consolePort, console_type }), ...maybes(optional) }
  return {
    create: closedSchema(`${node.$id}Create`, `What a ${noun} is created with; absent and null mean "the default"`, {
      name: Name,
      node_id: newNodeId,
      ...required,
      ...maybes(atCreation),
      ...both,
    }),
    update: closedSchema(`${node.$id}Update`, `Changes of a ${noun}; absent and null mean "leave as it is"${note}`, {
      ...maybes({ name: Name, ...required }),
      ...both,
    }),
  }
}
