import { Miniflare } from 'miniflare'
import { expect, onTestFinished, test } from 'vitest'
import type { FleetSnapshot } from '../../runtime/worker/fleet-object.ts'
import { bundleWorker } from '../../scripts/bundle-worker.ts'
import { durableObjects, workerRules } from '../../scripts/run-worker.ts'
import { json, StandIn } from '../support/fleet.ts'

const authorization = 'Bearer the-admin-token-of-tests'

/** The Worker, which also tells what it tells isolates. */
const front = `import gateway, { ComputeObject, FleetObject, ProjectObject } from './worker.js'
export { ComputeObject, FleetObject, ProjectObject }
export default {
  async fetch(request, env, context) {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname !== '/snapshot') return gateway.fetch(request, env, context)
    const object = env.FLEET.getByName('fleet')
    return Response.json((await object.snapshot(searchParams.get('known') ?? undefined)) ?? null)
  },
}`

async function startWorker() {
  const worker = new Miniflare({
    modules: [
      { type: 'ESModule', path: 'front.js', contents: front },
      { type: 'ESModule', path: 'worker.js', contents: await bundleWorker() },
    ],
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
  return { call, snapshot: (known: string) => call<FleetSnapshot | null>('GET', `/snapshot?known=${known}`) }
}

test('isolates are told of the computes again only when one came, went, was changed or is lost', async () => {
  const { call, snapshot } = await startWorker()
  const { version } = await call<{ version: string }>('GET', '/v2/compute/version')
  const compute = await StandIn.start()
  compute.capabilities = (_, res) => json(res, 200, { version, platform: 'linux', node_types: ['pc'] })
  compute.answer = (_, res) => json(res, 200, { cpu_usage_percent: Math.random(), memory_usage_percent: 1 })
  let known = 'nothing'
  const told = async () => {
    const said = await snapshot(known)
    if (said === null) return false
    known = said.revision
    return said
  }
  const path = '/v2/computes/one'
  const shown = { compute_id: 'one', connected: true }
  expect(await told()).toMatchObject({ records: [], shown: [] })
  await call('POST', '/v2/computes', compute.input({ user: 'anna', password: 'first' }))
  expect(await told()).toMatchObject({ records: [{ password: 'first' }], shown: [shown] })
  expect(await told()).toBe(false)
  await call('PUT', path, { weight: 2 })
  expect(await told()).toBe(false)
  await call('PUT', path, { password: 'second' })
  expect(await told()).toMatchObject({ records: [{ password: 'second' }] })
  await call('DELETE', path)
  expect(await told()).toMatchObject({ records: [], shown: [] })
  expect(await told()).toBe(false)
})
