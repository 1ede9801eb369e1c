import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { type Effort, inOneGo } from './effort.ts'
import { load } from './load.ts'
import { type Service, startService } from './service.ts'
import type { Row } from './table.ts'

/** Requests per second and latencies of two GETs. */
export async function requests({ seconds, warmUpSeconds }: Effort = inOneGo): Promise<Row[]> {
  const service = await startService()
  try {
    const [node] = await createPcs(service, await projects(service, 1), 1)
    const rows: Row[] = []
    for (const [what, path] of [
      ['GET node', node ?? ''],
      ['GET version', '/v2/compute/version'],
    ] as const) {
      for (const connections of [8, 64]) {
        const { perSecond, p50, p99 } = await load(service.url + path, connections, seconds, warmUpSeconds)
        rows.push([
          `${what}, ${connections} connections`,
          `${Math.round(perSecond)} req/s`,
          `p50 ${ms(p50)}, p99 ${ms(p99)}`,
        ])
      }
    }
    return rows
  } finally {
    await service.close()
  }
}

/** Create, start, stop and delete that many pcs with one request each, all sent at once; and the memory they take. */
export async function pcs(engine: 'vpcs' | 'embedded', count: number): Promise<Row[]> {
  const service = await startService('--pc-engine', engine)
  try {
    const idle = await service.memoryMb()
    const labs = await projects(service, Math.ceil(count / pcsAProject))
    const began = performance.now()
    const nodes = await createPcs(service, labs, count)
    const created = performance.now() - began
    const started = await timed(() => all(nodes, (node) => service.call('POST', `${node}/start`)))
    const memory = await service.memoryMb()
    const stopped = await timed(() => all(nodes, (node) => service.call('POST', `${node}/stop`)))
    const deleted = await timed(() => all(nodes, (node) => service.call('DELETE', node)))
    const of = `${count} ${engine} pcs`
    return [
      [of, `create ${ms(created)}`, `start ${ms(started)}, stop ${ms(stopped)}, delete ${ms(deleted)}`],
      [
        `memory, ${of} running`,
        `${memory.toFixed(0)} MB`,
        `idle ${idle.toFixed(0)} MB (service, keeper and children, shared pages once)`,
      ],
    ]
  } finally {
    await service.close()
  }
}

/** From exec to the first answer, with nothing on disk; the median of the rounds. */
export async function coldStart({ rounds }: Effort = inOneGo): Promise<Row[]> {
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const service = await startService()
    times.push(service.coldStartMs)
    await service.close()
  }
  times.sort((a, b) => a - b)
  return [
    [
      'cold start to first answer',
      ms(times[Math.floor(rounds / 2)] ?? Number.NaN),
      `best ${ms(times[0] ?? Number.NaN)}`,
    ],
  ]
}

const ms = (value: number) => (value < 10 ? `${value.toFixed(2)} ms` : `${Math.round(value)} ms`)

// A project has 255 pc ids.
const pcsAProject = 250

async function projects(service: Service, count: number): Promise<string[]> {
  const created = Array.from({ length: count }, () => service.call('POST', '/v2/compute/projects', { name: 'bench' }))
  return (await Promise.all(created)).map((it) => `/v2/compute/projects/${(it as { project_id: string }).project_id}`)
}

/** Creates them all at once, spread over the projects; their paths. */
async function createPcs(service: Service, labs: readonly string[], count: number): Promise<string[]> {
  const nodes = Array.from({ length: count }, (_, index) => ({
    lab: `${labs[index % labs.length]}/pc/nodes`,
    node_id: randomUUID(),
  }))
  await all(nodes, ({ lab, node_id }) => service.call('POST', lab, { name: 'PC', node_id }))
  return nodes.map(({ lab, node_id }) => `${lab}/${node_id}`)
}

const all = <T>(items: readonly T[], run: (item: T) => Promise<unknown>) => Promise.all(items.map(run))

async function timed(run: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await run()
  return performance.now() - began
}
