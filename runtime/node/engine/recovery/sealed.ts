import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { NodeKind } from '../nodes/kind.ts'

/**
 * A kind for nodes whose records a newer version wrote. They can be shown, and their keeper can stop them; other operations might
 * damage them and are refused.
 */
export function sealedKind(kind: NodeKind): NodeKind {
  const refuse = (): never => {
    throw conflict('A newer version of Patchbay wrote the record of the node: run that version to change it')
  }
  const { descriptor, schema, stopGraceMs } = kind
  return {
    descriptor,
    schema,
    stopGraceMs,
    ports: () => [],
    view: (node) => kind.view(node),
    adopt: refuse,
    prepare: async () => refuse(),
    update: async () => refuse(),
    launch: async () => refuse(),
    duplicate: async () => refuse(),
  }
}
