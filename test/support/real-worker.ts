import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Miniflare } from 'miniflare'
import { parse } from 'smol-toml'
import { bundleWorker } from '../../scripts/bundle-worker.ts'
import type { ComputeRecord } from '../../src/model/compute.ts'

const settings = join(import.meta.dirname, '../../wrangler.toml')
const adminToken = 'the-admin-token-of-handlers'

/** Lets requests in that have no credentials: tests that know of none run unchanged. */
const front = `export default {
  fetch(request, env) {
    if (request.headers.has('authorization')) return env.GATEWAY.fetch(request)
    const headers = new Headers(request.headers)
    headers.set('authorization', 'Bearer ${adminToken}')
    return env.GATEWAY.fetch(new Request(request, { headers }))
  },
}`

export interface RealWorker {
  readonly url: string
  close(): Promise<void>
}

/** The gateway's Worker with its Durable Object, in front of these computes. */
export async function realWorker(computes: readonly ComputeRecord[]): Promise<RealWorker> {
  const { compatibility_date } = parse(await readFile(settings, 'utf8'))
  const common = { compatibilityDate: String(compatibility_date) }
  const mf = new Miniflare({
    workers: [
      {
        ...common,
        name: 'front',
        modules: [{ type: 'ESModule', path: 'front.js', contents: front }],
        serviceBindings: { GATEWAY: 'gateway' },
      },
      {
        ...common,
        name: 'gateway',
        modules: [{ type: 'ESModule', path: 'worker.js', contents: await bundleWorker('0.0.0-test') }],
        bindings: {
          FLEET_KEY: 'a secret of tests that is long enough',
          ADMIN_TOKEN: adminToken,
          ALLOWED_ORIGINS: 'https://lab.example',
          RATE_PER_S: '0',
          ALIASES: 'vpcs=pc',
        },
        durableObjects: { FLEET: { className: 'FleetObject', useSQLite: true } },
      },
    ],
  })
  const url = (await mf.ready).href.replace(/\/$/, '')
  for (const compute of computes) {
    const answer = await fetch(`${url}/v2/computes`, { method: 'POST', body: JSON.stringify(compute) })
    if (answer.status !== 201) throw new Error(`a compute is not taken: ${await answer.text()}`)
  }
  return { url, close: () => mf.dispose() }
}
