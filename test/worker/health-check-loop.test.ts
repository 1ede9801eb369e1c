import { expect, test } from 'vitest'
import type { Compute } from '../../src/model/compute.ts'
import { json, StandIn } from '../support/fleet.ts'
import { WorkerGateway } from '../support/worker-gateway.ts'

const count = 80

test('what was found of computes that say much is known when the Worker begins anew', async () => {
  const gateway = await WorkerGateway.start({ RATE_PER_S: '0' })
  const { version } = await gateway.call<{ version: string }>('GET', '/v2/compute/version')
  const compute = await StandIn.start()
  // All of them together are more than a row of the tables may be.
  const node_types = Array.from({ length: 100 }, (_, index) => `${index}${'x'.repeat(290)}`)
  compute.capabilities = (_, res) => json(res, 200, { version, platform: 'linux', node_types })
  compute.answer = (_, res) => json(res, 200, { cpu_usage_percent: 1, memory_usage_percent: 1 })
  for (let number = 0; number < count; number++)
    await gateway.call('POST', '/v2/computes', compute.input({ compute_id: `c${number}`, name: `Compute ${number}` }))
  const connected = async () => {
    const all = await gateway.call<Compute[]>('GET', '/v2/computes')
    return all.filter((it) => it.connected).length
  }
  await gateway.restart()
  expect(await connected()).toBe(count)
  await gateway.restart()
  compute.asked.length = 0
  expect(await connected()).toBe(count)
  expect(compute.asked).toEqual([])
})
