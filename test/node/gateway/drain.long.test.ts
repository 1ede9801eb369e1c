import { expect, it } from 'vitest'
import type { Compute } from '../../../src/model/compute.ts'
import type { LabJob } from '../../../src/model/lab/job.ts'
import type { LabLink } from '../../../src/model/lab/link.ts'
import type { LabProject } from '../../../src/model/lab/project.ts'
import type { LabSnapshot } from '../../../src/model/lab/snapshot.ts'
import type { Project } from '../../../src/model/project.ts'
import { GatewayLab, portOf } from '../../support/gateway-lab.ts'
import { answered, labOver, linked, nodesOf, types } from '../../support/lab-over-computes.ts'

const lab = GatewayLab.forAll()

const get = <T>(path: string) => lab.gateway.call<T>('GET', path)
const idOf = (path: string) => path.split('/').at(-1) ?? ''

/** Drains a compute, and lets it take projects again; the job at its end. */
async function drain(id: string): Promise<LabJob> {
  const { job_id } = await lab.gateway.call<LabJob>('POST', `/v2/computes/${id}/drain`)
  expect(await get<Compute>(`/v2/computes/${id}`)).toMatchObject({ accepts_projects: false })
  const path = `/v2/jobs/${job_id}`
  await expect.poll(async () => (await get<LabJob>(path)).status).not.toBe('running')
  await lab.gateway.call('PUT', `/v2/computes/${id}`, { accepts_projects: true })
  const job = await get<LabJob>(path)
  await lab.gateway.call('DELETE', path)
  return job
}

/** Whether computes have a project, open or closed: `a`, `b` and the one that has joined. */
const whoHas = (path: string) =>
  Promise.all(
    lab.computes.map(async (service) => {
      const all = await service.call<Project[]>('GET', '/v2/compute/projects?status=all')
      return all.some(({ project_id }) => project_id === idOf(path))
    }),
  )

/** Runs a test while the compute that has joined takes no projects. */
async function withTwo(run: () => Promise<void>): Promise<void> {
  await lab.gateway.call('PUT', `/v2/computes/${lab.farId}`, { accepts_projects: false })
  try {
    await run()
  } finally {
    await lab.gateway.call('PUT', `/v2/computes/${lab.farId}`, { accepts_projects: true })
  }
}

it('moves a stopped lab with its files, links and snapshots, and opens it again when it was open', async () => {
  await withTwo(async () => {
    const { gateway } = lab
    const path = await labOver(gateway, ['a', 'a'])
    await linked(gateway, path, 'PC1', 'PC2')
    await gateway.fetch(`${path}/nodes/PC2/files/notes`, { method: 'POST', body: 'of before' })
    await gateway.fetch(`${path}/files/README.txt`, { method: 'POST', body: 'read me' })
    const { snapshot_id } = await gateway.call<LabSnapshot>('POST', `${path}/snapshots`, { name: 'before' })
    await gateway.fetch(`${path}/nodes/PC2/files/notes`, { method: 'POST', body: 'of now' })
    const [link] = await get<LabLink[]>(`${path}/links`)
    const ids = (await nodesOf(gateway, path)).map(({ node_id }) => node_id)

    const job = await drain('a')
    expect(job).toMatchObject({ action: 'drain', project_id: null, compute_id: 'a', status: 'done', reason: null })
    expect(job.projects).toMatchObject([{ project_id: idOf(path), state: 'done', compute_id: 'b', reason: null }])
    expect(await whoHas(path)).toEqual([false, true, false])

    const there = `${lab.computes[1]?.data}/projects/${idOf(path)}`
    expect(await get<LabProject>(path)).toMatchObject({ status: 'opened', path: there })
    const nodes = await nodesOf(gateway, path)
    expect(nodes.map(({ node_id, compute_id }) => [node_id, compute_id])).toEqual(ids.map((id) => [id, 'b']))
    expect((await get<LabLink[]>(`${path}/links`)).map(({ link_id }) => link_id)).toEqual([link?.link_id])
    expect(await (await gateway.fetch(`${path}/files/README.txt`)).text()).toBe('read me')
    const notes = async () => (await gateway.fetch(`${path}/nodes/PC2/files/notes`)).text()
    expect(await notes()).toBe('of now')
    await gateway.call('POST', `${path}/nodes/start`)
    await types(gateway, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered })

    await gateway.call('POST', `${path}/snapshots/${snapshot_id}/restore`)
    expect(await notes()).toBe('of before')
    expect((await nodesOf(gateway, path)).map(({ compute_id }) => compute_id)).toEqual(['b', 'b'])
    await gateway.call('POST', `${path}/nodes/start`)
    await types(gateway, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered })
    await gateway.call('DELETE', path)
    expect(await whoHas(path)).toEqual([false, false, false])
  })
})

