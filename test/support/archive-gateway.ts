import { createHash, randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import type { Compute } from '../../src/model/compute.ts'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import type { LabSnapshot } from '../../src/model/lab/snapshot.ts'
import type { Project } from '../../src/model/project.ts'
import { portOf } from './gateway-lab.ts'
import { answered, type LabService, labOver, linked, nodesOf, types } from './lab-over-computes.ts'
import { hangMs } from './limits.ts'
import type { TestService } from './service.ts'

/** A gateway that backs up closed labs. */
export interface ArchiveGateway extends LabService {
  send(path: string, init?: RequestInit): Promise<Response>
  /** Credentials of the test. */
  readonly headers: Record<string, string>
  /** The names of the archives. */
  archives(): Promise<string[]>
}

/**
 * A closed lab of a compute that is gone is made from its archive on another one: with its files, its links, its snapshot. `a` and `b`: the computes
 * of the gateway, registered under these ids.
 */
export async function isMadeElsewhere(
  gateway: ArchiveGateway,
  { a, b }: { a: TestService; b: TestService },
  nameOf: (projectId: string) => string,
): Promise<void> {
  const shown = (path: string) => gateway.call<LabProject>('GET', path)
  const ids = async (service: TestService) =>
    (await service.call<Project[]>('GET', '/v2/compute/projects?status=all')).map(({ project_id }) => project_id)
  const idOf = (path: string) => path.split('/').at(-1) ?? ''

  const path = await labOver(gateway, ['a', 'a'])
  const id = idOf(path)
  await linked(gateway, path, 'PC1', 'PC2')
  const keep = async (name: string, body: string | Uint8Array<ArrayBuffer>) =>
    expect((await gateway.send(`${path}/nodes/PC2/files/${name}`, { method: 'POST', body })).status).toBe(200)
  await keep('notes', 'of before')
  await gateway.call<LabSnapshot>('POST', `${path}/snapshots`, { name: 'before' })
  await keep('notes', 'of now')
  // More than one part of an upload to a bucket.
  const data = new Uint8Array(randomBytes(20 << 20))
  await keep('data', data)
  const before = await nodesOf(gateway, path)
  // One that stays open has no archive of what it is.
  const open = await labOver(gateway, ['a'])
  await gateway.call('POST', `${path}/close`)
  await expect.poll(async () => (await shown(path)).archived, { timeout: hangMs }).toBe(true)
  expect(await gateway.archives()).toEqual([nameOf(id)])
  expect((await shown(open)).archived).toBeUndefined()

  const port = portOf(a)
  await a.kill('SIGKILL')
  // Also before a health check finds out.
  const refused = await gateway.send(`${path}/open`, { method: 'POST' })
  expect([refused.status, await refused.json()]).toMatchObject([
    503,
    { message: expect.stringMatching(/restore the project from its archive on another compute, use POST .*a\/drain/) },
  ])
  await expect
    .poll(async () => (await shown(path)).status_reason, { timeout: 2 * hangMs })
    .toMatch(/not been connected/)
  const drained = async () => {
    const { job_id } = await gateway.call<LabJob>('POST', '/v2/computes/a/drain')
    const job = () => gateway.call<LabJob>('GET', `/v2/jobs/${job_id}`)
    await expect.poll(async () => (await job()).status, { timeout: 2 * hangMs }).toBe('failed')
    const { projects = [] } = await job()
    return new Map(projects.map((it) => [it.project_id, [it.state, it.compute_id, it.reason]]))
  }
  const first = await drained()
  expect(first.get(id)).toEqual(['done', 'b', null])
  expect(first.get(idOf(open))).toEqual(['failed', null, expect.any(String)])
  // What was moved already has not failed, though its old files are still there.
  expect((await drained()).get(id)).toEqual(['done', 'b', expect.stringMatching(/^It was already moved/)])

  expect(await shown(path)).toMatchObject({ status: 'closed', archived: true })
  await gateway.call('POST', `${path}/open`)
  expect((await nodesOf(gateway, path)).map((it) => [it.node_id, it.compute_id])).toEqual(
    before.map(({ node_id }) => [node_id, 'b']),
  )
  const read = async (name: string) =>
    Buffer.from(await (await gateway.send(`${path}/nodes/PC2/files/${name}`)).arrayBuffer())
  const sumOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
  expect((await read('notes')).toString()).toBe('of now')
  expect(sumOf(await read('data'))).toBe(sumOf(data))
  await gateway.call('POST', `${path}/nodes/start`)
  const { headers } = gateway
  await types(gateway, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered, headers })
  const [snapshot] = await gateway.call<LabSnapshot[]>('GET', `${path}/snapshots`)
  expect(snapshot?.name).toBe('before')
  await gateway.call('POST', `${path}/snapshots/${snapshot?.snapshot_id}/restore`)
  expect((await read('notes')).toString()).toBe('of before')
  expect((await shown(path)).archived).toBeUndefined()

  // The compute that comes back loses its old copy, and keeps the other lab.
  await a.restart(port)
  const isBack = async () => (await gateway.call<Compute>('GET', '/v2/computes/a')).connected
  await expect.poll(isBack, { timeout: 2 * hangMs }).toBe(true)
  await gateway.call('POST', `${path}/close`)
  await gateway.call('POST', `${path}/open`)
  expect(await ids(a)).not.toContain(id)
  expect(await ids(b)).toEqual([id])

  // A compute that was removed from the fleet is drained by its id.
  await gateway.call('POST', `${path}/close`)
  await expect.poll(async () => (await shown(path)).archived, { timeout: hangMs }).toBe(true)
  await gateway.call('PUT', '/v2/computes/a', { accepts_projects: true })
  await gateway.call('DELETE', '/v2/computes/b')
  expect((await shown(path)).status_reason).toBe('Its compute b was removed from this service')
  const closed = await gateway.send(`${path}/open`, { method: 'POST' })
  expect([closed.status, await closed.json()]).toMatchObject([
    503,
    { message: expect.stringMatching(/use POST .*b\/drain$/) },
  ])
  const again = await gateway.call<LabJob>('POST', '/v2/computes/b/drain')
  const ended = () => gateway.call<LabJob>('GET', `/v2/jobs/${again.job_id}`)
  await expect.poll(async () => (await ended()).status, { timeout: 2 * hangMs }).toBe('done')
  expect((await ended()).projects).toMatchObject([{ project_id: id, state: 'done', reason: null, compute_id: 'a' }])
  await gateway.call('POST', `${path}/open`)
  expect(new Set((await nodesOf(gateway, path)).map((it) => it.compute_id))).toEqual(new Set(['a']))
  expect((await read('notes')).toString()).toBe('of before')
  expect((await gateway.send('/v2/computes/b/drain', { method: 'POST' })).status).toBe(404)
  await gateway.call('DELETE', path)
  expect(await gateway.archives()).toEqual([])
}
