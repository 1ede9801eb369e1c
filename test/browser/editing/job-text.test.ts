import { expect, test } from 'vitest'
import { failureText, plainReason, progressText } from '../../../runtime/browser/editing/job-text.ts'
import type { LabJob } from '../../../src/model/lab/job.ts'

const job = (changes: Partial<LabJob>): LabJob => ({
  ...{ job_id: 'j', project_id: 'p', action: 'start', status: 'failed', reason: null },
  ...{ started_at: '', ended_at: '', total: 1, done: 0, failed: 1, skipped: 0, nodes: [], ...changes },
})
const node = (name: string, state: 'failed' | 'skipped', reason: string | null): LabJob['nodes'][number] => ({
  ...{ node_id: name, name, state, reason },
})

test('a failed start is a sentence with the name of the node and the reason', () => {
  const nodes = [node('R1', 'failed', 'the image vios.qcow2 is missing')]
  expect(failureText(job({ nodes }))).toBe('R1 did not start: the image vios.qcow2 is missing')
  expect(failureText(job({ nodes, action: 'stop' }))).toBe('R1 did not stop: the image vios.qcow2 is missing')
})

test('the name of a node is not said twice', () => {
  const nodes = [node('R1', 'failed', 'R1: hda_disk_image: "vios.qcow2" does not exist')]
  expect(failureText(job({ nodes }))).toBe('R1 did not start: "vios.qcow2" does not exist')
})

test('of several nodes the numbers come first, then the first failure', () => {
  const nodes = [node('R1', 'failed', 'no image'), node('R2', 'failed', 'no port'), node('R3', 'skipped', null)]
  expect(failureText(job({ nodes, total: 6, done: 3, failed: 2, skipped: 1 }))).toBe(
    '3 started, 2 failed, 1 not tried. R1 did not start: no image',
  )
})

test('a job of which no node failed has no such message', () => {
  expect(failureText(job({ failed: 0, nodes: [node('R1', 'skipped', 'x')] }))).toBeUndefined()
})

test.each([
  ['hda_disk_image: "vios.qcow2" does not exist', '"vios.qcow2" does not exist'],
  ['The program ended by itself: exit code 1', 'The program ended by itself: exit code 1'],
  ['port_mappings[0]: no device eth7', 'no device eth7'],
])('the reason %j is shown as %j', (reason, shown) => {
  expect(plainReason(reason)).toBe(shown)
})

test('the progress of a job says what is done, and what is counted', () => {
  expect(progressText(job({ status: 'running', done: 3, total: 12 }))).toBe('Starting: 3 of 12 nodes')
  expect(progressText(job({ action: 'check', done: 1, total: 2 }))).toBe('Running the checks: 1 of 2 checks')
  expect(progressText(job({ action: 'check', done: 1, total: 2, tasks: [] }))).toBe('Checking the tasks: 1 of 2 tasks')
})
