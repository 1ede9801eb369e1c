import { expect, test } from 'vitest'
import { json, StandIn } from '../../support/fleet.ts'
import { hangMs } from '../../support/limits.ts'
import { WorkerGateway } from '../../support/worker-gateway.ts'

const projects = '/v2/compute/projects'

test('in a large fleet a project is searched for only on computes that have reported it', async () => {
  const gateway = await WorkerGateway.start({ RATE_PER_S: '0' })
  const { version } = await gateway.call<{ version: string }>('GET', '/v2/compute/version')
  const [told, unknown, chosen] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
  const project = { project_id: told, name: 'told', path: '/', location: '/', temporary: false, variables: null }
  const startCompute = async (compute_id: string, has: readonly object[]) => {
    const compute = await StandIn.start()
    compute.capabilities = (_, res) => json(res, 200, { version, platform: 'linux', node_types: ['pc'] })
    compute.answer = (req, res) => {
      if (req.url === '/v2/compute/load') return json(res, 200, { cpu_usage_percent: 1, memory_usage_percent: 1 })
      const { pathname } = new URL(req.url ?? '/', 'http://compute')
      if (req.method === 'GET' && pathname === projects) return json(res, 200, has)
      if (req.method === 'POST') return json(res, 201, { ...project, project_id: chosen })
      if (has.length > 0 && pathname === `${projects}/${told}`) return json(res, 200, project)
      return json(res, 404, { message: 'There is no such project', status: 404 })
    }
    await gateway.call('POST', '/v2/computes', compute.input({ compute_id, name: `Compute ${compute_id}` }))
    return compute
  }
  const others = await startCompute('other', [])
  for (let number = 0; number < 20; number++)
    await gateway.call('POST', '/v2/computes', others.input({ compute_id: `c${number}`, name: `Compute ${number}` }))
  await startCompute('having', [project])

  const found = async () => {
    const answer = await gateway.fetch('GET', `${projects}/${told}`)
    return [answer.status, answer.headers.get('x-patchbay-compute')]
  }
  await expect.poll(found, { timeout: hangMs, interval: 200 }).toEqual([200, 'having'])
  expect((await gateway.fetch('GET', `${projects}/${unknown}`)).status).toBe(404)
  await gateway.call('POST', projects, { name: 'chosen', project_id: chosen, compute_id: 'other' })
  const askedFor = (id: string) => others.asked.filter((it) => it.startsWith(`GET ${projects}/${id}`))
  expect([told, unknown, chosen].flatMap(askedFor)).toEqual([])
})

test('of a compute that reports more projects than it can have, the directory stores ten thousand', async () => {
  const gateway = await WorkerGateway.start({ RATE_PER_S: '0' })
  const { version } = await gateway.call<{ version: string }>('GET', '/v2/compute/version')
  const ids = Array.from({ length: 10_001 }, () => crypto.randomUUID())
  const project = (project_id: string) => ({
    ...{ project_id, name: 'told', path: '/', location: '/', temporary: false, variables: null },
  })
  const startCompute = async (has: readonly string[]) => {
    const compute = await StandIn.start()
    compute.capabilities = (_, res) => json(res, 200, { version, platform: 'linux', node_types: ['pc'] })
    compute.answer = (req, res) => {
      if (req.url === '/v2/compute/load') return json(res, 200, { cpu_usage_percent: 1, memory_usage_percent: 1 })
      const { pathname } = new URL(req.url ?? '/', 'http://compute')
      if (pathname === projects) return json(res, 200, has.map(project))
      const id = pathname.slice(projects.length + 1)
      if (has.includes(id)) return json(res, 200, project(id))
      return json(res, 404, { message: 'There is no such project', status: 404 })
    }
    return compute
  }
  const [others, liar] = [await startCompute([]), await startCompute(ids)]
  for (let number = 0; number < 20; number++)
    await gateway.call('POST', '/v2/computes', others.input({ compute_id: `c${number}`, name: `Compute ${number}` }))
  await gateway.call('POST', '/v2/computes', liar.input({ compute_id: 'liar', name: 'Liar' }))
  const found = async (id = '') => (await gateway.fetch('GET', `${projects}/${id}`)).status
  const sorted = ids.toSorted()
  await expect.poll(() => found(sorted[0]), { timeout: hangMs, interval: 3500 }).toBe(200)
  expect([await found(sorted[9_999]), await found(sorted[10_000])]).toEqual([200, 404])
})
