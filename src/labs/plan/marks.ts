import type { DesiredNode } from '../../labfile/desired.ts'
import type { NodeLastApplied, NodeRecord } from '../lab/document.ts'
import { day0Media, day0MediumIn, isDay0Property } from '../nodes/day0.ts'
import { fingerprint, same } from './json-equal.ts'
import { defaultsOf, settingDefault } from './node-defaults.ts'

/** The properties that hold the medium of a node, and the one that it shall have. */
export const day0Keys = ({ day0 }: DesiredNode, { properties }: NodeRecord): string[] => {
  const both = [day0MediumIn(properties), day0 && day0Media[day0.medium]]
  return [...new Set(both.flatMap((medium) => medium?.property ?? []))]
}
/**
 * The digest of the CD or disk that the file describes. A file that only names the CD, as an exported file does, leaves it as it
 * is.
 */
export const day0In = ({ day0, properties }: DesiredNode, { lastApplied }: NodeRecord): string | undefined =>
  day0?.digest ?? (day0MediumIn(properties) !== undefined ? lastApplied?.day0 : undefined)

/** Whether a node has a value of the file: it shows it, or it shows what it showed after it had taken it. */
export function isShown({ properties, lastApplied }: NodeRecord, key: string, value: unknown): boolean {
  const shown = properties[key]
  if (key === 'ports_mapping' ? samePorts(shown, value) : same(shown, value)) return true
  const taken = lastApplied?.normalizedValues?.[key]
  return taken !== undefined && taken[0] === fingerprint(value) && taken[1] === fingerprint(shown)
}

/** Ports as they are compared: by number, without absent members. */
const samePorts = (a: unknown, b: unknown): boolean => {
  const sorted = (list: unknown) =>
    Array.isArray(list) ? [...(list as { port_number: number }[])].sort((x, y) => x.port_number - y.port_number) : list
  return same(sorted(a), sorted(b))
}

/**
 * What the record of a node says of the file. `managed`: the file made the node; `held`: properties that a withheld step would
 * change.
 */
export function markOf(
  want: DesiredNode,
  record: NodeRecord,
  { managed, configs }: Pick<NodeLastApplied, 'managed' | 'configs'>,
  isNew: boolean,
  held: readonly string[] = [],
): NodeLastApplied {
  const keys = [...Object.keys(want.settings), ...Object.keys(want.properties)]
  const normalizedValues = Object.entries(want.properties).flatMap(([key, value]) => {
    const shown = record.properties[key]
    const before = record.lastApplied?.normalizedValues?.[key]
    if (held.includes(key)) return before === undefined ? [] : [[key, before] as const]
    return same(shown, value) ? [] : [[key, [fingerprint(value), fingerprint(shown)]] as const]
  })
  const computeDefaults = isNew
    ? [
        ...defaultsOf(want.kind, record)
          .filter(([key, value]) => !(key in want.properties) && !same(record.properties[key], value))
          .map(([key]) => key),
        ...(want.settings.console_type === undefined &&
        record.console_type !== settingDefault(want.kind, 'console_type')
          ? ['console_type']
          : []),
      ]
    : (record.lastApplied?.computeDefaults ?? [])
  const day0 = held.some(isDay0Property) ? record.lastApplied?.day0 : day0In(want, record)
  return {
    managed,
    keys,
    configs,
    ...(computeDefaults.length > 0 && { computeDefaults }),
    ...(normalizedValues.length > 0 && { normalizedValues: Object.fromEntries(normalizedValues) }),
    ...(day0 !== undefined && { day0 }),
  }
}
