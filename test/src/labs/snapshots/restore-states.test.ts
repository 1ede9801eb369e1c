import { expect, test } from 'vitest'
import type { ProjectRecord } from '../../../../src/labs/lab/document.ts'
import { afterRestoreEvent, type RestoreEvent } from '../../../../src/labs/snapshots/restore-states.ts'

const project = { project_id: 'p', name: 'lab' } as ProjectRecord
const begun = { snapshot_id: 's', lastRunning: { n: 'started' as const } }
const after = (...events: RestoreEvent[]) =>
  events.reduce((record, event) => afterRestoreEvent(record, event), afterRestoreEvent(project, 'begin', begun))

test.each([
  [[], 'swapping'],
  [['commit'], 'committed'],
  [['fail'], 'rolling-back'],
  [['fail', 'revert'], 'rolled-back'],
  // The record could not be saved when the restore failed.
  [['revert'], 'rolled-back'],
] as const)('after %j a restore is %s, and its record keeps what it is about', (events, phase) => {
  expect(after(...events)).toEqual({ ...project, restoring: { ...begun, phase } })
})

test.each([[['commit', 'end']], [['fail', 'revert', 'end']]] as const)(
  'after %j the record has no restore',
  (events) => {
    expect(after(...events)).toEqual(project)
  },
)

test('a restore that was not finished is followed by the next one', () => {
  const next = { snapshot_id: 'other' }
  expect(afterRestoreEvent(after('commit'), 'begin', next).restoring).toEqual({ ...next, phase: 'swapping' })
})

test.each([
  { events: [], event: 'end' },
  { events: ['commit'], event: 'fail' },
  { events: ['fail'], event: 'commit' },
  { events: ['fail', 'revert'], event: 'commit' },
] as const)('after $events there is no "$event"', ({ events, event }) => {
  expect(() => after(...events, event)).toThrow(`has no transition "${event}"`)
})
