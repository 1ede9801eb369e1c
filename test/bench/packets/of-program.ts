import type { Suite } from '../against.ts'
import { Bed, type BedSetup, cost, type Figures, inTurns, kpps } from './bed.ts'
import { Program } from './program.ts'
import { tapSuites } from './taps.ts'

type Shape = BedSetup['shape']

interface Part {
  readonly what: string
  readonly setup: Omit<BedSetup, 'kind' | 'program'>
  readonly length: number
  readonly links?: number
  /** Whether the generator joins and splits frames by the kernel; absent: it does. */
  readonly segmenting?: boolean
  readonly load?: Parameters<Bed['throughput']>[1]
}

const unicast = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]
const broadcast = [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 0]

const shaped = (shape: Shape, what: string, header: readonly number[] = []): Part[] => [
  ...[64, 512, 1400].map((length) => ({ what: `${what}, ${length} B`, setup: { shape }, length, load: { header } })),
  { what: `${what}, 64 B, single frames`, setup: { shape }, length: 64, segmenting: false, load: { header } },
]

const packetParts: readonly Part[] = [
  ...shaped('leg', 'one leg to a UDP peer'),
  ...shaped('joined', 'node to node'),
  {
    ...{ what: 'one leg, 512 B, 1 % loss', length: 512, load: { loss: 0.01 } },
    setup: { shape: 'leg', filters: [{ type: 'packet_loss', percent: 1 }] },
  },
  {
    ...{ what: 'one leg, 512 B, 10 ms delay', length: 512, load: { window: 4096 } },
    setup: { shape: 'leg', filters: [{ type: 'delay', ms: 10, jitter_ms: 0 }] },
  },
  { what: '100 links node to node, 512 B, all busy', setup: { shape: 'joined' }, length: 512, links: 100 },
]

const labParts: readonly Part[] = [
  ...shaped('switched', 'through a switch', unicast),
  ...shaped('flooded', 'flooded to 8 ports', broadcast),
]

/** The figures of a part, of the build that is measured. */
const throughputOf =
  ({ what, setup, length, links = 1, segmenting = true, load }: Part): Suite =>
  async () => {
    await using program = new Program()
    const bed = await Bed.open({ ...setup, kind: 'program', program }, { links, segmenting })
    // Until V8 has compiled the path, a frame takes twice as long.
    await bed.throughput(length, load)
    const [figures] = await inTurns([bed], (it) => it.throughput(length, load))
    return [[what, kpps(figures as Figures), cost(figures as Figures)]]
  }

/** Of single frames, there and back. */
const roundTripOf =
  (shape: Shape, what: string): Suite =>
  async () => {
    await using program = new Program()
    const bed = await Bed.open({ kind: 'program', program, shape }, { segmenting: false })
    const { p50, p99 } = await bed.roundTrips(64)
    await bed.close()
    return [[`${what}, round trip`, `${p50.toFixed(0)} us p50`, `p99 ${p99.toFixed(0)} us`]]
  }

/** The packet path, a part at a time: what else the computer does changes within minutes. */
export const packetSuites: readonly Suite[] = [
  ...packetParts.map(throughputOf),
  ...[roundTripOf('leg', 'one leg'), roundTripOf('joined', 'node to node')],
  ...tapSuites,
]

/** The switches, a part at a time. */
export const switchSuites: readonly Suite[] = labParts.map(throughputOf)
