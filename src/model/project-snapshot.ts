import { type Static, Type } from '@sinclair/typebox'
import type { Transitions } from '../lib/state-machine.ts'
import { objectSchema, oneOf, Uuid } from './schema/fields.ts'

/** What a compute keeps of a state of a project. */
export type ProjectSnapshot = Static<typeof ProjectSnapshot>
export const ProjectSnapshot = objectSchema('ProjectSnapshot', 'The nodes and files of a project as they were', {
  snapshot_id: Uuid,
  created_at: Type.Integer({ description: 'Milliseconds since 1970' }),
  size: Type.Integer({ description: 'Bytes' }),
  ran: Type.Optional(
    Type.Record(Type.String(), oneOf(['started', 'suspended']), { description: 'Nodes that were not stopped, by id' }),
  ),
})

/** What a compute has of a restore: nothing, the files of the snapshot beside those of the project, or swapped ones. */
const restoreStates = ['none', 'prepared', 'swapped'] as const

/** Steps of a restore, so that several computes restore together or not at all; docs/architecture.md shows them. */
export const restoreSteps = {
  prepare: { from: ['none', 'prepared'], to: 'prepared', when: 'copies the files next to those of the project' },
  commit: { from: ['prepared', 'swapped'], to: 'swapped', when: 'swaps them, while the project is closed' },
  undo: { from: restoreStates, to: 'none', when: 'reverts either of them' },
  finish: { from: restoreStates, to: 'none', when: 'deletes the previous state' },
} as const satisfies Transitions<(typeof restoreStates)[number], RestoreStep>

export type RestoreStep = Static<typeof RestoreStep>
export const RestoreStep = oneOf(['prepare', 'commit', 'undo', 'finish'], {
  description:
    'prepare: copies the files next to the files of the project; commit: swaps them, while the project is closed; ' +
    'undo: reverts either of them; finish: deletes the previous state',
})
