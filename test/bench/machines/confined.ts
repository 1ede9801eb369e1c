import { findProgram } from '../../../runtime/node/system/find-program.ts'
import { added, median, medianDifference, ms, target } from '../medians.ts'
import type { Row } from '../table.ts'
import { baseName, MachineLab } from './lab.ts'

const defaultRounds = 20
const wantedMs = 15

const variants = [
  { name: 'no disk', settings: {} },
  { name: 'overlay', settings: { hda_disk_image: baseName } },
]

/** What confinement adds to the start of a machine: by each way, beside a service in local mode, in turns. */
export async function confined({ rounds }: { rounds: number } = { rounds: defaultRounds }): Promise<Row[]> {
  const ways = ['bubblewrap', 'namespaces'].filter(
    (way) => findProgram(way === 'bubblewrap' ? 'bwrap' : 'perl') !== undefined,
  )
  const rows: Row[] = []
  for (const way of ways) {
    await using local = await MachineLab.open('tcg')
    await using outside = await MachineLab.open('tcg', '--no-local', '--sandbox', way, '--require-sandbox')
    for (const { name, settings } of variants) {
      const [plain, cell] = [await local.create(settings), await outside.create(settings)]
      const times: { plain: number[]; cell: number[] } = { plain: [], cell: [] }
      // The first rounds are those of caches.
      for (let round = -2; round < rounds; round++) {
        // One after the other: a machine that boots has others wait for a processor.
        const started = { plain: await local.post(`${plain}/start`), cell: 0 }
        await local.post(`${plain}/stop`)
        started.cell = await outside.post(`${cell}/start`)
        await outside.post(`${cell}/stop`)
        if (round < 0) continue
        times.plain.push(started.plain)
        times.cell.push(started.cell)
      }
      const more = medianDifference(times.cell, times.plain)
      rows.push([
        `machine start, confined by ${way}, ${name}`,
        `${added(more)} p50`,
        `p50 ${ms(median(times.cell))}, in local mode ${ms(median(times.plain))}, ${target(more < wantedMs, `${wantedMs} ms`)}`,
      ])
    }
  }
  return rows
}
