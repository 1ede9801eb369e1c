import type { FlagValues, logging } from './command.ts'
import { wrongArguments } from './exits.ts'

/** The number of `--lines`. CommandError 64, also for one JSON object of a log that goes on. */
export function countOf({ lines, follow, json }: FlagValues<typeof logging>): number {
  if (follow && json) throw wrongArguments('--json and --follow exclude each other')
  if (lines === undefined) return 50
  if (/^[1-9]\d{0,4}$/.test(lines)) return Number(lines)
  throw wrongArguments(`--lines: expected a number from 1 to 99999, got ${JSON.stringify(lines)}`)
}
