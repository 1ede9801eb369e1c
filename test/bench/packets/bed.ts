import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { leasePorts } from '../../support/port-leases.ts'
import type { Done, Netio, Open, Task, Throughput } from './generator.ts'
import type { Order, Reply, Setup } from './relay.ts'

const rounds = 3
/** Nodes at the switch of a flood, beside the two that the link of a bed has. */
const sinkCount = 7
const ms = 1000

/** What a bed is asked for: it chooses the ports. */
export type BedSetup = Omit<Setup, 'ports' | 'sinks'>

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

  async close(): Promise<void> {
    await end(this.#process)
  }
}

/** One relay and one generator, each a process of its own. */
export class Bed {
  readonly #relay = fork(new URL('./relay.ts', import.meta.url))
  readonly #generator = fork(new URL('./generator.ts', import.meta.url))

  static async open(setup: BedSetup, options: { links?: number; segmenting?: boolean } = {}): Promise<Bed> {
    const { links = 1, segmenting = true } = options
    const netio: Netio = { ...setup.netio, isDirect: setup.kind === 'none' }
    const bed = new Bed()
    const { first } = leasePorts(links * 4 + 16)
    const ports = Array.from({ length: links }, (_, index) => [first + index * 2, first + index * 2 + 1] as const)
    const sinks = Array.from(
      { length: setup.shape === 'flooded' ? sinkCount : 0 },
      (_, index) => first + links * 4 + index,
    )
    const { targets, sinkTargets } = (await ask(bed.#relay, {
      setup: { ...setup, ports, sinks },
    } satisfies Order)) as Reply & {
      targets: Setup['ports']
      sinkTargets: Setup['sinks']
    }
    await ask(bed.#generator, { open: { ports, targets, sinks, sinkTargets, segmenting, netio } } satisfies Task)
    return bed
  }

  async usage(): Promise<{ cpu: number; memory: number }> {
    return (await ask(this.#relay, { usage: true } satisfies Order)) as { cpu: number; memory: number }
  }

  /** Thousands of frames a second, and the relay's CPU time a frame in ns. */
  async throughput(length: number, { window = 64, loss = 0, header = [] as readonly number[] } = {}): Promise<Figures> {
    const before = await this.usage()
    const done = (await ask(this.#generator, {
      throughput: { length, window, ms, loss, header, patience: window > 64 ? 40 : 2 },
    } satisfies Task)) as Done & {
      frames: number
      lost: number
      seconds: number
    }
    const after = await this.usage()
    return {
      kpps: done.frames / done.seconds / 1000,
      cpu: ((after.cpu - before.cpu) * 1000) / done.frames,
    }
  }

  async roundTrips(length: number): Promise<{ p50: number; p99: number }> {
    return (await ask(this.#generator, { roundTrips: { length, count: 5000 } } satisfies Task)) as {
      p50: number
      p99: number
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#relay, this.#generator].map(end))
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
): Promise<Figures[]> {
  const found: Figures[][] = beds.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [index, bed] of beds.entries()) found[index]?.push(await measure(bed, index))
  }
  await Promise.all(beds.map((bed) => bed.close()))
  return found.map((each) => each.sort((a, b) => a.kpps - b.kpps)[Math.floor(rounds / 2)] as Figures)
}

export const kpps = ({ kpps }: Figures) => `${kpps.toFixed(0)} kpps`
export const cost = ({ cpu }: Figures) => `${Math.round(cpu)} ns CPU a frame`
export const ratio = (figures: Figures, base: Figures | undefined) =>
  `${(figures.kpps / (base?.kpps ?? 1)).toFixed(1)} x`
