import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runWorker } from '../../scripts/run-worker.ts'
import { compared, type Front, isConnected, newPc, ports } from './gateway.ts'
import { type Service, startService } from './service.ts'
import type { Row } from './table.ts'

const adminToken = 'the-admin-token-of-bench'
const bindings = { FLEET_KEY: 'a secret of the bench that is long enough', ADMIN_TOKEN: adminToken, RATE_PER_S: '0' }

/** What the gateway's Worker adds to a request, in workerd on this machine: by an isolate, and by its object and a tunnel. */
export async function worker(): Promise<Row[]> {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-bench-'))
  const gateway = await runWorker({ host: '127.0.0.1', port: 0, data, bindings })
  const services: Service[] = []
  try {
    const front = asAdmin(gateway.url)
    const { token } = (await front.call('POST', '/v2/tokens', { name: 'far', purpose: 'join' })) as { token: string }
    const near = await startService(...ports(11_000))
    services.push(near)
    const far = await startService(...ports(12_000), '--join', gateway.url.replace('http', 'ws'), '--join-token', token)
    services.push(far)
    const { hostname: host, port } = new URL(near.url)
    await front.call('POST', '/v2/computes', { compute_id: 'near', protocol: 'http', host, port: Number(port) })
    const farId = (await readFile(join(far.data, 'compute-id'), 'utf8')).trim()
    while (!(await isConnected(front, farId))) await new Promise((resolve) => setTimeout(resolve, 50))
    const [onNear, onFar] = [await newPc(front, 'near'), await newPc(front, farId)]
    const url = gateway.url.replace('://', `://admin:${adminToken}@`)
    const ways = [
      ['direct', near.url + onNear],
      ['by the Worker', url + onNear],
      ['by Worker, object and tunnel', url + onFar],
    ] as const
    const rows: Row[] = []
    for (const connections of [1, 16]) rows.push(...(await compared(ways, connections)))
    return rows
  } finally {
    for (const service of services.reverse()) await service.close()
    await gateway.close()
    await rm(data, { recursive: true, force: true })
  }
}

const asAdmin = (url: string): Front => ({
  async call(method, path, body) {
    const headers = { authorization: `Bearer ${adminToken}` }
    const answer = await fetch(url + path, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  },
})
