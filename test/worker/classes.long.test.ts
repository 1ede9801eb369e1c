import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Patchbay } from '../../src/client/patchbay.ts'
import type { Class, ClassLink } from '../../src/model/lab/class.ts'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import { portOf } from '../support/gateway-lab.ts'
import { hangMs } from '../support/limits.ts'
import { TestService } from '../support/service.ts'
import { adminToken, WorkerGateway } from '../support/worker-gateway.ts'

test('a class at a Worker: labs in objects of their own, links, a reset, and their end', async () => {
  const gateway = await WorkerGateway.startForAll(await mkdtemp(join(tmpdir(), 'patchbay-')), { RATE_PER_S: '0' })
  try {
    const near = await TestService.start({ 'pc.engine': 'embedded' })
    const address = { protocol: 'http', host: '127.0.0.1', port: portOf(near) }
    await gateway.call('POST', '/v2/computes', { compute_id: 'near', ...address })
    await gateway.call('POST', '/v2/projects', { name: 'routing' })
    for (const name of ['PC1', 'PC2'])
      await gateway.call('POST', '/v2/projects/routing/nodes', { name, node_type: 'pc' })
    const ended = async ({ job_id }: LabJob): Promise<LabJob> => {
      for (;;) {
        const job = await gateway.call<LabJob>('GET', `/v2/jobs/${job_id}`)
        if (job.status !== 'running') return job
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }
    const input = { name: 'netlab', project_id: 'routing', students: ['ada', 'grace'] }
    expect(await ended(await gateway.call('POST', '/v2/classes', input))).toMatchObject({ status: 'done', done: 2 })
    const [ada, grace] = await gateway.call<ClassLink[]>('POST', '/v2/classes/netlab/links', {})
    const student = (method: string, path: string, body?: object) =>
      fetch(gateway.url + path, {
        method,
        headers: { authorization: `Bearer ${ada?.token}` },
        ...(body && { body: JSON.stringify(body) }),
      })
    const session = {
      method: 'POST',
      body: JSON.stringify({ token: ada?.token }),
      headers: { origin: gateway.url, 'content-type': 'application/json' },
    }
    expect((await fetch(`${gateway.url}/v2/session`, session)).status).toBe(201)
    const seen = (await (await student('GET', '/v2/projects')).json()) as LabProject[]
    expect(seen.map(({ name }) => name)).toEqual(['netlab-ada'])
    expect((await student('GET', `/v2/projects/${grace?.project_id}`)).status).toBe(404)
    const own = `/v2/projects/${ada?.project_id}`
    expect((await student('POST', `${own}/open`)).status).toBe(201)
    expect((await student('POST', `${own}/nodes`, { name: 'PC3', node_type: 'pc' })).status).toBe(201)
    const watching = new AbortController()
    const feed = new Patchbay({ server: gateway.url, token: adminToken }).feed({ signal: watching.signal })
    await feed.next()
    expect((await student('POST', `${own}/presence`, { selection: [] })).status).toBe(200)
    for await (const { action, event } of feed)
      if (action === 'project.updated' && 'present' in event && event.present?.includes('ada')) break
    watching.abort()
    expect(await gateway.call('GET', own)).toMatchObject({ present: ['ada'], class: { student: 'ada' } })
    const listed = async () => (await gateway.call<LabProject[]>('GET', '/v2/projects')).map(({ present }) => present)
    await expect.poll(listed, { timeout: hangMs }).toEqual([['ada'], undefined, undefined])
    expect((await student('DELETE', own)).status).toBe(403)

    const reset = await gateway.call<LabJob>('POST', '/v2/classes/netlab/reset', { students: ['ada'] })
    expect(await ended(reset)).toMatchObject({ status: 'done', total: 1 })
    expect(await gateway.call('GET', `${own}/nodes`)).toHaveLength(2)
    const [{ students } = { students: [] }] = await gateway.call<Class[]>('GET', '/v2/classes')
    expect(students).toMatchObject([{ student: 'ada', token: { token_id: ada?.token_id } }, { student: 'grace' }])
    expect(await ended(await gateway.call('DELETE', '/v2/classes/netlab'))).toMatchObject({ status: 'done', done: 2 })
    expect(await gateway.call('GET', '/v2/classes')).toEqual([])
    expect(await gateway.call('GET', '/v2/tokens')).toEqual([])
    expect((await gateway.call<LabProject[]>('GET', '/v2/projects')).map(({ name }) => name)).toEqual(['routing'])
  } finally {
    await gateway.stop()
    await rm(gateway.data, { recursive: true, force: true })
  }
})
