import { StateMachine, type Transitions } from '../../lib/state-machine.ts'
import type { ProjectRecord, Restoring } from '../lab/document.ts'

const restoreStates = ['none', 'swapping', 'committed', 'rolling-back', 'rolled-back'] as const
type RestoreState = (typeof restoreStates)[number]

/**
 * All transitions of a restore of a lab, by what causes them; docs/architecture.md shows them. The record of the project has the state as
 * `restoring.phase`, so that a restore goes on after a crash. A compute that still has the files of an earlier restore refuses `prepare`.
 */
export const restoreTransitions = {
  begin: { from: restoreStates, to: 'swapping', when: 'all computes have taken the step prepare' },
  commit: { from: ['swapping'], to: 'committed', when: 'all have taken commit; the document is swapped, too' },
  fail: { from: ['swapping'], to: 'rolling-back', when: 'a compute refuses, or the document is not saved' },
  revert: {
    from: ['swapping', 'rolling-back'],
    to: 'rolled-back',
    when: 'all have taken undo: files and document are as before',
  },
  end: {
    from: ['committed', 'rolled-back'],
    to: 'none',
    when: 'the old files are removed; nodes that ran are started',
  },
} as const satisfies Transitions<RestoreState, string>

export type RestoreEvent = keyof typeof restoreTransitions
export type RestoreFacts = Omit<Restoring, 'phase'>

/** The record of a project after an event of its restore. `facts`: what it has of the restore from then on; absent: what it had. */
export function afterRestoreEvent(
  { restoring, ...project }: ProjectRecord,
  event: RestoreEvent,
  facts: RestoreFacts | undefined = restoring,
): ProjectRecord {
  const state: RestoreState = restoring?.phase ?? 'none'
  const machine = new StateMachine('A restore', restoreTransitions, state)
  machine.move(event)
  return machine.state === 'none' || facts === undefined
    ? project
    : { ...project, restoring: { ...facts, phase: machine.state } }
}
