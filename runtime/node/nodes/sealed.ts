import { conflict } from '../../../src/errors/api-error.ts'
import type { NodeKind } from '../kinds/kind.ts'

/**
 * A kind for nodes whose records a newer program wrote: they are shown, and what runs of them is stopped by its keeper. Nothing
 * else is known to be right for them, so nothing else is done.
 */
export function sealedKind(kind: NodeKind): NodeKind {
  const refuse = (): never => {
    throw conflict('A newer version of Patchbay wrote the record of the node: run that version to change it')
  }
  const { descriptor, schema, stopGraceMs } = kind
  return {
    ...{ descriptor, schema, stopGraceMs },
    ports: () => [],
    view: (node) => kind.view(node),
    adopt: refuse,
    prepare: async () => refuse(),
    update: async () => refuse(),
    launch: async () => refuse(),
    duplicate: async () => refuse(),
  }
}
