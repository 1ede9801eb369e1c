import type { TProperties, TSchema } from '@sinclair/typebox'
import { closedSchema, maybes, Name } from '../schema/fields.ts'
import { consolePort, newNodeId } from '../schema/node-fields.ts'

type None = Record<never, never>

/** The parts of a node's schema that `inputsOf` reads. */
interface Shown<T> {
  readonly $id?: string
  readonly properties: { readonly console_type: T }
}

interface Members<R, C, O> {
  /** Required members of a create, besides the name. */
  readonly required?: R
  /** Optional members of a create only. */
  readonly atCreation?: C
  readonly optional?: O
  /** Added to the description of the update. */
  readonly note?: string
}

/** The input of a create and of an update of nodes. Null and absent mean the default in a create, no change in an update. */
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
    create: closedSchema(
      `${node.$id}Create`,
      `The input that creates a ${noun}; absent or null members get their defaults`,
      {
        name: Name,
        node_id: newNodeId,
        ...required,
        ...maybes(atCreation),
        ...both,
      },
    ),
    update: closedSchema(`${node.$id}Update`, `Changes to a ${noun}; absent or null members stay unchanged${note}`, {
      ...maybes({ name: Name, ...required }),
      ...both,
    }),
  }
}
