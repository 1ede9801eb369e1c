import { conflict } from '../../../src/errors/api-error.ts'
import type { NodeKind } from './kind.ts'

/**
 * A kind for nodes whose records a newer program wrote: they are shown, and what runs of them is stopped by its keeper. Nothing
 * else is known to be right for them, so nothing else is done.
 */
export function sealedKind({ kind, stopGraceMs, view }: NodeKind, self: NodeKind): NodeKind {
  const refuse = (): never => {
    throw conflict('A newer version of Patchbay wrote the record of the node: run that version to change it')
  }
  return {
    kind,
    stopGraceMs,
    ports: () => [],
    consolePool: () => undefined,
    properties: () => ({}),
    restored: (properties) => properties,
    view: (node) => view.call(self, node),
    claimed: refuse,
    prepare: async () => refuse(),
    update: async () => refuse(),
    launch: async () => refuse(),
    duplicate: async () => refuse(),
  }
}
