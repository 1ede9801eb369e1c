import type { DesiredNode } from '../../labfile/desired.ts'
import type { KindDescriptor } from '../../model/kinds/kind.ts'
import { kindOf } from '../../model/kinds/node.ts'
import { mapFields } from '../../model/lab/node.ts'
import type { NodeRecord } from '../lab/document.ts'
import type { WantedSettings } from './types.ts'

/** The keys of a record that the file decides. */
export const settingKeys = [
  ...[
    'x',
    'y',
    'symbol',
    'labels',
    'placement',
    'after',
    'ready',
    'port_name_format',
    'custom_adapters',
    'console',
    'console_type',
  ],
] as (keyof WantedSettings)[]

export function settingsOf({ settings, labels, placement, after, ready }: DesiredNode): WantedSettings {
  return {
    ...settings,
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(placement !== undefined && { placement }),
    ...(after.length > 0 && { after: [...after] }),
    ...(ready !== undefined && { ready }),
  }
}

/** The default of a setting; undefined: it has none, and is left as it is. */
export function settingDefault(kind: DesiredNode['kind'], key: keyof WantedSettings): unknown {
  const { portNameFormat, node } = kindOf(kind)
  if (key === 'port_name_format') return portNameFormat ?? mapFields.port_name_format.default
  if (key === 'console_type') return node.properties.console_type?.default
  if (key === 'console') return undefined
  return mapFields[key as keyof typeof mapFields].default ?? null
}

/**
 * The settings of a node that is recreated: those that the file does not give have their defaults, except the position on the
 * map.
 */
export const completeSettings = (kind: DesiredNode['kind'], settings: WantedSettings): WantedSettings => ({
  ...Object.fromEntries(
    settingKeys
      .filter((key) => key !== 'x' && key !== 'y' && key !== 'console')
      .map((key) => [key, structuredClone(settingDefault(kind, key))]),
  ),
  ...settings,
})

/** The properties of a kind that an update can set and that have a default. */
export function defaultsOf(kind: DesiredNode['kind'], record: NodeRecord): readonly (readonly [string, unknown])[] {
  const { ownValues } = kindOf(kind)
  const own = ownValues?.(record.properties) ?? []
  return staticDefaults(kind).filter(([key]) => !own.includes(key))
}

const defaults = new Map<string, readonly (readonly [string, unknown])[]>()
function staticDefaults(kind: DesiredNode['kind']): readonly (readonly [string, unknown])[] {
  const known = defaults.get(kind)
  if (known !== undefined) return known
  const { node, update, configs = {} }: KindDescriptor = kindOf(kind)
  const fields = new Set(Object.values(configs).map(({ field }) => field))
  const found = Object.entries(node.properties).flatMap(([key, schema]) =>
    schema.default !== undefined && key in update.properties && !fields.has(key) && !notProperties.has(key)
      ? [[key, schema.default] as const]
      : [],
  )
  defaults.set(kind, found)
  return found
}
/** Members of the update of a kind that are settings of the record, or ports. */
const notProperties: ReadonlySet<string> = new Set([
  'name',
  'console',
  'console_type',
  'custom_adapters',
  'ports_mapping',
  'port_count',
])
