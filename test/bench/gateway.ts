import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { PlacementLog } from '../../runtime/node/fleet/placement-log.ts'
import { RegistryFile } from '../../runtime/node/fleet/registry-file.ts'
import { Fleet } from '../../src/fleet/fleet.ts'
import { fleetMembers } from '../../src/gateway/fleet-members.ts'
import { Room } from '../../src/gateway/room.ts'
import type { ComputeRecord } from '../../src/model/compute.ts'
import { type LoadResult, load } from './load.ts'
import { added, at, median, medianDifference, ms, ratio } from './medians.ts'
import { type Service, startService } from './service.ts'
import type { Row } from './table.ts'

const token = 'bench-token-0123456789'
const rounds = 3
const secondsEach = 2
const mostComputes = 1000
const mostProjects = 100_000

/** What a gateway adds to a request, and what it does with many computes and projects. */
export async function gateway(): Promise<Row[]> {
  return [...(await requests()), ...(await registry()), ...(await placements())]
}

const quiet = () => {}
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }

async function requests(): Promise<Row[]> {
  const services: Service[] = []
  const open = async (...flags: string[]): Promise<Service> => {
    const service = await startService(...flags)
    services.push(service)
    return service
  }
  try {
    const front = await open('--gateway', `--fleet-join-tokens=${token}`, '--rate-limit-per-s=0')
    const near = await open(...ports(11_000))
    const far = await open(...ports(12_000), '--join', front.url, '--join-token', token)
    const { hostname: host, port } = new URL(near.url)
    await front.call('POST', '/v2/computes', { compute_id: 'near', protocol: 'http', host, port: Number(port) })
    const farId = (await readFile(join(far.data, 'compute-id'), 'utf8')).trim()
    while (!(await isConnected(front, farId))) await new Promise((resolve) => setTimeout(resolve, 50))
    const [onNear, onFar] = [await newPc(front, 'near'), await newPc(front, farId)]
    const ways = [
      ['direct', near.url + onNear],
      ['by address', front.url + onNear],
      ['by tunnel', front.url + onFar],
    ] as const
    const rows: Row[] = []
    for (const connections of [1, 16]) rows.push(...(await compared(ways, connections)))
    return rows
  } finally {
    for (const service of services.reverse()) await service.close()
  }
}

export const ports = (first: number): string[] => [
  `--console-port-range=${first}-${first + 99}`,
  `--udp-port-range=${first + 100}-${first + 199}`,
  `--vnc-port-range=${first + 200}-${first + 299}`,
]

/** What is asked by `call`. */
export type Front = Pick<Service, 'call'>

export async function isConnected(front: Front, id: string): Promise<boolean> {
  const computes = (await front.call('GET', '/v2/computes')) as { compute_id: string; connected: boolean }[]
  return computes.some(({ compute_id, connected }) => compute_id === id && connected)
}

/** The path of a pc at that compute. */
export async function newPc(front: Front, compute_id: string): Promise<string> {
  const project_id = randomUUID()
  await front.call('POST', '/v2/compute/projects', { name: 'bench', project_id, compute_id })
  const nodes = `/v2/compute/projects/${project_id}/pc/nodes`
  const { node_id } = (await front.call('POST', nodes, { name: 'PC' })) as { node_id: string }
  return `${nodes}/${node_id}`
}

/** The first way, and what the others take more than it. */
export async function compared(ways: readonly (readonly [string, string])[], connections: number): Promise<Row[]> {
  const results = ways.map((): LoadResult[] => [])
  for (let round = 0; round < rounds; round++) {
    for (const [index, [, url]] of ways.entries()) results[index]?.push(await load(url, connections, secondsEach))
  }
  const of = (index: number, name: keyof LoadResult) => (results[index] ?? []).map((it) => it[name])
  return ways.map(([way], index) => {
    const [p50, p99, perSecond] = [of(index, 'p50'), of(index, 'p99'), of(index, 'perSecond')]
    const what = `GET node ${way}, ${connections} connection${connections === 1 ? '' : 's'}`
    const rate = `${median(perSecond).toFixed(0)} req/s`
    const usual = `p50 ${precise(median(p50))}, p99 ${precise(median(p99))}`
    if (index === 0) return [what, rate, usual]
    const more = `${added(medianDifference(p50, of(0, 'p50')))} p50, ${added(medianDifference(p99, of(0, 'p99')))} p99`
    return [what, rate, `${usual}; ${more}, ${ratio(median(perSecond), median(of(0, 'perSecond')))} as many`]
  })
}