it('leaves a running lab where it is, and says why', async () => {
  await withTwo(async () => {
    const { gateway } = lab
    const runs = await labOver(gateway, ['a'])
    await gateway.call('POST', `${runs}/nodes/start`)
    const closed = await labOver(gateway, ['a'])
    await gateway.call('POST', `${closed}/close`)
    const { projects = [], ...job } = await drain('a')
    expect(job).toMatchObject({ status: 'done', total: 2, done: 1, skipped: 1, failed: 0 })
    expect(projects[0]).toMatchObject({
      project_id: idOf(runs),
      state: 'skipped',
      reason: 'PC1 is running: the project can be moved after its nodes are stopped',
    })
    expect(await nodesOf(gateway, runs)).toMatchObject([{ compute_id: 'a', status: 'started' }])
    expect(await get<LabProject>(closed)).toMatchObject({ status: 'closed' })
    expect(await whoHas(closed)).toEqual([false, true, false])
    for (const path of [runs, closed]) await gateway.call('DELETE', path)
  })
})

it('moves a part of a lab, and joins its links to the other part again', async () => {
  await withTwo(async () => {
    const { gateway } = lab
    // The other part is on the only compute that is left: both are on one then.
    const path = await labOver(gateway, ['a', 'b'])
    await linked(gateway, path, 'PC1', 'PC2')
    expect(await drain('a')).toMatchObject({ status: 'done', done: 1 })
    expect(await whoHas(path)).toEqual([false, true, false])
    await gateway.call('POST', `${path}/nodes/start`)
    await types(gateway, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered })
    await gateway.call('DELETE', path)
  })
})

it('moves no lab to a compute without the labels of the lab', async () => {
  const { gateway } = lab
  const { project_id } = await gateway.call<LabProject>('POST', '/v2/projects', { name: 'tied', compute_id: 'a' })
  const tied = `/v2/projects/${project_id}`
  await gateway.call('PUT', '/v2/computes/a', { labels: ['site=berlin'] })
  await gateway.call('POST', `${tied}/nodes`, { name: 'PC1', node_type: 'pc', placement: { labels: ['site=berlin'] } })
  const job = await drain('a')
  expect(job.projects).toMatchObject([
    { state: 'skipped', reason: expect.stringMatching(/^placement.labels: .*site=berlin/) },
  ])
  expect(await whoHas(tied)).toEqual([true, false, false])
  await gateway.call('DELETE', tied)
})

it('moves a part of a lab to a compute that can be linked with the other part', async () => {
  const { gateway } = lab
  const path = await labOver(gateway, ['a', 'b'])
  await linked(gateway, path, 'PC1', 'PC2')
  await gateway.call('PUT', '/v2/computes/b', { accepts_projects: false })
  expect(await drain('a')).toMatchObject({ status: 'done', done: 1 })
  await gateway.call('PUT', '/v2/computes/b', { accepts_projects: true })
  expect(await whoHas(path)).toEqual([false, true, true])
  await gateway.call('POST', `${path}/nodes/start`)
  await types(gateway, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered })
  await gateway.call('DELETE', path)
})

it('shows a lab whose compute is not connected as such, until the compute is back', async () => {
  const { gateway, b } = lab
  const open = await labOver(gateway, ['a', 'b'])
  const closed = await labOver(gateway, ['b'])
  await gateway.call('POST', `${closed}/close`)
  const reasons = async () => {
    const all = await get<LabProject[]>('/v2/projects')
    return [open, closed].map((path) => all.find(({ project_id }) => project_id === idOf(path))?.status_reason)
  }
  expect(await reasons()).toEqual([undefined, undefined])
  const before = Date.now()
  const port = portOf(b)
  await b.kill('SIGKILL')
  const said = /^Its compute compute b has not been connected since (\S+)$/
  await expect.poll(reasons).toEqual([expect.stringMatching(said), expect.stringMatching(said)])
  expect(Date.parse(said.exec((await reasons())[0] ?? '')?.[1] ?? '')).toBeGreaterThanOrEqual(before)
  for (const path of [open, closed])
    expect(await get<LabProject>(path)).toMatchObject({ status_reason: expect.stringMatching(said) })
  const { projects, failed } = await drain('b')
  expect([failed, projects?.map(({ state, compute_id }) => [state, compute_id])]).toEqual([
    ...[
      2,
      [
        ['failed', null],
        ['failed', null],
      ],
    ],
  ])
  await b.restart(port)
  await lab.shows('b', { connected: true })
  expect((await get<Compute>('/v2/computes/b')).disconnected_since).toBeUndefined()
  await expect.poll(reasons).toEqual([undefined, undefined])
  for (const path of [open, closed]) await gateway.call('DELETE', path)
})
