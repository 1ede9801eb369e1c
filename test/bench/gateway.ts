import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ServiceRecords } from '../../runtime/node/engine/storage/service-records.ts'
import { PlacementLog } from '../../runtime/node/service/fleet/placement-log.ts'
import { RegistryFile } from '../../runtime/node/service/fleet/registry-file.ts'
import { fleetMembers } from '../../src/fleet/members/fleet-members.ts'
import { Scheduler } from '../../src/fleet/placement/scheduler.ts'
import { Fleet } from '../../src/fleet/pool/fleet.ts'
import type { ComputeRecord } from '../../src/model/compute.ts'
import { startBareProxy } from './bare-proxy.ts'
import type { Effort } from './effort.ts'
import { at, ms, precise } from './medians.ts'
import { nearAndFar } from './near-and-far.ts'
import { type Service, startServiceWith } from './service.ts'
import type { Row } from './table.ts'
import { each, timed } from './times.ts'
import { compared } from './ways.ts'

const token = 'bench-token-0123456789'
const maxComputes = 1000
const maxProjects = 100_000

/** What a gateway adds to a request, and what it does with many computes and projects. */
export async function gateway(): Promise<Row[]> {
  return [...(await gatewayRequests()), ...(await registry()), ...(await placements())]
}

const quiet = () => {}
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }

/** What a gateway adds to a request. */
export async function gatewayRequests(effort?: Effort): Promise<Row[]> {
  const services: Pick<Service, 'close'>[] = []
  try {
    const front = await startServiceWith({ PATCHBAY_FLEET_JOIN_TOKENS: token }, '--gateway', '--rate-limit-per-s=0')
    services.push(front)
    const { near, onNear, onFar } = await nearAndFar(front, { url: front.url, token, services })
    const bare = await startBareProxy(near.url)
    services.push(bare)
    const ways = [
      ['direct', near.url + onNear],
      ['by a bare proxy', bare.url + onNear],
      ['by address', front.url + onNear],
      ['by tunnel', front.url + onFar],
    ] as const
    const rows: Row[] = []
    for (const connections of [1, 16]) rows.push(...(await compared(ways, connections, effort)))
    return rows
  } finally {
    for (const service of services.reverse()) await service.close()
  }
}

async function registry(): Promise<Row[]> {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-bench-'))
  try {
    const record = (index: number): ComputeRecord => ({
      ...{ compute_id: randomUUID(), name: `compute ${index}`, protocol: 'http', host: '192.0.2.1', port: 3080 },
      ...{ user: 'anna', password: 'geheim' },
    })
    const records = Array.from({ length: maxComputes }, (_, index) => record(index))
    await writeFile(join(data, 'computes.json'), JSON.stringify({ version: 1, computes: records }))
    const file = new RegistryFile(await ServiceRecords.open({ data, minFreeMb: () => 0, log }))
    const loaded = await timed(() => file.load())
    const saves = await each(records.slice(0, 100), (it) => file.save({ ...it, name: 'other' }))
    const fleet = await Fleet.open({
      ...{ registry: file, version: '0.1.0', healthChecks: false },
      transport: () => () => Promise.reject(new Error('nothing is asked')),
    })
    const [members, room] = [fleetMembers(fleet), new Scheduler()]
    const seen = (await members.all()).map(({ id, acceptsProjects, weight }) => ({
      ...{ id, acceptsProjects, weight, isConnected: true, load: undefined },
    }))
    const lists = await each(records.slice(0, 100), () => fleet.list())
    const finds = await each(records, ({ compute_id }) => members.find(compute_id))
    const orders = await each(records.slice(0, 100), async () => room.order(seen))
    await fleet.close()
    const of = `of ${maxComputes} computes`
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
    const projects = Array.from({ length: maxProjects }, () => randomUUID())
    const path = join(data, 'placements.log')
    await writeFile(path, projects.map((project, index) => `${project} c${index % 100}\n`).join(''))
    let map: PlacementLog | undefined
    const opened = await timed(async () => {
      map = await PlacementLog.open(await ServiceRecords.open({ data, minFreeMb: () => 0, log }))
    })
    const store = map as unknown as PlacementLog
    const gets = await each(projects, (project) => store.get(project))
    const fresh = (count: number) => Array.from({ length: count }, () => randomUUID())
    const puts = await each(fresh(300), (project) => store.put(project, 'c1'))
    const together = fresh(1000)
    const burst = await timed(() => Promise.all(together.map((project) => store.put(project, 'c1'))))
    const removals = await each(projects.slice(0, 300), (project) => store.remove(project))
    await store.close()
    const of = `of ${maxProjects} projects`
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
