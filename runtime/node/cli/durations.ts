import { wrongArguments } from './exits.ts'

/** The seconds of a text such as `30s`, `500ms`, `2m` or `2h`. CommandError 64. */
export function secondsOf(flag: string, text: string | undefined, byDefault: number): number {
  if (text === undefined) return byDefault
  const [, number, unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text) ?? []
  const factor = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400 }[unit]
  if (factor === undefined)
    throw wrongArguments(`${flag}: expected a time such as 30s or 2m, got ${JSON.stringify(text)}`)
  return Number(number) * factor
}

/** When the service stops or deletes a lab, in words: `stops in 2 h`; empty: never. `stop_at`: RFC 3339. */
export function stopText(
  { stop_at, ttl_deletes }: { readonly stop_at?: string; readonly ttl_deletes?: true },
  now = Date.now(),
): string {
  if (stop_at === undefined) return ''
  const does = ttl_deletes ? 'is deleted' : 'stops'
  const minutes = Math.max(0, Math.round((Date.parse(stop_at) - now) / 60_000))
  if (minutes === 0) return `${does} within a minute`
  if (minutes < 120) return `${does} in ${minutes} min`
  const hours = Math.round(minutes / 60)
  return hours < 72 ? `${does} in ${hours} h` : `${does} in ${Math.round(hours / 24)} days`
}
