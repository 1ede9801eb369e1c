import { Miniflare } from 'miniflare'
import { bundleWorker } from '../../scripts/bundle-worker.ts'
import { durableObjects, workerRules } from '../../scripts/run-worker.ts'
import type { ComputeRecord } from '../../src/model/compute.ts'
import { adminToken } from './admin-token.ts'

/**
 * Lets requests in that have no credentials: tests that know of none run unchanged. What is about the fleet goes to a gateway of
 * its own: a compute that a test registers would be asked what other tests ask of all computes, and be given their projects.
 */
const front = `export default {
  fetch(request, env) {
    const { pathname } = new URL(request.url)
    const gateway = /^\\/v2\\/(computes|notifications)\\b/.test(pathname) ? env.COMPUTES : env.LABS
    if (request.headers.has('authorization')) return gateway.fetch(request)
    const headers = new Headers(request.headers)
    headers.set('authorization', 'Bearer ${adminToken}')
    return gateway.fetch(new Request(request, { headers }))
  },
}`
const gateways = ['LABS', 'COMPUTES'] as const

export interface RealWorker {
  readonly url: string
  close(): Promise<void>
}

/** The gateway's Worker with its Durable Object, in front of these computes. */
export async function realWorker(computes: readonly ComputeRecord[]): Promise<RealWorker> {
  const common = await workerRules()
  const contents = await bundleWorker({ version: '0.0.0-test' })
  const mf = new Miniflare({
    workers: [
      {
        ...common,
        name: 'front',
        modules: [{ type: 'ESModule', path: 'front.js', contents: front }],
        serviceBindings: Object.fromEntries(gateways.map((name) => [name, name])),
      },
      ...gateways.map((name) => ({
        ...common,
        name,
        modules: [{ type: 'ESModule' as const, path: 'worker.js', contents }],
        bindings: {
          FLEET_KEY: 'a secret of tests that is long enough',
          ADMIN_TOKEN: adminToken,
          ALLOWED_ORIGINS: 'https://lab.example',
          RATE_PER_S: '0',
          ALIASES: 'vpcs=pc',
        },
        durableObjects,
      })),
    ],
  })
  const url = (await mf.ready).href.replace(/\/$/, '')
  const headers = { authorization: `Bearer ${adminToken}` }
  for (const name of gateways) {
    const gateway = await mf.getWorker(name)
    for (const compute of computes) {
      const init = { method: 'POST', headers, body: JSON.stringify(compute) }
      const answer = await gateway.fetch(`${url}/v2/computes`, init)
      if (answer.status !== 201) throw new Error(`a compute is not taken: ${await answer.text()}`)
    }
  }
  return { url, close: () => mf.dispose() }
}
