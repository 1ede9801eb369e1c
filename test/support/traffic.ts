import { isDeepStrictEqual } from 'node:util'
import type { Filter } from '../../runtime/node/dataplane/filters/index.ts'
import { isProbe } from '../../runtime/node/dataplane/switch/core/probe-frame.ts'
import type { PortCounters } from '../../runtime/node/keeper/protocol/protocol.ts'
import { lan, type PathName, type Peer, peer, udp } from './lan.ts'
import { hangMs } from './limits.ts'
import { freePort } from './ports.ts'

/** Where a frame has its number: after an Ethernet header. */
const numberAt = 14
/** Fits the socket buffers of a system that nobody tuned. */
const burst = 100

/** An Ethernet frame of an experimental type that carries its number, and is filled with it. */
export function numbered(number: number, size = 64): Buffer {
  const frame = Buffer.alloc(size, number)
  frame.writeUInt16BE(0x88b6, 12)
  frame.writeUInt32BE(number, numberAt)
  return frame
}

export const numberOf = (frame: Buffer): number => frame.readUInt32BE(numberAt)

/** A frame, and when it was sent or came (performance.now(), ms). */
export interface Stamped {
  readonly frame: Buffer
  readonly at: number
}

/** One direction of a wire under test. */
export class Way {
  readonly name: string
  readonly sent: Stamped[] = []
  readonly came: Stamped[] = []
  /** What was counted while frames were `put`. */
  tally: Tally = { passed: 0, duplicated: 0, corrupted: 0, dropped: {} }
  /** Reads the counters of the port that has the filters. */
  readonly counters: () => Promise<PortCounters>
  readonly #from: Peer
  readonly #port: number | undefined

  constructor(name: string, from: Peer, port: number | undefined, to: Peer, counters: () => Promise<PortCounters>) {
    this.name = name
    this.counters = counters
    this.#from = from
    this.#port = port
    to.socket.on('message', (frame) => {
      if (!isProbe(frame, 0, frame.length)) this.came.push({ frame, at: performance.now() })
    })
  }

  /** Sends frames a burst at a time, the next when the switch took the one before and what it let pass came. */
  async send(count: number, make: (number: number) => Buffer = numbered): Promise<void> {
    for (let left = count; left > 0; left -= burst) {
      await this.put(Math.min(left, burst), make)
      await this.holds(this.tally.passed)
    }
  }

  /** Sends frames a burst at a time, the next when the switch took the one before. For one way of a port at a time. */
  async put(count: number, make: (number: number) => Buffer = numbered): Promise<void> {
    const { tally } = this
    const before = await this.counters()
    const wanted = taken(tally) + count
    for (let left = count; left > 0; left -= burst) {
      this.emit(Math.min(left, burst), make)
      const goal = wanted - Math.max(0, left - burst)
      await until(
        async () => {
          const last = this.tally
          this.tally = sum(tally, before, await this.counters())
          // The switch counts a frame as passed, and takes that back when the queue is full: a reading may lie between.
          return taken(this.tally) >= goal && isDeepStrictEqual(this.tally, last)
        },
        () => `${this.name}: the switch took ${taken(this.tally)} of ${goal}`,
      )
    }
  }

