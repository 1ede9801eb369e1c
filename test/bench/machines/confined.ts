import { findProgram } from '../../../runtime/node/os/system/find-program.ts'
import { added, median, medianDifference, ms, target } from '../medians.ts'
import type { Row } from '../table.ts'
import { baseName, MachineLab } from './lab.ts'

const defaultRounds = 20
const wantedMs = 15

const variants = [
  { name: 'no disk', settings: {}, isNew: false },
  { name: 'new overlay', settings: { hda_disk_image: baseName }, isNew: true },
  { name: 'overlay', settings: { hda_disk_image: baseName }, isNew: false },
]

/** Milliseconds until a machine has started. It is stopped then, and replaced for the next start when each needs a new one. */
async function startIn(lab: MachineLab, machines: Map<MachineLab, string>, settings: object, isNew: boolean) {
  const machine = machines.get(lab) ?? (await lab.create(settings))
  const took = await lab.post(`${machine}/start`)
  await lab.post(`${machine}/stop`)
  if (isNew) await lab.delete(machine)
  else machines.set(lab, machine)
  return took
}

/** What confinement adds to the start of a machine: by each way, beside a service in local mode, in turns. */
export async function confined({ rounds }: { rounds: number } = { rounds: defaultRounds }): Promise<Row[]> {
  const ways = ['bubblewrap', 'namespaces'].filter(
    (way) => findProgram(way === 'bubblewrap' ? 'bwrap' : 'perl') !== undefined,
  )
  const rows: Row[] = []
  for (const way of ways) {
    await using local = await MachineLab.open('tcg')
    await using outside = await MachineLab.open('tcg', '--no-local', '--sandbox', way, '--require-sandbox')
    for (const { name, settings, isNew } of variants) {
      const machines = new Map<MachineLab, string>()
      const times: { plain: number[]; cell: number[] } = { plain: [], cell: [] }
      // The first rounds are those of caches.
      for (let round = -2; round < rounds; round++) {
        // One after the other: a machine that boots has others wait for a processor.
        const plain = await startIn(local, machines, settings, isNew)
        const cell = await startIn(outside, machines, settings, isNew)
        if (round < 0) continue
        times.plain.push(plain)
        times.cell.push(cell)
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
