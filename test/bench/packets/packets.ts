import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Row } from '../table.ts'
import { Bed, type BedSetup, cost, type Figures, inTurns, kpps, ratio } from './bed.ts'
import type { RelayKind, Setup } from './relay.ts'
import { tapSuites } from './taps.ts'

interface Variant {
  readonly name: string
  readonly kind: RelayKind
}

const variants: readonly Variant[] = [
  { name: 'node:dgram', kind: 'node:dgram' },
  { name: 'portable path', kind: 'portable' },
  { name: 'fast path without GSO', kind: 'fast, no GSO' },
  { name: 'fast path', kind: 'fast' },
]

/** Throughput of both shapes with each relay, beside node:dgram in the same run; then stages, many links, what idle costs, and TAPs. */
export async function packets(): Promise<Row[]> {
  const rows: Row[] = []
  for (const shape of ['leg', 'joined'] as const) {
    const what = shape === 'leg' ? 'one leg to a UDP peer' : 'node to node'
    for (const length of [64, 512, 1400]) {
      const found = await interleaved(
        variants.map(({ kind }) => ({ kind, shape })),
        length,
      )
      const [base] = found
      for (const [index, { name }] of variants.entries()) {
        const figures = found[index] as Figures
        rows.push([
          `${what}, ${length} B, ${name}`,
          kpps(figures),
          `${ratio(figures, base)} node:dgram, ${cost(figures)}`,
        ])
      }
    }
    rows.push(...(await latency(shape, what)))
  }
  rows.push(...(await plainSender()), ...(await stages()), ...(await manyLinks()), ...(await idleLinks()))
  for (const suite of tapSuites) rows.push(...(await suite()))
  return rows
}

/** Of single frames, there and back; and what the relay adds to a link without one. */
async function latency(shape: Setup['shape'], what: string): Promise<Row[]> {
  const kinds = ['none', 'node:dgram', 'fast'] as const
  const beds = await Promise.all(kinds.map((kind) => Bed.open({ kind, shape }, { segmenting: false })))
  const found: { p50: number; p99: number }[] = []
  for (const bed of beds) found.push(await bed.roundTrips(64))
  await Promise.all(beds.map((bed) => bed.close()))
  const [none] = found
  return kinds.slice(1).map((kind, index) => {
    const { p50, p99 } = found[index + 1] as { p50: number; p99: number }
    const added = (p50 - (none?.p50 ?? 0)) / 2
    return [
      `${what}, one frame, ${kind}`,
      `+${added.toFixed(0)} us p50`,
      `round trip p50 ${p50.toFixed(0)} us, p99 ${p99.toFixed(0)} us`,
    ]
  })
}

/** A sender that makes one system call a frame, as VPCS and most guests do. */
async function plainSender(): Promise<Row[]> {
  const kinds = ['none', 'node:dgram', 'fast'] as const
  const beds = await Promise.all(kinds.map((kind) => Bed.open({ kind, shape: 'leg' }, { segmenting: false })))
  const found = await inTurns(beds, (bed) => bed.throughput(64))
  return kinds.map((kind, index) => {
    const figures = found[index] as Figures
    return [`one leg, 64 B, sender without GSO, ${kind}`, kpps(figures), cost(figures)]
  })
}

async function stages(): Promise<Row[]> {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-bench-'))
  const rows: Row[] = []
  try {
    for (const kind of ['fast, no GSO', 'fast'] as const) {
      const leg = { kind, shape: 'leg' } as const
      const setups: readonly (readonly [string, BedSetup, { window?: number; loss?: number }])[] = [
        ['no stage', leg, {}],
        ['capture on', { ...leg, captureFile: join(directory, `${kind}.pcap`) }, {}],
        ['1 % loss', { ...leg, filters: [{ type: 'packet_loss', percent: 1 }] }, { loss: 0.01 }],
        ['10 ms delay', { ...leg, filters: [{ type: 'delay', ms: 10, jitter_ms: 0 }] }, { window: 4096 }],
      ]
      const beds = await Promise.all(setups.map(([, setup]) => Bed.open(setup)))
      const figures = await inTurns(beds, (bed, index) => bed.throughput(512, setups[index]?.[2]))
      for (const [index, [name]] of setups.entries()) {
        const it = figures[index] as Figures
        rows.push([`one leg, 512 B, ${kind}, ${name}`, kpps(it), `${ratio(it, figures[0])} no stage, ${cost(it)}`])
      }
    }
    return rows
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function manyLinks(): Promise<Row[]> {
  const rows: Row[] = []
  for (const links of [1, 100, 1000]) {
    const bed = await Bed.open({ kind: 'fast', shape: 'joined' }, { links })
    const [figures] = await inTurns([bed], (it) => it.throughput(512))
    rows.push([`${links} links node to node, 512 B, all busy`, kpps(figures as Figures), cost(figures as Figures)])
  }
  return rows
}

async function idleLinks(): Promise<Row[]> {
  const rows: Row[] = []
  for (const links of [1, 100, 1000]) {
    const bed = await Bed.open({ kind: 'fast', shape: 'joined' }, { links })
    const before = await bed.usage()
    await new Promise((resolve) => setTimeout(resolve, 3000))
    const after = await bed.usage()
    await bed.close()
    const percent = (after.cpu - before.cpu) / 30_000
    rows.push([`${links} idle links`, `${percent.toFixed(2)} % CPU`, `${after.memory.toFixed(0)} MB resident`])
  }
  return rows
}

async function interleaved(setups: readonly BedSetup[], length: number): Promise<Figures[]> {
  const beds = await Promise.all(setups.map((setup) => Bed.open(setup)))
  return inTurns(beds, (bed) => bed.throughput(length))
}