  /** Sends a few frames every millisecond. */
  async stream(count: number, everyMs: number, make: (number: number) => Buffer = numbered): Promise<void> {
    for (let left = count; left > 0; left -= everyMs) {
      this.emit(Math.min(left, everyMs), make)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }

  /** Sends frames at once. */
  emit(count: number, make: (number: number) => Buffer = numbered): void {
    for (let index = 0; index < count; index++) {
      const frame = make(this.sent.length)
      this.sent.push({ frame, at: performance.now() })
      void this.#from.send(frame, this.#port)
    }
  }

  /** Resolves when so many frames came. */
  async holds(count: number): Promise<void> {
    await until(
      () => this.came.length >= count,
      () => `${this.name}: ${this.came.length} of ${count} came`,
    )
  }

  /** Numbers of the frames that came, in that order. */
  get numbers(): number[] {
    return this.came.map(({ frame }) => numberOf(frame))
  }

  /** How long each of the frames that came was on its way, ms. */
  get transits(): number[] {
    return this.came.map(({ frame, at }) => at - (this.sent[numberOf(frame)]?.at ?? Number.NaN))
  }
}

/** What became of frames. */
export interface Tally {
  readonly passed: number
  readonly duplicated: number
  readonly corrupted: number
  /** By reason, without those that did not occur. */
  readonly dropped: Readonly<Record<string, number>>
}

/** How many of the sent frames the switch has dealt with. */
function taken({ passed, duplicated, dropped }: Tally): number {
  return Object.values(dropped).reduce((sum, count) => sum + count, passed - duplicated)
}

/** Adds what was counted from `before` until `now`. */
function sum(to: Tally, before: PortCounters, now: PortCounters): Tally {
  const dropped: Record<string, number> = { ...to.dropped }
  for (const [reason, count] of Object.entries(now.dropped)) {
    const more = count - (before.dropped[reason as keyof PortCounters['dropped']] ?? 0)
    if (more !== 0) dropped[reason] = (dropped[reason] ?? 0) + more
  }
  return {
    passed: to.passed + now.out_frames + now.in_frames - before.out_frames - before.in_frames,
    duplicated: to.duplicated + now.duplicated - before.duplicated,
    corrupted: to.corrupted + now.corrupted - before.corrupted,
    dropped,
  }
}

export interface Stages {
  readonly suspend?: boolean
  readonly filters?: Filter[]
}

/** A port with the stages on a link to a remote UDP peer, another that is joined with a third port, and the ways over them. */
export async function wires(path: PathName, stages: Stages) {
  const { lan: it, guests } = await lan(path, 'r', 'a', 'b')
  const [r, a, b] = guests
  const remote = await peer(0)
  const [rPort, aPort, bPort] = [freePort(), freePort(), freePort()]
  const impair = async (next: Stages): Promise<void> => {
    await it.attach('r', udp(rPort, remote.port, next))
    await it.attach('a', udp(aPort, bPort, next))
  }
  const impairOther = (next: Stages): Promise<void> => it.attach('b', udp(bPort, aPort, next))
  await impair(stages)
  await impairOther({})
  // Of one port the report would ask the remote peer first.
  const counters = (key: string) => async (): Promise<PortCounters> => {
    const found = (await it.report()).find((report) => report.key === key)
    if (found === undefined) throw new Error(`no report of ${key}`)
    return found.counters
  }
  const ways = {
    toRemote: new Way('to a remote peer', r, undefined, remote, counters('r')),
    fromRemote: new Way('from a remote peer', remote, rPort, r, counters('r')),
    outOfJoined: new Way('out of a joined port', a, undefined, b, counters('a')),
    intoJoined: new Way('into a joined port', b, undefined, a, counters('a')),
  }
  return {
    ...ways,
    ways: Object.values(ways),
    /** Gives the ports other stages; those of the port at the other end of the joined ones stay. */
    impair,
    impairOther,
    otherCounters: counters('b'),
  }
}

/** Turns the event loop until something is so; the message is for when that takes too long. */
async function until(isSo: () => boolean | Promise<boolean>, message: () => string): Promise<void> {
  const deadline = performance.now() + hangMs
  do {
    if (performance.now() > deadline) throw new Error(message())
    await new Promise((resolve) => setImmediate(resolve))
  } while (!(await isSo()))
}

export const sorted = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b)

export function median(values: readonly number[]): number {
  return sorted(values)[values.length >> 1] ?? Number.NaN
}

/** The value that so many of 100 values do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  return sorted(values)[Math.ceil((values.length * percent) / 100) - 1] ?? Number.NaN
}
