import { Kind, type TSchema } from '@sinclair/typebox'
import { Settings } from './settings.ts'

/** A setting by its dotted key, such as `pc.engine`. */
export type SettingKey = { readonly key: string; readonly path: readonly string[]; readonly schema: TSchema }

/** Every setting; the settings of a group follow one by one. */
export const settingKeys: readonly SettingKey[] = Object.entries(
  Settings.properties as Record<string, TSchema>,
).flatMap(([name, schema]): SettingKey[] =>
  schema[Kind] === 'Object'
    ? Object.entries(schema.properties as Record<string, TSchema>).map(
        ([inner, it]): SettingKey => ({ key: `${name}.${inner}`, path: [name, inner], schema: it }),
      )
    : [{ key: name, path: [name], schema }],
)

export const variableOf = ({ path }: SettingKey): string => `PATCHBAY_${path.join('_').toUpperCase()}`
export const flagOf = ({ path, schema }: SettingKey): string =>
  typeof schema.flag === 'string' ? schema.flag : path.join('-').replaceAll('_', '-')
/** The values of a setting with a fixed list of values; empty for other settings. */
export const choicesOf = ({ schema }: SettingKey): string[] =>
  schema[Kind] === 'Union' ? (schema.anyOf as TSchema[]).map((choice) => String(choice.const)) : []
export const isSecretSetting = ({ schema }: SettingKey): boolean => schema.secret === true

/** Settings by name, groups as objects; not validated. */
export type Tree = Record<string, unknown>

export const getAt = (tree: Tree, path: readonly string[]): unknown =>
  path.reduce<unknown>((at, name) => (at !== null && typeof at === 'object' ? (at as Tree)[name] : undefined), tree)

export function setAt(tree: Tree, [first, ...rest]: readonly string[], value: unknown): void {
  if (first === undefined) return
  tree[first] = rest.length === 0 ? value : (tree[first] ?? {})
  setAt(tree[first] as Tree, rest, value)
}

/** Parses a text of the environment or the command line; returns the text itself when it is no value of the schema. */
export function fromText(text: string, schema: TSchema): unknown {
  switch (schema[Kind]) {
    case 'Boolean':
      if (/^(true|1|yes|on)$/i.test(text)) return true
      return /^(false|0|no|off)$/i.test(text) ? false : text
    case 'Integer':
      return /^-?\d+$/.test(text) ? Number(text) : text
    case 'Tuple': {
      const range = /^(\d+)\s*[-:]\s*(\d+)$/.exec(text)
      return range === null ? text : [Number(range[1]), Number(range[2])]
    }
    case 'Array':
      return list(text)
    case 'Record':
      return Object.fromEntries(list(text).map((pair) => pair.split('=', 2).map((part) => part.trim())))
    default:
      return text
  }
}

const list = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')

/** A value as a person reads it. */
export function shownSetting(value: unknown, schema: TSchema): string {
  if (value === undefined) return ''
  if (schema[Kind] === 'Tuple' && Array.isArray(value)) return value.join('-')
  return typeof value === 'string' ? value : JSON.stringify(value)
}
