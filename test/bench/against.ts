import { type Effort, inTurns } from './effort.ts'
import { at, median } from './medians.ts'
import { measure } from './service.ts'
import type { Row } from './table.ts'

export type Suite = (effort: Effort) => Promise<Row[]>

/** More than this, and more than the other build differs from itself, is worse. */
const tolerated = 0.1
/** Differences below this are those of clocks and ticks, ms. */
const unseenMs = 0.05

interface Figure {
  readonly unit: string
  readonly values: number[]
}

const higherIsBetter = ['req/s', 'kpps', 'MB/s']
const units = ['req/s', 'kpps', 'MB/s', 'ms', 'us', 'ns', 'MB']
const numbers = new RegExp(
  `(?:([a-z][a-z0-9 ]*?) )?(?<![-+.\\d])(\\d+(?:\\.\\d+)?) (${units.join('|')})(?![\\w/])`,
  'gi',
)

/** The figures in a row by what they are of; differences, targets and figures of something run beside us are left out. */
export function figuresOf([what, figure, more]: Row): Map<string, { unit: string; value: number }> {
  const found = new Map<string, { unit: string; value: number }>()
  const own = more.replace(/(directly|idle|target|best)\b[^;]*/g, '')
  for (const text of [figure, own]) {
    for (const [, label = '', value = '', unit = ''] of text.matchAll(numbers)) {
      const name = [what, label.trim()].filter((part) => part !== '').join(': ')
      // One build may take less than 0.1 ms where the other takes more.
      const one = unit === 'us' ? { unit: 'ms', value: Number(value) / 1000 } : { unit, value: Number(value) }
      if (!found.has(name)) found.set(name, one)
    }
  }
  return found
}

/**
 * Runs the suites with this build and another one in turns, and prints the medians. True when no figure is worse than the other
 * build's by more than 10 %, or than that build differs from itself between the rounds.
 */
export async function against(
  suites: readonly Suite[],
  builds: { readonly ours: string; readonly theirs: string },
  rounds: number,
): Promise<boolean> {
  const found = { ours: new Map<string, Figure>(), theirs: new Map<string, Figure>() }
  const began = performance.now()
  for (let round = 0; round < rounds; round++) {
    for (const suite of suites) {
      // Who is first has its turn second the next time.
      for (const side of round % 2 === 0 ? (['ours', 'theirs'] as const) : (['theirs', 'ours'] as const)) {
        measure(builds[side])
        for (const row of await suite(inTurns)) {
          for (const [name, { unit, value }] of figuresOf(row)) {
            const figure = found[side].get(name) ?? { unit, values: [] }
            figure.values.push(value)
            found[side].set(name, figure)
          }
        }
      }
    }
    console.error(`round ${round + 1} of ${rounds}, ${Math.round((performance.now() - began) / 1000)} s`)
  }
  const rows = [...found.ours].map(([name, ours]) => compared(name, ours, found.theirs.get(name)))
  print([['', 'this build', 'the other', 'ratio', 'other itself', ''], ...rows.map(({ cells }) => cells)])
  const worse = rows.filter((row) => row.isWorse)
  console.log(`\n${rows.length} figures in ${rounds} rounds, ${worse.length} worse`)
  return worse.length === 0
}

export function compared(
  name: string,
  ours: Figure,
  theirs: Figure | undefined,
): { cells: string[]; isWorse: boolean } {
  const { unit } = ours
  const mine = median(ours.values)
  if (theirs === undefined) return { cells: [name, `${show(mine)} ${unit}`, '-', '-', '-', 'new'], isWorse: false }
  const other = median(theirs.values)
  const noise = (at(theirs.values, 0.9) - at(theirs.values, 0.1)) / Math.abs(other)
  // Above 1: worse.
  const ratio = higherIsBetter.includes(unit) ? other / mine : mine / other
  const isSeen = unit !== 'ms' || Math.abs(mine - other) > unseenMs
  const isWorse = isSeen && ratio - 1 > Math.max(tolerated, noise)
  const verdict = isWorse ? 'WORSE' : ratio - 1 > tolerated ? 'within its noise' : 'ok'
  return {
    cells: [
      name,
      `${show(mine)} ${unit}`,
      `${show(other)} ${unit}`,
      `${(mine / other).toFixed(2)} x`,
      `${(noise * 100).toFixed(0)} %`,
      verdict,
    ],
    isWorse,
  }
}

const show = (value: number): string => (Math.abs(value) < 10 ? value.toFixed(2) : value.toFixed(0))

function print(rows: readonly (readonly string[])[]): void {
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  for (const row of rows)
    console.log(
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
        .join('  '),
    )
}
