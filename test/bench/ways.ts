import type { Effort } from './effort.ts'
import { type LoadResult, load } from './load.ts'
import { added, median, medianDifference, precise, ratio } from './medians.ts'
import type { Row } from './table.ts'

const usual: Effort = { rounds: 3, seconds: 2, warmUpSeconds: 1 }

/** The first way, and what the others take more than it. */
export async function compared(
  ways: readonly (readonly [string, string])[],
  connections: number,
  effort: Effort = usual,
): Promise<Row[]> {
  const { rounds, seconds, warmUpSeconds } = effort
  const results = ways.map((): LoadResult[] => [])
  for (let round = 0; round < rounds; round++) {
    for (const [index, [, url]] of ways.entries())
      results[index]?.push(await load(url, connections, seconds, warmUpSeconds))
  }
  const of = (index: number, name: keyof LoadResult) => (results[index] ?? []).map((it) => it[name])
  return ways.map(([way], index) => {
    const [p50, p99, perSecond] = [of(index, 'p50'), of(index, 'p99'), of(index, 'perSecond')]
    const what = `GET node ${way}, ${connections} connection${connections === 1 ? '' : 's'}`
    const rate = `${median(perSecond).toFixed(0)} req/s`
    const usual = `p50 ${precise(median(p50))}, p99 ${precise(median(p99))}`
    if (index === 0) return [what, rate, usual]
    const more = `${added(medianDifference(p50, of(0, 'p50')))} p50, ${added(medianDifference(p99, of(0, 'p99')))} p99`
    return [what, rate, `${usual}; ${more}, ${ratio(median(perSecond), median(of(0, 'perSecond')))} as many`]
  })
}
