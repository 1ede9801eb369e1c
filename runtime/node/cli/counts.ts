import type { FlagValues, logging } from './command.ts'
import { wrongArguments } from './exits.ts'

/** `1 node`, `2 nodes`. */
export const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`

/** The number of `--lines`. CommandError 64, also for one JSON object of a log that goes on. */
export function countOf({ lines, follow, json }: FlagValues<typeof logging>): number {
  if (follow && json) throw wrongArguments('--json prints one object, and --follow does not end: leave one of them out')
  if (lines === undefined) return 50
  if (/^[1-9]\d{0,4}$/.test(lines)) return Number(lines)
  throw wrongArguments(`--lines: expected a number from 1 to 99999, got ${JSON.stringify(lines)}`)
}

/** The seconds of a text such as `30s`, `500ms`, `2m` or `2h`. CommandError 64. */
export function secondsOf(flag: string, text: string | undefined, byDefault: number): number {
  if (text === undefined) return byDefault
  const [, number, unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text) ?? []
  const factor = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400 }[unit]
  if (factor === undefined)
    throw wrongArguments(`${flag}: expected a time such as 30s or 2m, got ${JSON.stringify(text)}`)
  return Number(number) * factor
}

/** When the service stops a lab, in words: `stops in 2 h`. `stopAt`: RFC 3339. */
export function stopText(stopAt: string, now = Date.now()): string {
  const minutes = Math.max(0, Math.round((Date.parse(stopAt) - now) / 60_000))
  if (minutes === 0) return 'stops within a minute'
  if (minutes < 120) return `stops in ${minutes} min`
  const hours = Math.round(minutes / 60)
  return hours < 72 ? `stops in ${hours} h` : `stops in ${Math.round(hours / 24)} days`
}
