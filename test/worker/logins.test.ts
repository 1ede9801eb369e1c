import { expect, test } from 'vitest'
import { basic, bearer } from '../support/auth-app.ts'
import { adminToken, WorkerGateway } from '../support/worker-gateway.ts'

test('the Worker refuses wrong log-ins by address and name, too', async () => {
  const gateway = await WorkerGateway.start()
  const statusOf = async (authorization: string, address: string) => {
    const headers = { authorization, 'cf-connecting-ip': address }
    return (await fetch(`${gateway.url}/v2/compute/version`, { headers })).status
  }
  const guesses = Array.from({ length: 30 }, (_, index) => statusOf(basic('admin', `guess-${index}`), '127.0.2.1'))
  const statuses = await Promise.all(guesses)
  expect(statuses.filter((it) => it === 401)).toHaveLength(10)
  expect(statuses.filter((it) => it === 429)).toHaveLength(20)
  expect(await statusOf(basic('admin', adminToken), '127.0.2.1')).toBe(429)
  expect(await statusOf(bearer(adminToken), '127.0.2.1')).toBe(200)
  expect(await statusOf(basic('admin', adminToken), '127.0.2.2')).toBe(200)
})
