import type { Effort } from '../effort.ts'
import { added, at, median, medianDifference, ms, target } from '../medians.ts'
import type { Row } from '../table.ts'
import { startDirect } from './direct.ts'
import { baseName, MachineLab } from './lab.ts'

const defaultRounds = 20
const wantedOverheadMs = 80
const wantedStopMs = 50

interface Variant {
  readonly name: string
  readonly settings: object
  /** Whether every start is that of a new machine. */
  readonly isNew: boolean
}

const overlay = { hda_disk_image: baseName }
const variants: readonly Variant[] = [
  { name: 'no disk, first start', settings: {}, isNew: true },
  { name: 'no disk, started before', settings: {}, isNew: false },
  { name: 'overlay, first start', settings: overlay, isNew: true },
  { name: 'overlay, started before', settings: overlay, isNew: false },
]

interface Times {
  readonly start: number[]
  readonly stop: number[]
}

/** What `start` and `stop` of one machine take beside the same emulator run directly, in turns. */
export async function starts({ rounds }: Pick<Effort, 'rounds'> = { rounds: defaultRounds }): Promise<Row[]> {
  await using lab = await MachineLab.open('tcg')
  const found = await Promise.all(
    variants.map(async (variant) => ({
      ...variant,
      ...{ ours: { start: [], stop: [] } as Times, direct: { start: [], stop: [] } as Times },
      kept: variant.isNew ? undefined : await lab.create(variant.settings),
    })),
  )
  // The first round is that of caches, and of what is found out about the emulator once.
  for (let round = -1; round < rounds; round++) {
    for (const { settings, ours, direct, kept } of found) {
      const node = kept ?? (await lab.create(settings))
      const started = await lab.post(`${node}/start`)
      const { command_line, node_directory } = await lab.get(node)
      const stopped = await lab.post(`${node}/stop`)
      const machine = await startDirect(command_line, node_directory)
      const directlyStopped = await machine.stop()
      if (kept === undefined) await lab.delete(node)
      if (round < 0) continue
      ours.start.push(started)
      ours.stop.push(stopped)
      direct.start.push(machine.startMs)
      direct.stop.push(directlyStopped)
    }
  }
  return found.flatMap(({ name, ours, direct }) => {
    const overhead = medianDifference(ours.start, direct.start)
    const stopOverhead = medianDifference(ours.stop, direct.stop)
    return [
      [
        `machine start, ${name}`,
        `${added(overhead)} p50`,
        `${both(ours.start, direct.start)}, ${target(overhead < wantedOverheadMs, `${wantedOverheadMs} ms`)}`,
      ],
      [
        `machine stop, ${name}`,
        `${added(stopOverhead)} p50`,
        `${both(ours.stop, direct.stop)}, ${target(stopOverhead < wantedStopMs, `${wantedStopMs} ms`)}`,
      ],
    ]
  })
}

const both = (ours: readonly number[], direct: readonly number[]): string =>
  `p50 ${ms(median(ours))}, p90 ${ms(at(ours, 0.9))}; directly p50 ${ms(median(direct))}, p90 ${ms(at(direct, 0.9))}`
