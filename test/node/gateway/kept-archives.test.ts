import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import type { Compute } from '../../../src/model/compute.ts'
import type { LabJob } from '../../../src/model/lab/job.ts'
import type { LabProject } from '../../../src/model/lab/project.ts'
import type { LabSnapshot } from '../../../src/model/lab/snapshot.ts'
import type { Project } from '../../../src/model/project.ts'
import { portOf } from '../../support/gateway-lab.ts'
import { answered, labOver, linked, nodesOf, types } from '../../support/lab-over-computes.ts'
import { hangMs } from '../../support/limits.ts'
import { TestService } from '../../support/service.ts'

const embedded = { 'pc.engine': 'embedded' }

it('makes a closed lab from its archive on another compute, when its own is gone', async () => {
  const [gateway, a, b] = await Promise.all([
    TestService.start({ gateway: true, 'fleet.keep_archives': true, 'rate_limit.per_s': 0 }),
    TestService.start(embedded),
    TestService.start(embedded),
  ])
  for (const [compute_id, service] of Object.entries({ a, b })) {
    const input = { compute_id, protocol: 'http', host: '127.0.0.1', port: portOf(service) }
    await gateway.call('POST', '/v2/computes', input)
  }
  const connected = (id: string, is: boolean) =>
    vi.waitFor(
      async () => expect(await gateway.call<Compute>('GET', `/v2/computes/${id}`)).toMatchObject({ connected: is }),
      { timeout: hangMs },
    )
  const shown = (path: string) => gateway.call<LabProject>('GET', path)
  const ids = async (service: TestService) =>
    (await service.call<Project[]>('GET', '/v2/compute/projects?status=all')).map(({ project_id }) => project_id)

  const path = await labOver(gateway, ['a', 'a'])
  const id = path.split('/').at(-1)
  await linked(gateway, path, 'PC1', 'PC2')
  await gateway.fetch(`${path}/nodes/PC2/files/notes`, { method: 'POST', body: 'of before' })
  await gateway.call<LabSnapshot>('POST', `${path}/snapshots`, { name: 'before' })
  await gateway.fetch(`${path}/nodes/PC2/files/notes`, { method: 'POST', body: 'of now' })
  const before = await nodesOf(gateway, path)
  // One that stays open has no archive of what it is.
  const open = await labOver(gateway, ['a'])
  await gateway.call('POST', `${path}/close`)
  await expect.poll(async () => (await shown(path)).archived, { timeout: hangMs }).toBe(true)
  expect(await readdir(join(gateway.data, 'archives'))).toEqual([`${id}.gns3project`])
  expect((await shown(open)).archived).toBeUndefined()

  const port = portOf(a)
  await a.kill('SIGKILL')
  await connected('a', false)
  const refused = await gateway.fetch(`${path}/open`, { method: 'POST' })
  expect([refused.status, await refused.json()]).toMatchObject([
    503,
    { message: expect.stringMatching(/a\/drain makes it on another compute/) },
  ])
  const { job_id } = await gateway.call<LabJob>('POST', '/v2/computes/a/drain')
  const job = () => gateway.call<LabJob>('GET', `/v2/jobs/${job_id}`)
  await expect.poll(async () => (await job()).status, { timeout: hangMs }).toBe('failed')
  const { projects = [] } = await job()
  const found = new Map(projects.map((it) => [it.project_id, [it.state, it.compute_id]]))
  expect(found.get(id ?? '')).toEqual(['done', 'b'])
  expect(found.get(open.split('/').at(-1) ?? '')).toEqual(['failed', null])

  expect(await shown(path)).toMatchObject({ status: 'closed', archived: true })
  await gateway.call('POST', `${path}/open`)
  expect((await nodesOf(gateway, path)).map((it) => [it.node_id, it.compute_id])).toEqual(
    before.map(({ node_id }) => [node_id, 'b']),
  )
  const notes = async () => (await gateway.fetch(`${path}/nodes/PC2/files/notes`)).text()
  expect(await notes()).toBe('of now')
  await gateway.call('POST', `${path}/nodes/start`)
  await types(gateway, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered })
  const [snapshot] = await gateway.call<LabSnapshot[]>('GET', `${path}/snapshots`)
  expect(snapshot?.name).toBe('before')
  await gateway.call('POST', `${path}/snapshots/${snapshot?.snapshot_id}/restore`)
  expect(await notes()).toBe('of before')
  expect((await shown(path)).archived).toBeUndefined()

  // The compute that comes back loses its old copy, and keeps the other lab.
  await a.restart(port)
  await connected('a', true)
  await gateway.call('POST', `${path}/close`)
  await gateway.call('POST', `${path}/open`)
  expect(await ids(a)).not.toContain(id)
  expect(await ids(b)).toEqual([id])
  await gateway.call('DELETE', path)
  expect(await readdir(join(gateway.data, 'archives'))).toEqual([])
})
