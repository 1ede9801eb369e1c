import type { Row } from '../table.ts'
import { Bed, type BedSetup, cost, type Figures, inTurns, kpps } from './bed.ts'
import { Program } from './program.ts'

type Shape = BedSetup['shape']

interface Part {
  readonly what: string
  readonly setup: Omit<BedSetup, 'kind' | 'program'>
  readonly length: number
  readonly links?: number
  /** Whether the generator joins and splits frames by the kernel; absent: it does. */
  readonly segmenting?: false
  readonly load?: Parameters<Bed['throughput']>[1]
}

const unicast = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]
const broadcast = [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 0]

const shaped = (shape: Shape, what: string, header: readonly number[] = []): Part[] => [
  ...[64, 512, 1400].map((length) => ({ what: `${what}, ${length} B`, setup: { shape }, length, load: { header } })),
  { what: `${what}, 64 B, single frames`, setup: { shape }, length: 64, segmenting: false as const, load: { header } },
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

/** The packet path of the build that is measured, one figure each. */
export async function programPackets(): Promise<Row[]> {
  return [...(await throughputs(packetParts)), ...(await latencies())]
}

/** The switches of the build that is measured, one figure each. */
export const programSwitches = (): Promise<Row[]> => throughputs(labParts)

async function throughputs(parts: readonly Part[]): Promise<Row[]> {
  await using program = new Program()
  const rows: Row[] = []
  for (const { what, setup, length, links = 1, segmenting = true, load } of parts) {
    const bed = await Bed.open({ ...setup, kind: 'program', program }, { links, segmenting })
    // Until V8 has compiled the path, a frame takes twice as long.
    await bed.throughput(length, load)
    const [figures] = await inTurns([bed], (it) => it.throughput(length, load))
    rows.push([what, kpps(figures as Figures), cost(figures as Figures)])
  }
  return rows
}

/** Of single frames, there and back. */
async function latencies(): Promise<Row[]> {
  await using program = new Program()
  const rows: Row[] = []
  for (const shape of ['leg', 'joined'] as const) {
    const bed = await Bed.open({ kind: 'program', program, shape }, { segmenting: false })
    const { p50, p99 } = await bed.roundTrips(64)
    await bed.close()
    rows.push([
      `${shape === 'leg' ? 'one leg' : 'node to node'}, round trip`,
      `${p50.toFixed(0)} us p50`,
      `p99 ${p99.toFixed(0)} us`,
    ])
  }
  return rows
}
