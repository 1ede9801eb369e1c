import { expect, test } from 'vitest'
import { EventLog } from '../../../../src/fleet/events/event-log.ts'
import type { ComputeAgents } from '../../../../src/labs/computes/agents.ts'
import type { ComputePool } from '../../../../src/labs/computes/compute-pool.ts'
import { Jobs } from '../../../../src/labs/jobs/jobs.ts'
import type { NodeRecord, ProjectRecord } from '../../../../src/labs/lab/document.ts'
import { Lab } from '../../../../src/labs/lab/lab.ts'
import type { LabStorage } from '../../../../src/labs/lab/store.ts'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import type { LabEvent } from '../../../../src/model/lab/event.ts'

/** A job on one pc, of which the compute fails so. */
async function jobThatFails(failure: Error) {
  const reported: unknown[] = []
  const node = { node_id: crypto.randomUUID(), name: 'PC1', node_type: 'pc', compute_id: 'a', after: [], ready: null }
  const entries = new Map<string, unknown>([
    ['project', { name: 'lab' } as ProjectRecord],
    [`node/${node.node_id}`, node as unknown as NodeRecord],
  ])
  const events = new EventLog<LabEvent>({ history: 10, feeds: () => 1 }, () => ({
    cpu_usage_percent: 0,
    memory_usage_percent: 0,
  }))
  const lab = new Lab(crypto.randomUUID(), entries, {} as LabStorage, events)
  events.openProject(lab.id)
  const agentFor = (() => ({ nodes: { stop: () => Promise.reject(failure) } })) as unknown as ComputeAgents
  const jobs = new Jobs({ computes: {} as ComputePool, report: (error, what) => void reported.push([error, what]) })
  const { id, over } = jobs.start(lab, { action: 'stop' }, agentFor)
  await expect(over).rejects.toThrow(failure.message)
  return { job: jobs.get(id), reported }
}

test('a defect of the service in a job is reported in the log, and not to the client', async () => {
  const defect = new TypeError('undefined is not a function')
  const { job, reported } = await jobThatFails(defect)
  expect(job).toMatchObject({
    status: 'failed',
    reason: expect.stringMatching(/^PC1: Internal error of the service/),
  })
  expect(reported).toEqual([[defect, expect.stringContaining(job.job_id)]])
})

test('a refusal of a compute is shown, and not logged', async () => {
  const { job, reported } = await jobThatFails(new ApiError(503, 'The compute is not there'))
  expect(job.reason).toBe('PC1: The compute is not there')
  expect(reported).toEqual([])
})
