import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundleWorker } from '../../scripts/bundle-worker.ts'
import { runWorker } from '../../scripts/run-worker.ts'
import type { Compute, ComputeRecord } from '../../src/model/compute.ts'
import { asAdmin, bindings } from './admin.ts'
import { at, median, ms, precise } from './medians.ts'
import type { Front } from './near-and-far.ts'
import type { Row } from './table.ts'
import { each, timed } from './times.ts'
import type { BenchOrder } from './workerd/worker.ts'

const maxComputes = 1000
const maxProjects = 100_000
/** Long enough that what one request costs does not count. */
const times = 200

/** What the Worker's object does with many computes and projects in its tables. All computes are one program. */
export async function fullWorker(): Promise<Row[]> {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-bench-'))
  const [version, server] = [await versionOf(), createServer()]
  const script = await bundleWorker({ entry: 'test/bench/workerd/worker.ts' })
  const gateway = await runWorker({ host: '127.0.0.1', port: 0, data, bindings, script })
  try {
    const port = await answering(server, version)
    const front = asAdmin(gateway.url)
    const bench = async (order: BenchOrder) => (await front.call('POST', '/bench', order)) as { bytes: number }
    const emptyOpen = await opening(bench)
    const oneProject = await creations(front, bench, port, 1)
    const computes = Array.from({ length: maxComputes }, (_, index) => recordOf(index, port))
    const filled = await timed(() => bench({ computes }))
    const projects = Array.from({ length: maxProjects }, () => randomUUID())
    for (let first = 0; first < maxProjects; first += 10_000) {
      const some = projects.slice(first, first + 10_000)
      await bench({ fill: some.map((project, index) => [project, `c${index % maxComputes}`] as const) })
    }
    const fullOpen = await opening(bench)
    await untilAll(front, maxComputes)
    const { bytes } = await bench({ known: ['c0'] })
    const per = async (order: BenchOrder, count = times) => (await timed(() => bench(order))) / count
    const fresh = Array.from({ length: times }, () => randomUUID())
    const some = projects.slice(0, times)
    const reads = await per({ read: projects.slice(0, 10_000) }, 10_000)
    const [finds, places] = [await per({ find: some }), await per({ place: fresh })]
    const forgets = await per({ forget: fresh })
    const known = await per({ known: Array.from({ length: times }, (_, index) => `c${index}`) })
    const list = await each(Array(50).fill(0), () => front.call('GET', '/v2/computes'))
    const projectOfMany = await creations(front, bench, port, 0)
    const given = await each(Array(10).fill(0), () =>
      front.call('POST', '/v2/compute/projects', { name: 'bench', project_id: randomUUID() }),
    )
    const [ofComputes, ofProjects] = [`of ${maxComputes} computes`, `of ${maxProjects} projects`]
    return [
      [`Worker: register ${maxComputes} computes`, ms(filled), `${precise(filled / maxComputes)} each`],
      [`Worker: open the object ${ofComputes}`, ms(fullOpen), `an empty one ${ms(emptyOpen)}`],
      [`Worker: one for an isolate ${ofComputes}`, precise(known), `${(bytes / 1024).toFixed(1)} KB`],
      [`Worker: list ${ofComputes}`, precise(at(list, 0.5)), `p99 ${precise(at(list, 0.99))}`],
      [`Worker: create a project, one ${ofComputes}`, precise(projectOfMany), `of one compute ${precise(oneProject)}`],
      [`Worker: the same with an id of the client`, ms(median(given)), 'no compute is asked'],
      [`Worker: find the place of one ${ofProjects}`, precise(finds), `by the object itself ${precise(reads)}`],
      [`Worker: place one ${ofProjects}`, precise(places), `forget one ${precise(forgets)}`],
    ]
  } finally {
    await gateway.close()
    server.close().closeAllConnections()
    await rm(data, { recursive: true, force: true })
  }
}

const recordOf = (index: number, port: number): ComputeRecord => ({
  ...{ compute_id: `c${index}`, name: `compute ${index}`, protocol: 'http', host: '127.0.0.1', port },
  ...{ user: 'anna', password: 'geheim-geheim-geheim' },
})

/** How long the first answer of an object takes that begins anew, ms. */
async function opening(bench: (order: BenchOrder) => Promise<unknown>): Promise<number> {
  const found: number[] = []
  for (let round = 0; round < 7; round++) {
    await bench({ evict: true })
    found.push(await timed(() => bench({ find: ['none'] })))
  }
  return median(found)
}

/** How long a project takes to be created, ms; `count`: computes that are registered first. */
async function creations(
  front: Front,
  bench: (order: BenchOrder) => Promise<unknown>,
  port: number,
  count: number,
): Promise<number> {
  const computes = Array.from({ length: count }, (_, index) => recordOf(index, port))
  if (count > 0) {
    await bench({ computes })
    await bench({ evict: true })
    await untilAll(front, count)
  }
  const found = await each(Array(50).fill(0), () => front.call('POST', '/v2/compute/projects', { name: 'bench' }))
  return at(found, 0.5)
}

async function untilAll(front: Front, count: number): Promise<void> {
  for (;;) {
    const all = (await front.call('GET', '/v2/computes')) as Compute[]
    if (all.filter(({ connected }) => connected).length === count) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

async function versionOf(): Promise<string> {
  const ours = await readFile(join(import.meta.dirname, '../../package.json'), 'utf8')
  return (JSON.parse(ours) as { version: string }).version
}

/** Answers as a compute does, as far as it is asked here; its port. */
async function answering(server: Server, version: string): Promise<number> {
  server.on('request', (req, res) => {
    const parts: Buffer[] = []
    req.on('data', (part: Buffer) => parts.push(part))
    req.on('end', () => {
      const answer = (status: number, body: unknown) => {
        res.writeHead(status, { 'Content-Type': 'application/json', 'X-Route': 'bench' })
        res.end(JSON.stringify(body))
      }
      if (req.url === '/v2/compute/capabilities') {
        const node_types = ['pc', 'machine-emulator', 'iou', 'dynamips', 'hypervisor']
        return answer(200, { version, platform: 'linux', node_types, packet_path: 'fast', pc_engine: 'embedded' })
      }
      if (req.url === '/v2/compute/load')
        return answer(200, { cpu_usage_percent: Math.random() * 100, memory_usage_percent: 50 })
      if (req.method !== 'POST') return answer(404, { message: 'There is nothing', status: 404 })
      const { name, project_id } = JSON.parse(Buffer.concat(parts).toString()) as Record<string, string>
      answer(201, { name, project_id, path: '/', location: '/', temporary: false, variables: null })
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
