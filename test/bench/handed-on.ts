import { ownConnection } from './admin.ts'
import { type LoadResult, load } from './load.ts'
import { median, precise, ratio, target } from './medians.ts'
import type { Row } from './table.ts'
import { barePaths } from './workerd/bare.ts'
import { Workerd } from './workerd-process.ts'

/** More rounds than elsewhere: what is compared are parts of a millisecond. */
const rounds = 7
const seconds = 1.5
const warmUpSeconds = 0.3
/** Clients at once: where the processor time is measured, and where the latency is. */
const few = 16
const many = 64
const uploadMb = 32
/** Uploads of a sample: processor time is counted in ticks of 10 ms, and an upload takes two or three. */
const uploadsEach = 5
/** Most times as much as the bare one, and most ms a MB. */
const wanted = { address: 1.15, tunnel: 1.3, late: 1.5, mbByTunnel: 8, mbByAddress: 0.6 }

export interface HandedOn {
  /** Of the Worker of the bench. */
  readonly url: string
  /** A signed token of a user. */
  readonly token: string
  /** Paths of a node on a compute with an address, and on one that has joined. */
  readonly onNear: string
  readonly onFar: string
}

/** What workerd takes for a request that is handed on to a compute, beside a Worker and an object that do nothing else. */
export async function handedOn({ url, token, onNear, onFar }: HandedOn): Promise<Row[]> {
  using workerd = await Workerd.newest()
  const cpu = () => workerd.cpuMs()
  const ways = {
    bareWorker: url + barePaths.worker + onNear,
    address: url + onNear,
    bareObject: url + barePaths.object + onNear,
    tunnel: url + onFar,
  }
  type Way = keyof typeof ways
  const found = { few: resultsOf<Way>(), many: resultsOf<Way>() }
  for (let round = 0; round < rounds; round++) {
    for (const [way, target] of Object.entries(ways) as [Way, string][]) {
      found.few[way].push(await load(target, few, seconds, warmUpSeconds, { bearer: token, cpu }))
      found.many[way].push(await load(target, many, seconds, warmUpSeconds, { bearer: token }))
    }
  }
  const uploads = {
    bareWorker: [] as number[],
    address: [] as number[],
    tunnel: [] as number[],
  }
  const body = new Uint8Array(uploadMb * 2 ** 20)
  for (let round = 0; round < 3; round++) {
    for (const way of ['bareWorker', 'address', 'tunnel'] as const) {
      const before = cpu()
      for (let sent = 0; sent < uploadsEach; sent++)
        await upload(ways[way].replace(/\/pc\/nodes\/.*/, '/files/bench.bin'), token, body)
      uploads[way].push((cpu() - before) / uploadMb / uploadsEach)
    }
  }
  const beside = (
    what: string,
    [ours, bare, most]: readonly [readonly number[], readonly number[], number],
    of: string,
  ): Row => {
    // The pairs of one round met the same machine.
    const times = median(ours.map((value, round) => value / (bare[round] ?? Number.NaN)))
    const more = `${of} best ${precise(median(bare))}, ${ratio(times, 1)}, ${target(times <= most, `${most} x`)}`
    return [`Worker: ${what}`, precise(median(ours)), more]
  }
  const cpuOf = (way: Way) => found.few[way].map(({ cpuMs }) => cpuMs)
  const lateOf = (way: Way) => found.many[way].map(({ p99 }) => p99)
  const upOf = (what: string, way: 'address' | 'tunnel', most: number): Row => {
    const ms = median(uploads[way])
    const bare = `a bare Worker that fetches best ${precise(median(uploads.bareWorker))}`
    return [`Worker: CPU of a MB that is uploaded ${what}`, precise(ms), `${bare}, ${target(ms <= most, `${most} ms`)}`]
  }
  const [aWorker, anObject] = ['a bare Worker that fetches', 'a bare object that fetches']
  return [
    beside('CPU of a GET by address', [cpuOf('address'), cpuOf('bareWorker'), wanted.address], aWorker),
    beside('CPU of a GET by object and tunnel', [cpuOf('tunnel'), cpuOf('bareObject'), wanted.tunnel], anObject),
    beside(`p99 by address, ${many} clients`, [lateOf('address'), lateOf('bareWorker'), wanted.late], aWorker),
    beside(
      `p99 by object and tunnel, ${many} clients`,
      [lateOf('tunnel'), lateOf('bareObject'), wanted.late],
      anObject,
    ),
    upOf('by address', 'address', wanted.mbByAddress),
    upOf('by object and tunnel', 'tunnel', wanted.mbByTunnel),
  ]
}

const resultsOf = <Way extends string>(): Record<
  'bareWorker' | 'address' | 'bareObject' | 'tunnel' | Way,
  LoadResult[]
> => ({ bareWorker: [], address: [], bareObject: [], tunnel: [] }) as never

async function upload(url: string, token: string, body: Uint8Array<ArrayBuffer>): Promise<void> {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(url, { ...ownConnection, method: 'POST', headers, body })
  await answer.arrayBuffer()
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`)
}
