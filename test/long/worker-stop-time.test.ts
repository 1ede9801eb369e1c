import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { LabProject } from '../../src/model/lab/project.ts'
import { portOf } from '../support/gateway-lab.ts'
import { labOver, nodesOf } from '../support/lab-over-computes.ts'
import { hangMs } from '../support/limits.ts'
import { TestService } from '../support/service.ts'
import { WorkerGateway } from '../support/worker-gateway.ts'

const projects = '/v2/projects'
/** The alarm of an object is no sooner than this, ms. */
const alarmMs = 60_000

/** A gateway with a compute, and a lab of two nodes that run. */
async function running() {
  const gateway = await WorkerGateway.startForAll(await mkdtemp(join(tmpdir(), 'patchbay-')), { RATE_PER_S: '0' })
  onTestFinished(async () => {
    await gateway.stop()
    await rm(gateway.data, { recursive: true, force: true })
  })
  const compute = await TestService.start({ 'pc.engine': 'embedded' })
  const at = { compute_id: 'a', protocol: 'http', host: '127.0.0.1', port: portOf(compute) }
  await gateway.call('POST', '/v2/computes', at)
  const path = await labOver(gateway, ['a', 'a'])
  await gateway.call('POST', `${path}/nodes/start`)
  const states = async () => (await nodesOf(gateway, path)).map(({ status }) => status)
  /** As lists show it, which do not wake its object. */
  const listed = async () =>
    (await gateway.call<LabProject[]>('GET', projects)).some(({ project_id }) => path.endsWith(project_id))
  return { gateway, compute, path, states, listed }
}

test('a lab of a Worker stops or is deleted at its time, which a renewal changes', async () => {
  const { gateway, path, states } = await running()
  const lend = (ttl: object) => gateway.call<LabProject>('PUT', path, ttl)
  const first = await lend({ ttl_s: 2, ttl_deletes: true })
  const renewed = await lend({ ttl_s: 3600 })
  const over = Date.parse(first.stop_at ?? '')
  await expect.poll(() => Date.now(), { timeout: hangMs }).toBeGreaterThan(over)
  // The platform may end an object at any time.
  await gateway.restart()
  expect(await gateway.call('GET', path)).toMatchObject({ stop_at: renewed.stop_at, ttl_deletes: true })
  expect(await states()).toEqual(['started', 'started'])
  await lend({ ttl_s: 2, ttl_deletes: false })
  await expect.poll(states, { timeout: hangMs }).toEqual(['stopped', 'stopped'])
  await expect.poll(async () => (await lend({})).stop_at, { timeout: hangMs }).toBe(undefined)
  await lend({ ttl_s: 2, ttl_deletes: true })
  await expect.poll(async () => (await gateway.fetch('GET', path)).status, { timeout: hangMs }).toBe(404)
})

test('the alarm of its object deletes an unused lab of a Worker at the renewed time', async () => {
  const { gateway, compute, path, listed } = await running()
  await gateway.call('PUT', path, { ttl_s: 7200, ttl_deletes: true })
  await gateway.call('PUT', path, { ttl_s: 1 })
  await gateway.restart()
  await expect.poll(listed, { timeout: alarmMs + hangMs, interval: 1000 }).toBe(false)
  expect((await gateway.fetch('GET', path)).status).toBe(404)
  expect(await compute.call('GET', '/v2/compute/projects')).toEqual([])
})
