import { expect, test, vi } from 'vitest'
import { Changes } from '../../../../src/labs/lab/document.ts'
import { drainCompute } from '../../../../src/labs/moves/drain.ts'
import { moveLab, recoverMove } from '../../../../src/labs/moves/move.ts'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import { labsInMemory, MemoryCompute, overriding } from '../../../support/memory-compute.ts'
import { MemoryLabs } from '../../../support/memory-labs.ts'

const project_id = '6b1f7c1e-9d0b-4b7c-8f3a-2f5d9c0e7a41'

test('a move to a compute that was removed from the fleet meanwhile is cleared from the lab', async () => {
  const compute = new MemoryCompute()
  const labs = await labsInMemory(compute)
  const agentFor = labs.computes.agent
  await labs.creation.create({ project_id, name: 'moved', compute_id: 'local' }, agentFor)
  const lab = await labs.lab(project_id)
  await labs.documents.saveServiceChange(lab, (project) =>
    new Changes().project({ ...project, moving: { from: 'local', to: 'removed' }, formerComputes: ['another'] }),
  )
  await recoverMove(labs, lab, agentFor)
  expect(lab.document.project).not.toHaveProperty('moving')
  expect(lab.document.project).not.toHaveProperty('left')
})

test('an incomplete lab is deleted, also when its compute was removed from the fleet', async () => {
  const store = new MemoryLabs()
  const before = await labsInMemory(new MemoryCompute(), store)
  await before.creation.create({ project_id, name: 'begun', compute_id: 'local' }, before.computes.agent)
  const { project } = (await before.lab(project_id)).document
  const head = { ...project, unfinished: true, computes: ['removed'], is_open: false }
  await store.save(project_id, new Changes().project(head as never).entries)
  store.heads = async () => new Map([[project_id, { head }]])

  const after = await labsInMemory(new MemoryCompute(), store)
  await after.lifecycle.reopenAfterStart()
  expect([...after.registry.ids()]).toEqual([])
  await after.creation.create({ name: 'begun', compute_id: 'local' }, after.computes.agent)
})

test('a compute is drained by one job at a time, also with two requests at once', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  const drain = () => drainCompute(labs, 'local', labs.computes.agent, async () => {})
  const [first, second] = await Promise.allSettled([drain(), drain()])
  expect(first).toMatchObject({ status: 'fulfilled' })
  expect(second).toMatchObject({ status: 'rejected', reason: { status: 409 } })
})

test('a drain that takes longer than it may ends, and its job says what is left', async () => {
  const labs = await labsInMemory(new MemoryCompute(), undefined, { drainS: () => 0.001 })
  const agentFor = labs.computes.agent
  for (const name of ['one', 'two']) await labs.creation.create({ name, compute_id: 'local' }, agentFor)
  vi.spyOn(labs, 'move').mockImplementation(
    (_, __, { signal }) =>
      new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new ApiError(409, 'reverted')))),
  )
  const { id, over } = await drainCompute(labs, 'local', agentFor, async () => {})
  await over
  const reason = 'It was not moved within 0.001 s (fleet.drain_s); drain the compute again'
  expect(labs.jobs.get(id)).toMatchObject({
    ...{ status: 'done', done: 0, skipped: 2, reason: `one: ${reason}` },
    projects: [
      { name: 'one', state: 'skipped', reason },
      { name: 'two', state: 'skipped', reason },
    ],
  })
})

test('a compute whose drain is refused still takes projects', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  let isClosed = false
  const drain = () =>
    drainCompute(labs, 'local', labs.computes.agent, async () => {
      isClosed = true
    })
  let end = () => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const state = () => ({ reason: null, isCancelled: false, total: 0, done: 0, failed: 0, skipped: 0, nodes: [] })
  const fill = () => {
    for (;;) labs.jobs.run(undefined, 'check', { state, work: () => ended })
  }
  expect(fill).toThrow('jobs are already running')
  await expect(drain()).rejects.toMatchObject({ status: 429 })
  expect(isClosed).toBe(false)
  end()
  await labs.shutdown()
})

test('the remains of a move are removed from its compute, also for a lab with snapshots', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  const agentFor = labs.computes.agent
  await labs.creation.create({ project_id, name: 'moved', compute_id: 'local' }, agentFor)
  const lab = await labs.lab(project_id)
  const snapshot = { snapshot_id: project_id, name: 'earlier', created_at: 0, size: 0 }
  // The service ended after the move, and before it had removed the files of before.
  await labs.documents.saveServiceChange(lab, (project) =>
    new Changes()
      .project({ ...project, formerComputes: ['before'] })
      .put('snapshot', project_id, { ...snapshot, computes: ['local'], moved: { before: 'local' } }),
  )
  const { signal } = new AbortController()
  expect(await moveLab(labs, project_id, 'before', { agentFor, signal, show: () => {} })).toBe('local')
  expect((await labs.lab(project_id)).document.project).not.toHaveProperty('left')
})

test('a lab that cannot be moved says so in its events, with the reason', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  const agentFor = labs.computes.agent
  await labs.creation.create({ project_id, name: 'stays', compute_id: 'local' }, agentFor)
  const snapshot = { snapshot_id: project_id, name: 'earlier', created_at: 0, size: 0, computes: ['local'] }
  const lab = await labs.lab(project_id)
  await labs.documents.saveServiceChange(lab, (project) =>
    new Changes()
      .project(project)
      .put('snapshot', project_id, { ...snapshot, lastRunning: { local: [project_id] } } as never),
  )
  const emit = vi.spyOn(lab, 'emit')
  const { signal } = new AbortController()
  const reason =
    'Its snapshot earlier contains the memory of running machines: delete the snapshot before the project is moved'
  await expect(moveLab(labs, project_id, 'local', { agentFor, signal, show() {} })).rejects.toThrow(reason)
  const message = `The project stays on compute local, which is being drained. ${reason}`
  expect(emit).toHaveBeenCalledWith({ action: 'log.warning', event: { message } })
})

test('a lab that was made elsewhere can be deleted without its former compute, but not without its own', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  const real = labs.computes.agent
  await labs.creation.create({ project_id, name: 'moved', compute_id: 'local' }, real)
  const dead = new Set(['before', 'local'])
  const absent = async (ids: readonly string[]) =>
    ids
      .filter((id) => dead.has(id))
      .map((compute_id) => ({ compute_id, name: compute_id, since: '2026-01-01T00:00:00Z' }))
  Object.assign(labs.computes, { absent })
  const away = async () => {
    throw new ApiError(503, 'It is not connected', { code: 'compute-unreachable' })
  }
  const agentFor = (id: string) => (dead.has(id) ? overriding(real('local'), { projects: { remove: away } }) : real(id))
  await labs.documents.saveServiceChange(await labs.lab(project_id), (project) =>
    new Changes().project({ ...project, formerComputes: ['before'] }),
  )

  await expect(labs.lifecycle.remove(project_id, agentFor)).rejects.toMatchObject({ status: 503 })
  expect([...labs.registry.ids()]).toEqual([project_id])
  dead.delete('local')
  await labs.lifecycle.remove(project_id, agentFor)
  expect([...labs.registry.ids()]).toEqual([])
})
