import { expect, test } from 'vitest'
import type { Class } from '../../../../src/model/lab/class.ts'
import type { LabJob } from '../../../../src/model/lab/job.ts'
import type { LabProject } from '../../../../src/model/lab/project.ts'
import { TestService } from '../../../support/service.ts'

test('a class that a killed service has half made is finished by the same request', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  await service.call('POST', '/v2/projects', { name: 'origin' })
  for (const name of ['PC1', 'PC2']) await service.call('POST', '/v2/projects/origin/nodes', { name, node_type: 'pc' })
  const students = Array.from({ length: 12 }, (_, index) => `s${String(index).padStart(2, '0')}`)
  const input = { name: 'netlab', project_id: 'origin', students }
  for (const done of [1, 4, 8]) {
    let job = await service.call<LabJob>('POST', '/v2/classes', input)
    while (job.status === 'running' && job.done < done) job = await service.call('GET', `/v2/jobs/${job.job_id}`)
    await service.kill('SIGKILL')
    await service.restart()
  }
  let job = await service.call<LabJob>('POST', '/v2/classes', input)
  while (job.status === 'running') job = await service.call('GET', `/v2/jobs/${job.job_id}`)
  expect(job).toMatchObject({ status: 'done', total: 12, done: 12, failed: 0 })
  const [made] = await service.call<Class[]>('GET', '/v2/classes')
  expect(made?.students.map(({ student }) => student)).toEqual(students)
  const labs = await service.call<LabProject[]>('GET', '/v2/projects')
  // Nothing is left of what broke off: each student has one lab, whole, with one snapshot to go back to.
  expect(labs.map(({ name }) => name).sort()).toEqual([...students.map((it) => `netlab-${it}`), 'origin'])
  for (const { project_id, class: ofClass, counts } of labs.filter((it) => it.class !== undefined)) {
    expect(counts).toMatchObject({ nodes: 2 })
    const snapshots = await service.call<{ snapshot_id: string }[]>('GET', `/v2/projects/${project_id}/snapshots`)
    expect(snapshots.map((it) => it.snapshot_id)).toEqual([ofClass?.start_snapshot_id])
  }
  let gone = await service.call<LabJob>('DELETE', '/v2/classes/netlab')
  while (gone.status === 'running' && gone.done < 3) gone = await service.call('GET', `/v2/jobs/${gone.job_id}`)
  await service.kill('SIGKILL')
  await service.restart()
  gone = await service.call<LabJob>('DELETE', '/v2/classes/netlab')
  while (gone.status === 'running') gone = await service.call('GET', `/v2/jobs/${gone.job_id}`)
  expect(gone).toMatchObject({ status: 'done', failed: 0 })
  expect((await service.call<LabProject[]>('GET', '/v2/projects')).map(({ name }) => name)).toEqual(['origin'])
})
