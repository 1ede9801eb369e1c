import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'vitest'
import { expectNotLocal } from '../support/not-local.ts'
import { TestService } from '../support/service.ts'
import { WorkerGateway } from '../support/worker-gateway.ts'

test('the Worker is not in local mode, and refuses requests that need it', async () => {
  const gateway = await WorkerGateway.start()
  const { token } = await gateway.call('POST', '/v2/tokens', { name: 'lab', purpose: 'join' })
  const [near, far] = await Promise.all([
    TestService.start({ 'pc.engine': 'embedded', local: true }),
    TestService.start({
      ...{ 'pc.engine': 'embedded', local: true },
      ...{ 'join.url': gateway.url.replace('http', 'ws'), 'join.token': token },
    }),
  ])
  const port = Number(new URL(near.url).port)
  await gateway.call('POST', '/v2/computes', { compute_id: 'near', protocol: 'http', host: '127.0.0.1', port })
  const joined = (await readFile(join(far.data, 'compute-id'), 'utf8')).trim()
  await gateway.untilConnected(joined)
  await expectNotLocal((method, path, body) => gateway.fetch(method, path, body), ['near', joined])
})
