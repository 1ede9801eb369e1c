import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { portOf } from '../support/gateway-lab.ts'
import { TestService } from '../support/service.ts'
import { WorkerGateway } from '../support/worker-gateway.ts'

test('the limits of a token hold in labs of a Worker, where they are in the token itself', async () => {
  const gateway = await WorkerGateway.startForAll(await mkdtemp(join(tmpdir(), 'patchbay-')), { RATE_PER_S: '0' })
  try {
    const near = await TestService.start({ 'pc.engine': 'embedded' })
    const address = { protocol: 'http', host: '127.0.0.1', port: portOf(near) }
    await gateway.call('POST', '/v2/computes', { compute_id: 'near', ...address })
    const input = { name: 'student', role: 'operate', limits: { max_nodes: 2, max_running: 1 } }
    const { token } = await gateway.call<{ token: string }>('POST', '/v2/tokens', input)
    const { project_id } = await gateway.call<{ project_id: string }>('POST', '/v2/projects', { name: 'class-ada' })
    const at = `/v2/projects/${project_id}`
    const ask = async (path: string, body?: unknown) => {
      const answer = await fetch(gateway.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      return [answer.status, answer.headers.get('x-patchbay-error')]
    }
    for (const name of ['PC1', 'PC2']) expect(await ask(`${at}/nodes`, { name, node_type: 'pc' })).toEqual([201, null])
    expect(await ask(`${at}/nodes`, { name: 'PC3', node_type: 'pc' })).toEqual([409, 'limit-reached'])
    expect(await ask(`${at}/nodes/PC1/start`)).toEqual([200, null])
    expect(await ask(`${at}/nodes/PC2/start`)).toEqual([409, 'limit-reached'])
    expect(await ask(`/v2/compute/projects/${project_id}/pc/nodes`, { name: 'PC3' })).toEqual([403, 'forbidden'])
    expect(await ask(`/v2/computes/near/projects/${project_id}/pc/nodes`, { name: 'PC3' })).toEqual([403, 'forbidden'])
  } finally {
    await gateway.stop()
    await rm(gateway.data, { recursive: true, force: true })
  }
})
