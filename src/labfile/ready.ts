import type { Static } from '@sinclair/typebox'
import { kindOf, type NodeKindName } from '../model/kinds/node.ts'
import type { DesiredReady, DesiredSettings } from './desired.ts'
import { type Diagnostics, quoted } from './diagnostics.ts'
import type { Position } from './position.ts'
import type { Reader } from './reader.ts'
import type { Condition } from './schema.ts'
import { amountOf } from './units.ts'
import { at, type MapValue } from './values.ts'

interface ReadyInputs {
  readonly map: MapValue
  readonly kind: NodeKindName
  readonly settings: DesiredSettings
  readonly reader: Reader
  readonly diagnostics: Diagnostics
}

/** Reads a condition, or a list of conditions as one condition that holds when all of them hold. */
export function readReady(
  given: Static<typeof Condition> | Static<typeof Condition>[] | undefined,
  { map, kind, settings, diagnostics }: ReadyInputs,
): DesiredReady | undefined {
  const value = at(map, 'ready')
  if (given === undefined || value === undefined) return undefined
  const ready: { -readonly [K in keyof DesiredReady]: DesiredReady[K] } = {}
  const list = Array.isArray(given) ? given : [given]
  list.forEach((condition, index) => {
    const map = value.type === 'list' ? value.items[index] : value
    const positionOf = (name: string) => at(map, name)?.at ?? map?.at ?? value.at
    const { console, press, tcp, exec, after, within } = condition
    const set = <K extends keyof DesiredReady>(name: K, key: string, value: DesiredReady[K] | undefined) => {
      if (value === undefined) return
      if (ready[name] !== undefined)
        diagnostics.add(positionOf(key), `${key} is in two conditions`, 'merge them into one')
      else ready[name] = value
    }
    if (console === undefined && tcp === undefined && exec === undefined && after === undefined)
      diagnostics.add(map?.at ?? value.at, 'a condition is console, tcp, exec or after')
    if (console !== undefined) requireExpression(console, positionOf('console'), diagnostics)
    if (press !== undefined && console === undefined) diagnostics.add(positionOf('press'), 'press needs console')
    set('console', 'console', console)
    set('press', 'press', press)
    set('tcp', 'tcp', tcp)
    set('exec', 'exec', exec)
    set('seconds', 'after', seconds(after, 'after', positionOf, diagnostics))
    const longest = seconds(within, 'within', positionOf, diagnostics)
    // All must hold: the longest wait counts.
    if (longest !== undefined) ready.within_s = Math.max(longest, ready.within_s ?? 0)
  })
  const type = settings.console_type
  const hasText =
    (kindOf(kind).consoles as readonly string[]).includes('text') && (type === undefined || type === 'telnet')
  if (ready.console !== undefined && !hasText)
    diagnostics.add(
      value.at,
      'console needs a text console',
      type === undefined ? 'use tcp or after' : `console_type is ${type}`,
    )
  if (ready.exec !== undefined && kindOf(kind).tellsReady !== true)
    diagnostics.add(value.at, 'exec needs a container', 'use console, tcp or after')
  return ready
}

/** A time of a condition in seconds; the model takes up to an hour. */
export function seconds(
  text: string | undefined,
  key: string,
  positionOf: (key: string) => Position,
  diagnostics: Diagnostics,
): number | undefined {
  if (text === undefined) return undefined
  const value = amountOf('time', text) / 1000
  const least = key === 'within' ? 1 : 0
  if (value < least || value > 3600)
    diagnostics.add(positionOf(key), `expected a time from ${least}s to 1h, got ${text}`)
  return value
}

/** Syntax of JavaScript that RE2 lacks. */
const notInRe2 =
  /\\[1-9]|\\k<|(?<!\\)\(\?<?[=!]|\\u|\\c[A-Za-z]|(?<!\\)\[\^?\]|(?<!\\)\[(?:[^\]\\[]|\\[^b])*\\b|\\[pP]\{(?![A-Z][a-z]?\})[^}]*\}?/
/** Most repetitions that RE2 takes. */
const maxRepeats = 1000

/** Adds a fault for an expression that the service cannot search a console for: it matches in linear time, as RE2 does. */
export function requireExpression(source: string, where: Position, diagnostics: Diagnostics): void {
  try {
    new RegExp(source, 'mu')
  } catch (error) {
    const message = error instanceof Error ? error.message.slice(error.message.lastIndexOf(': ') + 2) : ''
    diagnostics.add(where, `not a regular expression: ${message}`)
    return
  }
  const plain = source.replace(/\\\\/g, '')
  const [lacking] = notInRe2.exec(plain) ?? []
  if (lacking !== undefined)
    diagnostics.add(
      where,
      `${quoted(lacking)} cannot be used here`,
      'use RE2 syntax: no look-around, back references, \\u, \\c, empty classes, \\b in classes, and properties by their short names',
    )
  const most = Math.max(
    0,
    ...[...plain.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].map(([, least, upTo]) => Number(upTo || least)),
  )
  if (most > maxRepeats)
    diagnostics.add(where, `{${most}} cannot be used here`, `at most ${maxRepeats} repetitions are allowed`)
}
