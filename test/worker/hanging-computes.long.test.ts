import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { version } from '../../runtime/node/os/system/version.ts'
import { json, StandIn } from '../support/fleet.ts'
import { WorkerGateway } from '../support/worker-gateway.ts'

test('reads of a compute that hangs end after 15 s, with the timer of another; those of one that is busy get their answer', async () => {
  const [gateway, hanging, busy] = await Promise.all([
    WorkerGateway.start({ RATE_PER_S: '0' }),
    StandIn.start(),
    StandIn.start(),
  ])
  const node = async (compute_id: string, compute: StandIn) => {
    compute.capabilities = (_, res) => json(res, 200, { version, platform: 'linux', node_types: ['pc'] })
    const project_id = randomUUID()
    const project = { project_id, name: 'lab', path: '/x', location: '/', temporary: false, variables: null }
    compute.answer = (_, res) => json(res, 201, project)
    await gateway.call('POST', '/v2/computes', { ...compute.input(), compute_id })
    await gateway.call('POST', '/v2/compute/projects', { name: 'lab', project_id, compute_id })
    const path = `/v2/compute/projects/${project_id}/pc/nodes/${randomUUID()}`
    await gateway.call('GET', path)
    return path
  }
  const paths = [await node('hanging', hanging), await node('busy', busy)]
  const open: ServerResponse[] = []
  hanging.answer = () => {}
  hanging.capabilities = () => {}
  busy.answer = (_, res) => void open.push(res)
  const { token } = await gateway.call<{ token: string }>('POST', '/v2/tokens', {
    name: 'alice',
    role: 'read',
    purpose: 'user',
  })
  const asked = (path: string, isToken: boolean) =>
    gateway.fetch('GET', path, undefined, isToken ? { headers: { authorization: `Bearer ${token}` } } : {})
  const began = Date.now()
  const found = paths.map((path) => [true, false, true].map((isToken) => asked(path, isToken)))
  for (const answer of await Promise.all(found[0] ?? [])) {
    expect(answer.status).toBe(504)
    expect(await answer.json()).toMatchObject({ message: expect.stringContaining('it did not answer in 15 s') })
  }
  expect(Date.now() - began).toBeGreaterThan(14_000)
  for (const res of open) json(res, 200, { name: 'pc' })
  for (const answer of await Promise.all(found[1] ?? []))
    expect([answer.status, await answer.json()]).toEqual([200, { name: 'pc' }])
})
