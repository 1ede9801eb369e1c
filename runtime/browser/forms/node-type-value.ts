import { type FormField, textOf } from './fields.ts'

/** The node type from which a node was made. */
export interface NodeTypeValues {
  readonly name: string
  readonly settings: Readonly<Record<string, unknown>>
}

/** What the type has where a value of its node differs, as a sentence; undefined: it does not differ, or the type leaves it to the node. */
export function differenceFrom(type: NodeTypeValues, field: FormField, value: unknown): string | undefined {
  const own = type.settings[field.name] ?? field.default
  if (own === undefined || own === null) return undefined
  const [before, now] = [textOf(field, own), typeof value === 'string' ? value : textOf(field, value)]
  return before === now ? undefined : `${type.name} has ${shown(field, own)}`
}

function shown(field: FormField, value: unknown): string {
  if (field.kind === 'flag') return value === true ? 'yes' : 'no'
  const text = textOf(field, value)
  if (text === '') return 'none'
  return field.kind === 'json' || field.kind === 'table' || text.length > 60 ? 'another value' : text
}
