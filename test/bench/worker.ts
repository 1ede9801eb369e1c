import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundleWorker } from '../../scripts/bundle-worker.ts'
import { runWorker } from '../../scripts/run-worker.ts'
import { adminToken, asAdmin, bindings } from './admin.ts'
import { fullWorker } from './full-worker.ts'
import { handedOn } from './handed-on.ts'
import { manyComputes } from './many-computes.ts'
import { nearAndFar, untilConnected } from './near-and-far.ts'
import type { Service } from './service.ts'
import type { Row } from './table.ts'
import { compared } from './ways.ts'
import type { BenchOrder } from './workerd/worker.ts'

/** What the gateway's Worker adds to a request, in workerd on this machine, and what it does with many computes and projects. */
export async function worker(): Promise<Row[]> {
  return [...(await requests()), ...(await fullWorker()), ...(await manyComputes())]
}

/** By an isolate, and by its object and a tunnel. */
async function requests(): Promise<Row[]> {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-bench-'))
  const script = await bundleWorker({ entry: 'test/bench/workerd/worker.ts' })
  const options = { host: '127.0.0.1', data, bindings, script }
  let gateway = await runWorker({ ...options, port: 0 })
  const services: Service[] = []
  try {
    const { url: origin } = gateway
    const front = asAdmin(origin)
    const { token } = (await front.call('POST', '/v2/tokens', { name: 'far', purpose: 'join' })) as { token: string }
    const { near, onNear, onFar, farId } = await nearAndFar(front, { url: origin, token, services })
    const url = origin.replace('://', `://admin:${adminToken}@`)
    const ways = [
      ['direct', near.url + onNear],
      ['by the Worker', url + onNear],
      ['by Worker, object and tunnel', url + onFar],
    ] as const
    const rows: Row[] = []
    for (const connections of [1, 16]) rows.push(...(await compared(ways, connections)))
    const user = { name: 'bench', role: 'operate', purpose: 'user' }
    const signed = (await front.call('POST', '/v2/tokens', user)) as { token: string }
    const setBare = () => front.call('POST', '/bench', { bare: near.url } satisfies BenchOrder)
    const restart = async () => {
      await gateway.close()
      gateway = await runWorker({ ...options, port: Number(new URL(origin).port) })
      await setBare()
      await untilConnected(front, farId)
    }
    await setBare()
    rows.push(...(await handedOn({ url: origin, token: signed.token, onNear, onFar, restart })))
    return rows
  } finally {
    for (const service of services.reverse()) await service.close()
    await gateway.close()
    await rm(data, { recursive: true, force: true })
  }
}
