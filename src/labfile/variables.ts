import { type Diagnostics, didYouMean, enough, quoted } from './diagnostics.ts'
import type { Reader } from './reader.ts'
import { sections } from './schema.ts'
import { at, type MapValue, type ScalarValue, type Value } from './values.ts'

/** Most text that variables make in a file, characters. */
const maxReplaced = 4 << 20

type Scalar = string | number | boolean

/** A variable: its value, and how that is written. */
interface Variable {
  readonly value: Scalar
  readonly source: string
}

/**
 * The document with its variables replaced: `${name}`, and `$${` for `${`. A value that is nothing but `${name}` takes the type of the
 * variable. Text for consoles and configurations stays as it is: it may use `${` for itself.
 */
export function withVariables(
  root: MapValue,
  { reader, diagnostics, given }: { reader: Reader; diagnostics: Diagnostics; given: Readonly<Record<string, string>> },
): MapValue {
  const variables = new Map<string, Variable>()
  const declared = at(root, 'vars')
  if (declared?.type === 'map') {
    const read = reader.read(sections.vars, declared) ?? {}
    for (const [name, value] of Object.entries(read)) {
      const own = at(declared, name)
      const source = own?.type === 'scalar' ? own.source : String(value)
      if (typeof value === 'string' && value.includes(open))
        diagnostics.add(own?.at ?? declared.at, 'the value of a variable must not contain variables')
      variables.set(name, { value, source })
    }
  }
  for (const [name, text] of Object.entries(given)) variables.set(name, { value: typed(text), source: text })
  const used = new Set<string>()
  let replacedLength = 0

  const replaced = (value: ScalarValue): ScalarValue => {
    const { value: text } = value
    if (typeof text !== 'string' || !text.includes(open)) return value
    const find = (name: string): Variable | undefined => {
      used.add(name)
      const found = variables.get(name)
      if (found === undefined)
        diagnostics.add(value.at, `there is no variable ${quoted(name)}`, () => didYouMean(name, [...variables.keys()]))
      replacedLength += found?.source.length ?? 0
      if (replacedLength > maxReplaced) {
        diagnostics.add(value.at, `the variables expand to more than ${maxReplaced >> 20} MiB of text`)
        throw enough
      }
      return found
    }
    const [, only] = alone.exec(text) ?? []
    if (only !== undefined) {
      const found = find(only)
      return { ...value, isBorrowed: true, ...(found ?? { value: text }) }
    }
    const result = text.replace(each, (whole, name: string | undefined) => {
      if (whole === escaped) return open
      if (name !== undefined) return find(name)?.source ?? whole
      diagnostics.add(
        value.at,
        `${quoted(open)} begins a variable, but "}" is missing or the name is not valid`,
        `write $${open} for the text ${open}`,
      )
      return whole
    })
    return { ...value, value: result, source: result, isBorrowed: true }
  }

  const walk = (value: Value, inside: Inside): Value => {
    if (value.type === 'scalar') return replaced(value)
    if (value.type === 'list') return { ...value, items: value.items.map((item) => walk(item, inside)) }
    const entries = [...value.entries].map(([key, entry]) => {
      if (entry.value.type === 'scalar' && isVerbatim(key, inside)) return [key, entry] as const
      const next = key === 'ready' || key === 'checks' ? key : inside
      return [key, { ...entry, value: walk(entry.value, next) }] as const
    })
    return { ...value, entries: new Map(entries) }
  }

  const entries = [...root.entries].map(([key, entry]) =>
    key === 'vars'
      ? ([key, entry] as const)
      : ([key, { ...entry, value: walk(entry.value, key === 'checks' ? key : undefined) }] as const),
  )
  for (const name of Object.keys(given)) {
    const isDeclared = declared?.type === 'map' && declared.entries.has(name)
    if (isDeclared || used.has(name)) continue
    const known = () => [...new Set([...(declared?.type === 'map' ? declared.entries.keys() : []), ...used])]
    diagnostics.add({ line: 1, column: 1, path: '' }, `the file has no variable ${quoted(name)}`, () =>
      didYouMean(name, known()),
    )
  }
  return { ...root, entries: new Map(entries) }
}

/** A value of a lab file without variables: where a text has `${`, which would begin one, it has `$${`. */
export function withoutVariables(value: unknown, inside: Inside = undefined): unknown {
  if (typeof value === 'string') return value.replaceAll(open, '$$$${')
  if (Array.isArray(value)) return value.map((item) => withoutVariables(item, inside))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      if (typeof member === 'string' && isVerbatim(key, inside)) return [key, member]
      return [key, withoutVariables(member, key === 'ready' || key === 'checks' ? key : inside)]
    }),
  )
}

type Inside = 'ready' | 'checks' | undefined

/** Keys whose values are text for other programs. */
const isVerbatim = (key: string, inside: Inside): boolean =>
  key === 'text' ||
  configFields.has(key) ||
  (key === 'console' && inside === 'ready') ||
  ((key === 'type' || key === 'expect') && inside === 'checks')

/** The fields of configurations in the schemas of their kinds. */
const configFields: ReadonlySet<string> = new Set([
  'startup_script',
  'startup_config_content',
  'private_config_content',
])

const open = '$'.concat('{')
const escaped = `$${open}`
const alone = /^\$\{([A-Za-z_][A-Za-z0-9_-]*)\}$/
const each = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_-]*)\}|\$\{/g

/** The value of a text of the command line, as YAML reads a plain scalar. */
function typed(text: string): Scalar {
  if (text === 'true' || text === 'false') return text === 'true'
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text) ? Number(text) : text
}
