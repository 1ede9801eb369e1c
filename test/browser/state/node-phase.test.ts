import { expect, test } from 'vitest'
import { phasesIn, stateName, stateWord } from '../../../runtime/browser/state/node-phase.ts'
import type { LabJob, LabNode } from '../../../src/client/patchbay.ts'

const job = (action: LabJob['action'], states: readonly LabJob['nodes'][number]['state'][], status = 'running') => ({
  ...({ action, status } as LabJob),
  nodes: states.map((state, index) => ({ node_id: `${action}${index}`, name: '', state, reason: null })),
})

test('a node is busy while a job works with it, and booting while it is not ready', () => {
  const phases = phasesIn([job('start', ['asked', 'unready', 'waiting', 'failed']), job('stop', ['asked'])])
  expect([...phases]).toEqual([
    ['start0', 'starting'],
    ['start1', 'booting'],
    ['stop0', 'stopping'],
  ])
  const node = (node_id: string) => ({ node_id, status: 'stopped' }) as LabNode
  expect([stateName(node('start0'), phases), stateName(node('start2'), phases)]).toEqual(['starting', 'stopped'])
})

test('people read running for the status started', () => {
  expect(['started', 'stopped', 'booting'].map(stateWord)).toEqual(['running', 'stopped', 'booting'])
})

test('an ended job has no part in it', () => {
  expect(phasesIn([job('start', ['asked'], 'cancelled')]).size).toBe(0)
})
