import { expect, it } from 'vitest'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import type { Project } from '../../src/model/project.ts'
import { isMadeElsewhere } from '../support/archive-gateway.ts'
import { portOf } from '../support/gateway-lab.ts'
import { holding } from '../support/holding.ts'
import { labOver, nodesOf } from '../support/lab-over-computes.ts'
import { hangMs } from '../support/limits.ts'
import { askAs, call, joinCompute, makeOrganization, within } from '../support/organizations.ts'
import { TestService } from '../support/service.ts'
import { adminToken, WorkerGateway } from '../support/worker-gateway.ts'

const embedded = { 'pc.engine': 'embedded' }
const headers = { authorization: `Bearer ${adminToken}` }
const bucket = 'ARCHIVES'

const register = (gateway: WorkerGateway, compute_id: string, port: number) =>
  gateway.call('POST', '/v2/computes', { compute_id, protocol: 'http', host: '127.0.0.1', port })

it('makes a closed lab from its archive in R2 on another compute, when its own is gone', async () => {
  const [gateway, a, b] = await Promise.all([
    WorkerGateway.start({ RATE_PER_S: '0' }, [bucket]),
    TestService.start(embedded),
    TestService.start(embedded),
  ])
  for (const [id, service] of Object.entries({ a, b })) await register(gateway, id, portOf(service))
  const withArchives = {
    url: gateway.url,
    headers,
    call: <T>(method: string, path: string, body?: unknown) => gateway.call<T>(method, path, body),
    send: (path: string, { method = 'GET', ...init }: RequestInit = {}) => gateway.fetch(method, path, undefined, init),
    archives: () => gateway.keysIn(bucket),
  }
  await isMadeElsewhere(withArchives, { a, b }, (id) => `default/${id}.gns3project`)
})

it('keeps the archives of organizations apart, and removes them with their organization', async () => {
  const gateway = await WorkerGateway.start({ RATE_PER_S: '0' }, [bucket])
  const admin = askAs(() => gateway.url, adminToken)
  // Both may use the same ids.
  const project_id = crypto.randomUUID()
  const path = `/v2/projects/${project_id}`
  for (const name of ['alpha', 'beta']) {
    const ask = askAs(() => gateway.url, await makeOrganization(admin, name))
    await joinCompute(gateway.url, ask, name)
    await call(ask, 'POST', '/v2/projects', { name: 'lab', project_id })
    await call(ask, 'POST', `${path}/close`)
    await expect.poll(async () => (await call<LabProject>(ask, 'GET', path)).archived, { timeout: hangMs }).toBe(true)
  }
  const keys = ['alpha', 'beta'].map((name) => `${name}/${project_id}.gns3project`)
  expect(await gateway.keysIn(bucket)).toEqual(keys)
  expect((await admin('DELETE', '/v2/organizations/beta?force=yes')).status).toBe(204)
  expect(await gateway.keysIn(bucket)).toEqual(keys.slice(0, 1))
  expect((await admin('GET', path, undefined, within('alpha'))).status).toBe(200)
})

it.each(['its compute', 'the gateway'])('makes an archive again that broke off with %s', async (cause) => {
  const [gateway, a] = await Promise.all([
    WorkerGateway.start({ RATE_PER_S: '0' }, [bucket]),
    TestService.start(embedded),
  ])
  const { port, held, breakOff } = await holding(a, 'notes', 'GET')
  await register(gateway, 'a', port)
  const path = await labOver(gateway, ['a'])
  await gateway.fetch('POST', `${path}/nodes/PC1/files/notes`, undefined, { body: 'kept' })
  await gateway.call('POST', `${path}/close`)
  await held
  const archived = async () => (await gateway.call<LabProject>('GET', path)).archived
  expect(await archived()).toBeUndefined()
  if (cause === 'the gateway') await gateway.restart()
  breakOff()
  // The alarm of the object of the lab does that: there is no request that would wake it.
  const key = `default/${path.split('/').at(-1)}.gns3project`
  await expect.poll(() => gateway.keysIn(bucket), { timeout: hangMs }).toEqual([key])
  await expect.poll(archived, { timeout: hangMs }).toBe(true)
})

it('shows the progress of a drain of a compute, and a cancelled drain leaves the lab on its compute', async () => {
  const [gateway, a, b] = await Promise.all([
    WorkerGateway.start({ RATE_PER_S: '0' }),
    TestService.start(embedded),
    TestService.start(embedded),
  ])
  const slow = await holding(b, 'held.txt')
  await register(gateway, 'a', portOf(a))
  await register(gateway, 'b', slow.port)
  const path = await labOver(gateway, ['a'])
  await gateway.fetch('POST', `${path}/files/held.txt`, undefined, { body: 'held' })
  const { job_id } = await gateway.call<LabJob>('POST', '/v2/computes/a/drain')
  const job = () => gateway.call<LabJob>('GET', `/v2/jobs/${job_id}`)
  await slow.held
  const part = async () => (await job()).projects?.[0]
  await expect
    .poll(part, { timeout: hangMs })
    .toMatchObject({ state: 'moving', reason: expect.stringMatching(/^file \d+ of \d+$/) })
  await gateway.call('DELETE', `/v2/jobs/${job_id}`)
  // In the middle of the file.
  await expect.poll(async () => (await job()).status, { timeout: hangMs }).toBe('cancelled')
  slow.goOn()
  expect(await part()).toMatchObject({ state: 'cancelled', compute_id: null })
  // What was copied is removed again.
  const ids = async (service: TestService) =>
    (await service.call<Project[]>('GET', '/v2/compute/projects?status=all')).map(({ project_id }) => project_id)
  expect([await ids(a), await ids(b)]).toEqual([[path.split('/').at(-1)], []])
  expect((await nodesOf(gateway, path)).map(({ compute_id }) => compute_id)).toEqual(['a'])

  const again = await gateway.call<LabJob>('POST', '/v2/computes/a/drain')
  const status = async () => (await gateway.call<LabJob>('GET', `/v2/jobs/${again.job_id}`)).status
  await expect.poll(status, { timeout: hangMs }).toBe('done')
  expect((await nodesOf(gateway, path)).map(({ compute_id }) => compute_id)).toEqual(['b'])
  expect(await ids(a)).toEqual([])
})