async function registry(): Promise<Row[]> {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-bench-'))
  try {
    const record = (index: number): ComputeRecord => ({
      ...{ compute_id: randomUUID(), name: `compute ${index}`, protocol: 'http', host: '192.0.2.1', port: 3080 },
      ...{ user: 'anna', password: 'geheim' },
    })
    const records = Array.from({ length: mostComputes }, (_, index) => record(index))
    await writeFile(join(data, 'computes.json'), JSON.stringify({ version: 1, computes: records }))
    const file = new RegistryFile({ data, floorMb: () => 0, log })
    const loaded = await timed(() => file.load())
    const saves = await each(records.slice(0, 100), (it) => file.save({ ...it, name: 'other' }))
    const fleet = await Fleet.open({
      ...{ registry: file, version: '0.1.0', upkeep: false },
      transport: () => () => Promise.reject(new Error('nothing is asked')),
    })
    const [members, room] = [fleetMembers(fleet), new Room()]
    const seen = (await members.all()).map((member) => ({ ...member, isConnected: true, load: undefined }))
    const lists = await each(records.slice(0, 100), () => fleet.list())
    const finds = await each(records, ({ compute_id }) => members.find(compute_id))
    const orders = await each(records.slice(0, 100), async () => room.order(seen))
    await fleet.close()
    const of = `of ${mostComputes} computes`
    return [
      [`list ${of}`, precise(at(lists, 0.5)), `p99 ${precise(at(lists, 0.99))}; load from disk ${ms(loaded)}`],
      [`find one ${of}`, precise(at(finds, 0.5)), `p99 ${precise(at(finds, 0.99))}`],
      [`choose where a project goes ${of}`, precise(at(orders, 0.5)), `p99 ${precise(at(orders, 0.99))}`],
      [`save one ${of}`, precise(at(saves, 0.5)), `p99 ${precise(at(saves, 0.99))}`],
    ]
  } finally {
    await rm(data, { recursive: true, force: true })
  }
}

async function placements(): Promise<Row[]> {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-bench-'))
  try {
    const projects = Array.from({ length: mostProjects }, () => randomUUID())
    const path = join(data, 'placements.log')
    await writeFile(path, projects.map((project, index) => `${project} c${index % 100}\n`).join(''))
    let map: PlacementLog | undefined
    const opened = await timed(async () => {
      map = await PlacementLog.open({ data, floorMb: () => 0, log })
    })
    const store = map as unknown as PlacementLog
    const gets = await each(projects, (project) => store.get(project))
    const fresh = (count: number) => Array.from({ length: count }, () => randomUUID())
    const puts = await each(fresh(300), (project) => store.put(project, 'c1'))
    const together = fresh(1000)
    const burst = await timed(() => Promise.all(together.map((project) => store.put(project, 'c1'))))
    const removals = await each(projects.slice(0, 300), (project) => store.remove(project))
    await store.close()
    const of = `of ${mostProjects} projects`
    const size = `${((await stat(path)).size / 2 ** 20).toFixed(1)} MB`
    return [
      [`open the placements ${of}`, ms(opened), `${size} on disk`],
      [`find the place of one ${of}`, precise(at(gets, 0.5)), `p99 ${precise(at(gets, 0.99))}`],
      [`place one ${of}`, precise(at(puts, 0.5)), `p99 ${precise(at(puts, 0.99))}; 1000 at once in ${ms(burst)}`],
      [`forget one ${of}`, precise(at(removals, 0.5)), `p99 ${precise(at(removals, 0.99))}`],
    ]
  } finally {
    await rm(data, { recursive: true, force: true })
  }
}

const precise = (value: number): string => (value < 0.1 ? `${(value * 1000).toFixed(1)} us` : `${value.toFixed(2)} ms`)

async function timed(run: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await run()
  return performance.now() - began
}

/** How long each took, one after the other, ms. */
async function each<T>(items: readonly T[], run: (item: T) => Promise<unknown>): Promise<number[]> {
  const times: number[] = []
  for (const item of items) times.push(await timed(() => run(item)))
  return times
}
