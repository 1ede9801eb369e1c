import { ownConnection } from './admin.ts'
import { cpuOfGets, load } from './load.ts'
import { lowerQuartile, median, precise, ratio, target } from './medians.ts'
import type { Row } from './table.ts'
import { barePaths } from './workerd/bare.ts'
import { Workerd } from './workerd-process.ts'

/** Rounds of what is measured once: latencies, and uploads. */
const rounds = 7
const uploadRounds = 3
const seconds = 1.5
const warmUpSeconds = 0.3
/**
 * Processor time is compared in many short slices, all ways in random order, and in several programs of workerd. Other work of the machine, also on the other
 * thread of a core, makes half of the slices dearer by a tenth to a half: their lower quartile varies by a fiftieth, and their median by a tenth.
 */
const programs = 3
const slices = 60
/** Requests of a slice on each connection: together about 0.15 s. */
const each = 15
/** Slices before the first one that counts: V8 compiles what runs often. */
const compilingSlices = 12
/** Clients at once: where the processor time is measured, and where the latency is. */
const few = 16
const many = 64
const uploadMb = 32
/** Uploads of a sample: one takes only two or three hundredths of a second. */
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
  /** Starts the Worker as a new program at the same address; resolves when it answers as before. */
  readonly restart: () => Promise<void>
}

type Way = 'bareWorker' | 'address' | 'bareObject' | 'tunnel'

/** What workerd takes for a request that is handed on to a compute, beside a Worker and an object that do nothing else. */
export async function handedOn({ url, token, onNear, onFar, restart }: HandedOn): Promise<Row[]> {
  const ways: Readonly<Record<Way, string>> = {
    bareWorker: url + barePaths.worker + onNear,
    address: url + onNear,
    bareObject: url + barePaths.object + onNear,
    tunnel: url + onFar,
  }
  const late = listOfEach()
  for (let round = 0; round < rounds; round++)
    for (const way of namesOf(ways))
      late[way].push((await load(ways[way], many, seconds, warmUpSeconds, { bearer: token })).p99)
  const uploads = await uploadTimes(ways, token)
  const cpu = listOfEach()
  for (let program = 0; program < programs; program++) {
    await restart()
    const times = await cpuTimes(ways, token)
    for (const way of namesOf(ways)) cpu[way].push(lowerQuartile(times[way]))
  }
  // The pairs of one round, or of one program, met the same machine.
  const beside = (what: string, values: typeof cpu, [way, bare]: readonly [Way, Way], most: number): Row => {
    const times = values[way].map((value, round) => value / (values[bare][round] ?? Number.NaN))
    const of = bare === 'bareWorker' ? 'a bare Worker that fetches' : 'a bare object that fetches'
    const found = `${ratio(median(times), 1)} (${Math.min(...times).toFixed(2)} to ${Math.max(...times).toFixed(2)})`
    const more = `${of} ${precise(median(values[bare]))}, ${found}, ${target(median(times) <= most, `${most} x`)}`
    return [`Worker: ${what}`, precise(median(values[way])), more]
  }
  const upOf = (what: string, way: 'address' | 'tunnel', most: number): Row => {
    const ms = median(uploads[way])
    const bare = `a bare Worker that fetches ${precise(median(uploads.bareWorker))}`
    return [`Worker: CPU of a MB that is uploaded ${what}`, precise(ms), `${bare}, ${target(ms <= most, `${most} ms`)}`]
  }
  return [
    beside('CPU of a GET by address', cpu, ['address', 'bareWorker'], wanted.address),
    beside('CPU of a GET by object and tunnel', cpu, ['tunnel', 'bareObject'], wanted.tunnel),
    beside(`p99 by address, ${many} clients`, late, ['address', 'bareWorker'], wanted.late),
    beside(`p99 by object and tunnel, ${many} clients`, late, ['tunnel', 'bareObject'], wanted.late),
    upOf('by address', 'address', wanted.mbByAddress),
    upOf('by object and tunnel', 'tunnel', wanted.mbByTunnel),
  ]
}

const namesOf = (ways: Readonly<Record<Way, string>>): Way[] => Object.keys(ways) as Way[]

const listOfEach = (): Record<Way, number[]> => ({ bareWorker: [], address: [], bareObject: [], tunnel: [] })

/** The processor time of a GET in the workerd that runs now, ms, by each slice. */
async function cpuTimes(ways: Readonly<Record<Way, string>>, bearer: string): Promise<Record<Way, number[]>> {
  const workerd = await Workerd.newest()
  const gets = { connections: few, each, bearer, cpu: () => workerd.cpuMs() }
  const times = listOfEach()
  const names = namesOf(ways)
  for (let slice = -compilingSlices; slice < slices; slice++) {
    // What a slice leaves to be done counts for the next one: each way follows each other one as often.
    for (const way of shuffled(names)) {
      const time = await cpuOfGets(ways[way], gets)
      if (slice >= 0) times[way].push(time)
    }
  }
  return times
}

/** The same in a random order (Fisher and Yates). */
function shuffled<T>(all: readonly T[]): T[] {
  const left = [...all]
  return all.flatMap(() => left.splice(Math.floor(Math.random() * left.length), 1))
}

/** The processor time of a MB that is uploaded, ms. */
async function uploadTimes(ways: Readonly<Record<Way, string>>, token: string): Promise<Record<Way, number[]>> {
  const workerd = await Workerd.newest()
  const body = new Uint8Array(uploadMb * 2 ** 20)
  const times = listOfEach()
  for (let round = 0; round < uploadRounds; round++) {
    for (const way of ['bareWorker', 'address', 'tunnel'] as const) {
      const before = workerd.cpuMs()
      for (let sent = 0; sent < uploadsEach; sent++)
        await upload(ways[way].replace(/\/pc\/nodes\/.*/, '/files/bench.bin'), token, body)
      times[way].push((workerd.cpuMs() - before) / uploadMb / uploadsEach)
    }
  }
  return times
}

async function upload(url: string, token: string, body: Uint8Array<ArrayBuffer>): Promise<void> {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(url, { ...ownConnection, method: 'POST', headers, body })
  await answer.arrayBuffer()
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`)
}
