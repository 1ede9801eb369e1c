import type { EventPayload } from '../../../../src/model/event.ts'
import type { KindNode } from './kind.ts'

/** Warnings about a node as events of the log, each with the name of the node. */
export const warningsOf = (
  { record }: Pick<KindNode<unknown>, 'record'>,
  messages: readonly (string | undefined)[],
): EventPayload[] =>
  messages.flatMap((message) =>
    message === undefined ? [] : [{ type: 'log.warning', message: `${record.name}: ${message}` }],
  )
