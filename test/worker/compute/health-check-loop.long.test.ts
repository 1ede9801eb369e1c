import { afterEach, expect, test, vi } from 'vitest'
import { HealthCheckLoop } from '../../../runtime/worker/compute/health-check-loop.ts'
import type { Compute } from '../../../src/model/compute.ts'
import { json, openFleet, StandIn } from '../../support/fleet.ts'
import { WorkerGateway } from '../../support/worker-gateway.ts'

afterEach(() => void vi.useRealTimers())

/** The health checks of one compute, as in its object. */
async function checked() {
  vi.useFakeTimers({ toFake: ['Date'] })
  const compute = await StandIn.start()
  const load = { cpu_usage_percent: 20, memory_usage_percent: 40 }
  compute.answer = (_, res) => json(res, 200, load)
  const timeouts = { failures: 2, lookAgainMs: 1, retryMs: [60_000, 60_000] as const }
  const { fleet } = await openFleet({ healthChecks: 'on-demand', timeouts })
  const told: Compute[] = []
  let alarm = 0
  const storage = {
    async getAlarm() {
      return alarm === 0 ? null : alarm
    },
    async setAlarm(at: number) {
      alarm = at
    },
  }
  const kept = { usedAt: Date.now(), reported: undefined }
  const begun: Promise<unknown>[] = []
  await fleet.create(compute.input({ compute_id: 'one' }))
  const loop = new HealthCheckLoop({
    ...{ storage, kept, fleet, computeId: 'one', waitUntil: (work) => begun.push(work) },
    report: async (shown) => void told.push(shown),
  })
  /** What a check after some time tells. */
  const after = async (ms: number, cpu: number) => {
    vi.setSystemTime(Date.now() + ms)
    load.cpu_usage_percent = cpu
    told.length = 0
    await loop.run()
    return told.map(({ connected, cpu_usage_percent }) => (connected ? cpu_usage_percent : 'lost'))
  }
  return { compute, loop, after, begun: () => Promise.all(begun), untilAlarm: () => alarm - Date.now() }
}

test('a change is reported to the directory at once, and a small change of the load after a minute', async () => {
  const { compute, after } = await checked()
  expect(await after(0, 20)).toEqual([20])
  expect(await after(15_000, 20)).toEqual([])
  expect(await after(15_000, 29)).toEqual([])
  expect(await after(15_000, 31)).toEqual([31])
  expect(await after(45_000, 32)).toEqual([])
  expect(await after(15_000, 32)).toEqual([32])
  await compute.stop()
  expect(await after(15_000, 32)).toEqual(['lost'])
  expect(await after(15_000, 32)).toEqual([])
})

test('a compute that is not used is checked seldom, and at once when it is used again', async () => {
  const { loop, after, begun, untilAlarm } = await checked()
  await after(0, 20)
  expect(untilAlarm()).toBe(15_000)
  await after(11 * 60_000, 20)
  expect(untilAlarm()).toBe(5 * 60_000)
  // However short it was checked before.
  vi.setSystemTime(Date.now() + 1000)
  loop.used()
  await begun()
  expect(untilAlarm()).toBe(15_000)
})

const count = 80

test('reported states of computes are known after a restart of the Worker', async () => {
  const gateway = await WorkerGateway.start({ RATE_PER_S: '0' })
  const { version } = await gateway.call<{ version: string }>('GET', '/v2/compute/version')
  const compute = await StandIn.start()
  compute.capabilities = (_, res) => json(res, 200, { version, platform: 'linux', node_types: ['pc'] })
  compute.answer = (_, res) => json(res, 200, { cpu_usage_percent: 1, memory_usage_percent: 1 })
  const gone = await StandIn.start()
  gone.capabilities = compute.capabilities
  for (let number = 0; number < count; number++)
    await gateway.call('POST', '/v2/computes', compute.input({ compute_id: `c${number}`, name: `Compute ${number}` }))
  await gateway.call('POST', '/v2/computes', gone.input({ compute_id: 'gone' }))
  const connected = async () => {
    const all = await gateway.call<Compute[]>('GET', '/v2/computes')
    return all.filter((it) => it.connected).map(({ compute_id }) => compute_id)
  }
  await gateway.untilConnected('gone')
  expect(await connected()).toHaveLength(count + 1)
  await gone.stop()
  // A request that does not reach it has its object check it, which tells.
  await gateway.fetch('GET', '/v2/computes/gone/projects')
  await expect.poll(connected).not.toContain('gone')
  await gateway.restart()
  expect(await connected()).toHaveLength(count)
})
