import { Miniflare } from 'miniflare'
import { expect, onTestFinished, test } from 'vitest'
import type { KnownCompute } from '../../../runtime/worker/compute/rpc.ts'
import { durableObjects, modulesOf, workerRules } from '../../../scripts/run-worker.ts'
import { json, StandIn } from '../../support/fleet.ts'
import { workerBundle } from '../../support/worker-bundle.ts'

const authorization = 'Bearer the-admin-token-of-tests'

/** The Worker, which also tells what it tells isolates of a compute. */
const front = `import gateway, { ComputeObject, DirectoryObject, ProjectObject } from './worker.js'
export { ComputeObject, DirectoryObject, ProjectObject }
export default {
  async fetch(request, env, context) {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname !== '/known') return gateway.fetch(request, env, context)
    const object = env.COMPUTES.getByName(searchParams.get('id').toLowerCase())
    return Response.json((await object.known()) ?? null)
  },
}`

async function startWorker() {
  const worker = new Miniflare({
    ...modulesOf(await workerBundle(), front),
    ...(await workerRules()),
    bindings: { FLEET_KEY: 'a secret of tests that is long enough', ADMIN_TOKEN: 'the-admin-token-of-tests' },
    durableObjects,
  })
  onTestFinished(() => worker.dispose())
  const { origin } = await worker.ready
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const init = { method, headers: { authorization }, ...(body !== undefined && { body: JSON.stringify(body) }) }
    const text = await (await fetch(origin + path, init)).text()
    return (text === '' ? undefined : JSON.parse(text)) as T
  }
  return { call, known: (id: string) => call<KnownCompute | null>('GET', `/known?id=${id}`) }
}

test('isolates get the record of each compute that they request, and of no other', async () => {
  const { call, known } = await startWorker()
  const { version } = await call<{ version: string }>('GET', '/v2/compute/version')
  const compute = await StandIn.start()
  compute.capabilities = (_, res) => json(res, 200, { version, platform: 'linux', node_types: ['pc'] })
  compute.answer = (_, res) => json(res, 200, { cpu_usage_percent: Math.random(), memory_usage_percent: 1 })
  const shown = { compute_id: 'one', connected: true }
  expect(await known('one')).toBeNull()
  await call('POST', '/v2/computes', compute.input({ user: 'anna', password: 'first' }))
  expect(await known('ONE')).toMatchObject({ record: { password: 'first' }, shown })
  await call('PUT', '/v2/computes/one', { password: 'second' })
  expect(await known('one')).toMatchObject({ record: { password: 'second' } })
  await call('DELETE', '/v2/computes/one')
  expect(await known('one')).toBeNull()
})
