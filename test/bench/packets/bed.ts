import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { type Lease, leasePorts } from '../../support/port-leases.ts'
import type { Done, Netio, Open, Task, Throughput } from './generator.ts'
import type { Program } from './program.ts'
import type { Order, RelayKind, Setup } from './relay.ts'
import type { Targets } from './wiring.ts'

const defaultRounds = 3
/** Nodes at the switch of a flood, beside the two that the link of a bed has. */
const sinkCount = 7
const ms = 1000

/** What a bed is asked for: it chooses the ports. `program`: the packet path of a built program instead of this tree's. */
export type BedSetup = Omit<Setup, 'ports' | 'ends' | 'sinks' | 'kind'> &
  ({ readonly kind: RelayKind } | { readonly kind: 'program'; readonly program: Program })

/** What carries the frames of a bed. */
export interface Relay {
  /** Processor time so far in microseconds, and the memory in MB. */
  usage(): Promise<{ readonly cpu: number; readonly memory: number }>
  close(): Promise<void>
}

/** A generator of frames alone, in a process of its own. */
export class Generator {
  readonly #process = fork(new URL('./generator.ts', import.meta.url))

  static async open(open: Open): Promise<Generator> {
    const generator = new Generator()
    await ask(generator.#process, { open } satisfies Task)
    return generator
  }

  /** Frames that came back, and in how many seconds. */
  async throughput(throughput: Throughput): Promise<{ frames: number; seconds: number }> {
    return (await ask(this.#process, { throughput } satisfies Task)) as { frames: number; seconds: number }
  }

  async roundTrips(length: number, count: number): Promise<{ p50: number; p99: number }> {
    return (await ask(this.#process, { roundTrips: { length, count } } satisfies Task)) as Extract<
      Done,
      { p50: number }
    >
  }

  async close(): Promise<void> {
    await end(this.#process)
  }
}

/** One relay and one generator, each a process of its own. */
export class Bed {
  readonly #lease: Lease
  readonly #relay: Relay
  readonly #generator: Generator

  private constructor(lease: Lease, relay: Relay, generator: Generator) {
    this.#lease = lease
    this.#relay = relay
    this.#generator = generator
  }

  static async open(bed: BedSetup, options: { links?: number; segmenting?: boolean } = {}): Promise<Bed> {
    const { links = 1, segmenting = true } = options
    const netio: Netio = { ...bed.netio, isDirect: bed.kind === 'none' }
    const sinkTotal = bed.shape === 'flooded' ? sinkCount : 0
    const lease = leasePorts(links * 4 + sinkTotal)
    const pairs = (first: number) =>
      Array.from({ length: links }, (_, at) => [first + 2 * at, first + 2 * at + 1] as const)
    const ports = pairs(lease.first)
    const ends = pairs(lease.first + 2 * links)
    const sinks = Array.from({ length: sinkTotal }, (_, at) => lease.first + 4 * links + at)
    const places = { ports, ends, sinks }
    const { relay, targets, sinkTargets } =
      bed.kind === 'program'
        ? await bed.program.relay({ ...bed, ...places })
        : await ForkedRelay.open({ ...bed, ...places })
    const generator = await Generator.open({ ports, targets, sinks, sinkTargets, segmenting, netio })
    return new Bed(lease, relay, generator)
  }

  usage(): ReturnType<Relay['usage']> {
    return this.#relay.usage()
  }

  /** Thousands of frames a second, and the relay's CPU time a frame in ns. */
  async throughput(length: number, { window = 64, loss = 0, header = [] as readonly number[] } = {}): Promise<Figures> {
    const before = await this.usage()
    const { frames, seconds } = await this.#generator.throughput({
      ...{ length, window, ms, loss, header, patience: window > 64 ? 40 : 2 },
    })
    const after = await this.usage()
    return { kpps: frames / seconds / 1000, cpu: ((after.cpu - before.cpu) * 1000) / frames }
  }

  roundTrips(length: number): Promise<{ p50: number; p99: number }> {
    return this.#generator.roundTrips(length, 5000)
  }

  async close(): Promise<void> {
    await Promise.all([this.#relay.close(), this.#generator.close()])
    this.#lease.release()
  }
}

/** The switch of this tree, or a substitute for it, in a process of its own. */
class ForkedRelay implements Relay {
  readonly #process = fork(new URL('./relay.ts', import.meta.url))

  static async open(setup: Setup): Promise<Targets & { relay: Relay }> {
    const relay = new ForkedRelay()
    const targets = (await ask(relay.#process, { setup } satisfies Order)) as Targets
    return { relay, ...targets }
  }

  async usage(): Promise<{ cpu: number; memory: number }> {
    return (await ask(this.#process, { usage: true } satisfies Order)) as { cpu: number; memory: number }
  }

  close(): Promise<void> {
    return end(this.#process)
  }
}

export interface Figures {
  readonly kpps: number
  readonly cpu: number
}

async function ask(child: ChildProcess, what: object): Promise<unknown> {
  const answer = once(child, 'message')
  child.send(what)
  const gone = once(child, 'exit').then(([code]) => {
    throw new Error(`a process of the benchmark ended (${code})`)
  })
  gone.catch(() => {})
  return ((await Promise.race([answer, gone])) as [unknown])[0]
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

/** Medians of rounds in which every bed has its turn, so that a slow moment of the machine hits all. The beds are closed. */
export async function inTurns(
  beds: readonly Bed[],
  measure: (bed: Bed, index: number) => Promise<Figures>,
  rounds = defaultRounds,
): Promise<Figures[]> {
  const found: Figures[][] = beds.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [index, bed] of beds.entries()) found[index]?.push(await measure(bed, index))
  }
  await Promise.all(beds.map((bed) => bed.close()))
  return found.map((each) => each.sort((a, b) => a.kpps - b.kpps)[Math.floor(rounds / 2)] as Figures)
}

export const kpps = ({ kpps }: Figures) => `${kpps.toFixed(0)} kpps`
export const cost = ({ cpu }: Figures) => `CPU ${Math.round(cpu)} ns a frame`
export const ratio = (figures: Figures, base: Figures | undefined) =>
  `${(figures.kpps / (base?.kpps ?? 1)).toFixed(1)} x`
