import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bearer } from '../../support/auth-app.ts'
import { expectNotLocal } from '../../support/not-local.ts'
import { TestService } from '../../support/service.ts'

test('a gateway is not in local mode, and refuses requests that need it', async () => {
  const token = 'the-admin-token-of-tests'
  const gateway = await TestService.start({ gateway: true, token, 'fleet.join_tokens': ['tunnel-test-0123456789'] })
  const [near, far] = await Promise.all([
    TestService.start({ 'pc.engine': 'embedded', local: true }),
    TestService.start({
      ...{ 'pc.engine': 'embedded', local: true },
      ...{ 'join.url': gateway.url, 'join.token': 'tunnel-test-0123456789' },
    }),
  ])
  const ask = (method: string, path: string, body?: unknown) =>
    gateway.fetch(path, {
      ...{ method, headers: { authorization: bearer(token) } },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  const { port } = new URL(near.url)
  const input = { compute_id: 'near', protocol: 'http', host: '127.0.0.1', port: Number(port) }
  expect((await ask('POST', '/v2/computes', input)).status).toBe(201)
  const joined = (await readFile(join(far.data, 'compute-id'), 'utf8')).trim()
  const shown = async () => (await (await ask('GET', `/v2/computes/${joined}`)).json()) as { connected?: boolean }
  await expect.poll(async () => (await shown()).connected).toBe(true)
  await expectNotLocal(ask, ['near', joined])
})
