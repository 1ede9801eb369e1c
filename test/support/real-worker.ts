import { Miniflare } from 'miniflare'
import { bundleWorker } from '../../scripts/bundle-worker.ts'
import { durableObjects, modulesOf, workerRules } from '../../scripts/run-worker.ts'
import { joinPath } from '../../src/endpoints/v2/fleet/join.ts'
import type { Compute, ComputeRecord } from '../../src/model/compute.ts'
import { adminToken } from './admin-token.ts'

/**
 * Lets requests in that have no credentials: tests that know of none run unchanged. What is about the fleet goes to a gateway of
 * its own: a compute that a test registers would be asked what other tests ask of all computes, and be given their projects.
 */
const front = `export default {
  fetch(request, env) {
    const { pathname } = new URL(request.url)
    const isOfFleet = /^\\/v2\\/(computes|notifications)\\b/.test(pathname) && pathname !== '${joinPath}'
    const gateway = isOfFleet ? env.COMPUTES : env.LABS
    if (request.headers.has('authorization')) return gateway.fetch(request)
    const headers = new Headers(request.headers)
    headers.set('authorization', 'Bearer ${adminToken}')
    return gateway.fetch(new Request(request, { headers }))
  },
}`
const gateways = ['LABS', 'COMPUTES'] as const

export interface RealWorker {
  readonly url: string
  /** Has the computes of the tests of labs join; `join` is given the token of each. Resolves when they are connected. */
  joined(join: (compute: ComputeRecord, token: string) => void): Promise<void>
  close(): Promise<void>
}

/** The gateway's Worker with its Durable Objects, in front of these computes. `areJoining`: those of the tests of labs join. */
export async function realWorker(computes: readonly ComputeRecord[], areJoining = false): Promise<RealWorker> {
  const common = await workerRules()
  const { modules, unsafeUseModuleFallbackService, unsafeModuleFallbackService } = modulesOf(
    await bundleWorker({ version: '0.0.0-test' }),
  )
  const mf = new Miniflare({
    unsafeModuleFallbackService,
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
        modules,
        unsafeUseModuleFallbackService,
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
  for (const name of areJoining ? (['COMPUTES'] as const) : gateways) {
    const gateway = await mf.getWorker(name)
    for (const compute of computes) {
      const init = { method: 'POST', headers, body: JSON.stringify(compute) }
      const answer = await gateway.fetch(`${url}/v2/computes`, init)
      if (answer.status !== 201) throw new Error(`a compute is not taken: ${await answer.text()}`)
    }
  }
  return {
    url,
    async joined(join) {
      const gateway = await mf.getWorker('LABS')
      const call = async <T>(method: string, path: string, body?: object): Promise<T> => {
        const answer = await gateway.fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
        return (await answer.json()) as T
      }
      for (const compute of computes) {
        const { compute_id } = compute
        const fields = { name: compute_id, purpose: 'join', compute_id }
        join(compute, (await call<{ token: string }>('POST', '/v2/tokens', fields)).token)
      }
      const areConnected = async () =>
        (await call<Compute[]>('GET', '/v2/computes')).filter(({ connected }) => connected).length === computes.length
      while (!(await areConnected())) await new Promise((resolve) => setTimeout(resolve, 50))
    },
    close: () => mf.dispose(),
  }
}
