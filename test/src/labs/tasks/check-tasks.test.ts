import { expect, test } from 'vitest'
import { readLabFile } from '../../../../src/labfile/read.ts'
import { applyPlan } from '../../../../src/labs/apply/executor.ts'
import { prepare } from '../../../../src/labs/apply/prepare.ts'
import { checkTasks } from '../../../../src/labs/tasks/check-tasks.ts'
import { tasksView } from '../../../../src/labs/tasks/tasks.ts'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import { labsInMemory, MemoryCompute, overriding } from '../../../support/memory-compute.ts'

const file = `lab: school
nodes: { PC1: { kind: pc }, PC2: { kind: pc } }
links: [{ name: cable, ends: [PC1, PC2] }]
checks:
  - { name: the first, on: PC1, type: show ip, expect: secret }
  - { name: the second, on: PC2, type: show ip, expect: secret }
tasks:
  - { name: One, checks: [the first] }
  - { name: Two, checks: [the first, the second], points: 4 }
`

/** A lab with two tasks, and a compute that answers consoles as the test says. */
async function school(expectOn: (node: string) => Promise<void>) {
  const labs = await labsInMemory(new MemoryCompute())
  const real = labs.computes.agent('local')
  const names = () => [...lab.document.nodes.values()]
  const agent = overriding(real, {
    nodes: {
      expect: async (ref: { node_id: string }) => {
        await expectOn(names().find(({ node_id }) => node_id === ref.node_id)?.name ?? '')
        return { output: '', matched: '' }
      },
    },
  })
  const agentFor = () => agent
  const desired = await readLabFile(file)
  const { project_id } = await labs.creation.create({ name: 'school' }, agentFor, { lastApplied: { by: 'anna' } })
  const lab = await labs.lab(project_id)
  const prepared = await prepare(labs, lab, desired, {}, agentFor)
  await applyPlan(labs, lab, { prepared, by: 'anna' }, agentFor).over
  const check = async () => {
    const { job_id } = await checkTasks(labs, lab, 'ada', agentFor)
    await expect.poll(() => labs.jobs.get(job_id).status).not.toBe('running')
    return labs.jobs.get(job_id)
  }
  return { labs, lab, check, agentFor }
}

const away = () => new ApiError(503, 'The compute is not connected', { code: 'compute-unreachable' })

test('a check that several tasks have runs once, and a task is done when all of its checks hold', async () => {
  const asked: string[] = []
  const { check, lab } = await school(async (node) => void asked.push(node))
  expect(await check()).toMatchObject({ status: 'done', done: 2, tasks: [{ state: 'done' }, { state: 'done' }] })
  expect(asked).toEqual(['PC1', 'PC2'])
  expect(lab.project().score).toMatchObject({ tasks: 2, points: 5, of: 5 })
})

test('while a compute is away the job says so, and the last results stay', async () => {
  let isAway = false
  const { check, lab } = await school(async (node) => {
    if (isAway && node === 'PC2') throw away()
  })
  await check()
  const before = tasksView(lab)
  isAway = true
  const job = await check()
  const reason = 'Its compute does not answer: the task was not checked, and its last result stays'
  expect(job).toMatchObject({
    ...{ status: 'failed', reason: `Two: ${reason}` },
    tasks: [
      { name: 'One', state: 'done', reason: null },
      { name: 'Two', state: 'unknown', reason },
    ],
  })
  expect(tasksView(lab)).toEqual({ ...before, checked_at: expect.any(String) })
})

test('a lab whose compute is not connected is refused with a sentence, and keeps its results', async () => {
  const { labs, lab, check, agentFor } = await school(async () => {})
  await check()
  lab.statusReason = 'Its compute local is not connected'
  await expect(checkTasks(labs, lab, 'ada', agentFor)).rejects.toMatchObject({
    status: 503,
    message: 'The tasks cannot be checked now: Its compute local is not connected. Their last results stay',
  })
  expect(lab.project().score).toMatchObject({ points: 5 })
})

test('a second request while a check runs is about the same job', async () => {
  let end = () => {}
  const wait = new Promise<void>((resolve) => {
    end = resolve
  })
  const { labs, lab, agentFor } = await school(() => wait)
  const [first, second] = await Promise.all([1, 2].map(() => checkTasks(labs, lab, 'ada', agentFor)))
  expect(second?.job_id).toBe(first?.job_id)
  end()
  await expect.poll(() => labs.jobs.get(first?.job_id ?? '').status).toBe('done')
})

test('the events of a job name no check', async () => {
  const { labs, check } = await school(async () => {
    throw new ApiError(400, 'expect: secret is not a regular expression')
  })
  const emitted: string[] = []
  const emit = labs.events.emit.bind(labs.events)
  labs.events.emit = (id, event) => {
    emitted.push(JSON.stringify(event))
    return emit(id, event)
  }
  expect((await check()).tasks?.map(({ reason }) => reason)).toEqual(['It does not work yet', '0 of 2 parts work'])
  expect(emitted.filter((event) => event.includes('job.')).length).toBeGreaterThan(1)
  expect(emitted.join('\n')).not.toMatch(/secret|the first|show ip/)
})
