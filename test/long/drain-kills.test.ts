import { createHash, randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import type { Compute } from '../../src/model/compute.ts'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabLink } from '../../src/model/lab/link.ts'
import type { Project } from '../../src/model/project.ts'
import { GatewayLab, portOf } from '../support/gateway-lab.ts'
import { answered, labOver, linked, nodesOf, types } from '../support/lab-over-computes.ts'
import { hangMs } from '../support/limits.ts'

const lab = GatewayLab.forAll()

const get = <T>(path: string) => lab.gateway.call<T>('GET', path)
const other = { a: 'b', b: 'a' } as const
type Id = keyof typeof other

/** Kills a process, and starts it again where the others know it. */
async function killed(victim: 'gateway' | Id): Promise<void> {
  const service = lab[victim]
  const port = portOf(service)
  await service.kill('SIGKILL')
  await service.restart(port)
  for (const id of ['a', 'b']) await lab.shows(id, { connected: true })
}

async function drained(id: Id): Promise<LabJob> {
  const { job_id } = await lab.gateway.call<LabJob>('POST', `/v2/computes/${id}/drain`)
  const read = () => get<LabJob>(`/v2/jobs/${job_id}`)
  await expect.poll(async () => (await read()).status, { timeout: hangMs }).not.toBe('running')
  return read()
}

const whoHas = async (projectId: string): Promise<Id[]> => {
  const found: Id[] = []
  for (const id of ['a', 'b'] as const) {
    const all = await lab[id].call<Project[]>('GET', '/v2/compute/projects?status=all')
    if (all.some(({ project_id }) => project_id === projectId)) found.push(id)
  }
  return found
}

/** Who is killed, and after how many files: 0 is in the snapshot, and the last is in what comes after the files. */
const rounds = [
  ['to', 0],
  ['gateway', 8],
  ['from', 16],
  ['to', 24],
  ['from', 0],
  ['gateway', Number.POSITIVE_INFINITY],
  ['from', Number.POSITIVE_INFINITY],
] as const

/** What a drain does once it copies the file of that number, or has copied the last ones. */
async function reached(jobId: string, file: number): Promise<string> {
  for (let hasCopied = false; ; ) {
    const { projects = [], status } = await get<LabJob>(`/v2/jobs/${jobId}`)
    const reason = projects[0]?.reason ?? ''
    const at = Number(/^file (\d+)/.exec(reason)?.[1] ?? 0)
    const isPast = hasCopied && at === 0
    if (at >= file || isPast || status !== 'running') return `${status} ${reason}`
    // The snapshot has only few files.
    hasCopied ||= at > 10
  }
}

it('loses and doubles nothing when the gateway or a compute is killed in the middle of a drain', async () => {
  const { gateway } = lab
  await gateway.call('PUT', `/v2/computes/${lab.farId}`, { accepts_projects: false })
  const path = await labOver(gateway, ['a', 'a'])
  const id = path.split('/').at(-1) ?? ''
  await linked(gateway, path, 'PC1', 'PC2')
  const files = new Map<string, string>()
  const sumOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
  for (let n = 0; n < 30; n++) {
    const body = randomBytes(300_000)
    files.set(`data-${n}.bin`, sumOf(body))
    await gateway.fetch(`${path}/files/data-${n}.bin`, { method: 'POST', body })
  }
  await gateway.call('POST', `${path}/snapshots`, { name: 'before' })
  const [link] = await get<LabLink[]>(`${path}/links`)
  const stages: string[] = []
  for (const [victim, until] of rounds) {
    const [{ compute_id } = { compute_id: '' }] = await nodesOf(gateway, path)
    const from = compute_id as Id
    const to = other[from]
    const { job_id } = await gateway.call<LabJob>('POST', `/v2/computes/${from}/drain`)
    stages.push(await reached(job_id, until))
    await killed(victim === 'from' ? from : victim === 'to' ? to : victim)

    // A job that goes on after the kill is awaited: its lab cannot be opened before.
    await expect
      .poll(async () => (await gateway.fetch(`${path}/open`, { method: 'POST' })).status, { timeout: hangMs })
      .not.toBe(409)
    // A compute that is back is asked to open the lab again.
    await expect
      .poll(async () => (await gateway.fetch(`${path}/files/data-0.bin`)).status, { timeout: hangMs })
      .toBe(200)
    const there = await nodesOf(gateway, path)
    expect(there.map(({ name }) => name)).toEqual(['PC1', 'PC2'])
    expect(new Set(there.map((it) => it.compute_id)).size).toBe(1)
    for (const [name, sum] of files) {
      const read = await gateway.fetch(`${path}/files/${name}`)
      expect(sumOf(new Uint8Array(await read.arrayBuffer())), name).toBe(sum)
    }
    // The next attempt does the rest: the lab is on one compute, and nothing of it on the other.
    await gateway.call('PUT', `/v2/computes/${to}`, { accepts_projects: true })
    const { projects: all = [] } = await drained(from)
    expect(all.filter(({ state }) => state !== 'done')).toEqual([])
    expect(await whoHas(id)).toEqual([to])
    await gateway.call('PUT', `/v2/computes/${from}`, { accepts_projects: true })
    expect((await get<LabLink[]>(`${path}/links`)).map(({ link_id }) => link_id)).toEqual([link?.link_id])
  }
  expect(stages.join()).toMatch(/running file/)
  await gateway.call('POST', `${path}/nodes/start`)
  await types(gateway, `${path}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered })
  await gateway.call('DELETE', path)
  expect(await whoHas(id)).toEqual([])
  expect((await get<Compute[]>('/v2/computes')).length).toBe(3)
})
