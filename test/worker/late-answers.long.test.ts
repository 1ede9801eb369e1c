import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { conflict } from '../../src/lib/errors/api-error.ts'
import { cutMs, cuttingProxy, slowCompute } from '../support/slow-compute.ts'
import { adminToken, WorkerGateway } from '../support/worker-gateway.ts'

test('a request that takes minutes at a compute is answered through a proxy that closes idle connections, by isolates and by the object', async () => {
  const [gateway, compute] = await Promise.all([WorkerGateway.start(), slowCompute(200)])
  const port = await cuttingProxy(compute.port)
  await gateway.call('POST', '/v2/computes', { compute_id: 'one', protocol: 'http', host: '127.0.0.1', port })
  const { project_id } = await gateway.call('POST', '/v2/compute/projects', { name: 'lab' })
  const measure = `projects/${project_id}/dynamips/nodes/${randomUUID()}/auto_idlepc`
  const begun = (count: number) => expect.poll(() => compute.asked.length).toBe(count)

  const found = ['/v2/compute', '/v2/computes/one'].map((base) => gateway.fetch('GET', `${base}/${measure}`))
  await begun(2)
  const refused = ['/v2/compute', '/v2/computes/one'].map((base) => gateway.fetch('GET', `${base}/${measure}`))
  await begun(4)
  const { host, port: at } = new URL(gateway.url)
  const client = connect(Number(at), '127.0.0.1').on('error', () => {})
  client.write(`GET /v2/computes/one/${measure} HTTP/1.1\r\nHost: ${host}\r\n`)
  client.write(`Authorization: Bearer ${adminToken}\r\n\r\n`)
  await begun(5)
  // Longer than the proxy waits.
  await sleep(cutMs + 500)
  compute.asked.forEach((it, index) => {
    if (index < 2) it.answer()
    else if (index < 4) it.refuse(conflict('No value helps'))
  })
  // workerd does not see that a client has left that only says that it sends no more.
  client.resetAndDestroy()

  for (const answer of await Promise.all(found)) {
    expect([answer.status, await answer.json()]).toEqual([200, { idlepc: '0x60608040' }])
  }
  for (const answer of await Promise.all(refused)) {
    expect([answer.status, await answer.json()]).toEqual([409, { message: 'No value helps', status: 409 }])
  }
  await compute.asked[4]?.left
})
