import { Document, isCollection } from 'yaml'
import { valuesOf } from './read.ts'
import { fitsBlock } from './text.ts'
import type { Entry, ListValue, MapValue, ScalarValue, Value } from './values.ts'

/** A change of a lab file. */
export interface LabFileEdit {
  /** The keys to a value, and indices of lists, such as `['links', 3, 'delay']`. The index after the last one appends. */
  readonly path: readonly (string | number)[]
  /** The new value as data; undefined removes a key or an item. */
  readonly value?: unknown
  /** A new name for the last key, whose value stays. */
  readonly key?: string
}

/**
 * A lab file with some values changed. Only the text of these values changes: comments, order, quotes, line ends and a byte order mark
 * stay. A missing key is added at the end of its map; what is missing above it is made. A link that is a list of two ends becomes a map,
 * and so does a member that is an end. A value that comes from an anchor is written in place of its alias.
 * Throws a `LabFileError` for a text that is no YAML.
 */
export function editedLabFile(text: string, edits: readonly LabFileEdit[]): string {
  const changes = changesOf(edits)
  const root = valuesOf(text)
  const wanted = changed(plainOf(root), changes, [])
  const edited = new Editor(text).edit(root, changes)
  // The edit of an anchor has changed its aliases, too: they get their former values.
  const aliases = changedAliases(valuesOf(edited), wanted, edited, [])
  const next = aliases.length === 0 ? edited : new Editor(edited).edit(valuesOf(edited), changesOf(aliases))
  // The text was edited, not the data: this check proves that the text has the wanted data.
  if (!says(valuesOf(next), wanted)) throw new Error('the edited lab file is not what was asked for')
  return next
}

/** The aliases that no longer stand for the data that is wanted there. */
function changedAliases(value: Value, data: unknown, text: string, path: Path): LabFileEdit[] {
  if (isAlias(value, text)) return says(value, data) ? [] : [{ path, value: data }]
  if (value.type === 'list')
    return value.items.flatMap((it, index) =>
      changedAliases(it, Array.isArray(data) ? data[index] : undefined, text, [...path, index]),
    )
  if (value.type === 'scalar' || !isMap(data)) return []
  return [...value.entries].flatMap(([key, it]) => changedAliases(it.value, data[key], text, [...path, key]))
}

const isAlias = ({ isBorrowed, range: [start] }: Value, text: string): boolean =>
  isBorrowed === true && text[start] === '*'

/** Changes by key: of the value itself, or of what is in it. */
type Change = { readonly value: unknown } | Inside
interface Inside {
  readonly inside: Map<string | number, Change>
  /** New names of keys. */
  readonly names: Map<string, string>
}
const inside = (): Inside => ({ inside: new Map(), names: new Map() })

function changesOf(edits: readonly LabFileEdit[]): Change {
  const root = inside()
  for (const { path, value, key } of edits) {
    let map = root
    for (const word of path.slice(0, -1)) {
      const next = map.inside.get(word)
      const inner = next !== undefined && 'inside' in next ? next : inside()
      map.inside.set(word, inner)
      map = inner
    }
    const last = path.at(-1)
    if (last === undefined) throw new Error('an edit has a path')
    if (key !== undefined) map.names.set(String(last), key)
    else map.inside.set(last, { value: value === undefined ? undefined : JSON.parse(JSON.stringify(value)) })
  }
  return root
}

/** Keys and indices to a value. */
export type Path = readonly (string | number)[]

const isLink = (path: Path): boolean => path.length === 2 && path[0] === 'links'
const isMember = (path: Path): boolean => path.length === 4 && path[0] === 'segments' && path[2] === 'members'

/** A value after changes. */
function changed(value: unknown, change: Change, path: Path): unknown {
  if ('value' in change) return change.value
  const base = opened(value, path)
  const isListed =
    Array.isArray(base) || (base === undefined && [...change.inside.keys()].every((key) => typeof key === 'number'))
  if (isListed) {
    const items = [...((base as unknown[] | undefined) ?? [])]
    for (const [key, inner] of change.inside) items[Number(key)] = changed(items[Number(key)], inner, [...path, key])
    return items.filter((it) => it !== undefined)
  }
  const members = new Map(Object.entries((base as object | undefined) ?? {}))
  for (const [key, inner] of change.inside) {
    const next = changed(members.get(String(key)), inner, [...path, key])
    if (next === undefined) members.delete(String(key))
    else members.set(String(key), next)
  }
  return Object.fromEntries([...members].map(([key, it]) => [change.names.get(key) ?? key, it]))
}

/** A value in the form to which keys can be added: a link or a member without keys becomes a map. */
function opened(value: unknown, path: Path): unknown {
  if (value === null) return undefined
  if (isLink(path) && Array.isArray(value)) return { ends: value }
  if (isMember(path) && typeof value !== 'object') return { end: value }
  return typeof value === 'object' ? value : undefined
}

/** The value at the keys to it; undefined: there is none. */
export const valueAt = (value: unknown, path: Path): unknown =>
  path.reduce((found: unknown, key) => (typeof found === 'object' ? (found as never)?.[key] : undefined), value)

/** A value as data. */
export function plainOf(value: Value): unknown {
  if (value.type === 'scalar') return value.value
  if (value.type === 'list') return value.items.map(plainOf)
  return Object.fromEntries([...value.entries].map(([key, entry]) => [key, plainOf(entry.value)]))
}

/** Whether a value of a file is this data; the order of keys does not count. */
function says(value: Value, data: unknown): boolean {
  if (value.type === 'scalar') return isSameScalar(value, data)
  if (value.type === 'list')
    return (
      Array.isArray(data) &&
      data.length === value.items.length &&
      value.items.every((it, index) => says(it, data[index]))
    )
  if (!isMap(data)) return false
  const { entries } = value
  return (
    Object.keys(data).length === entries.size &&
    [...entries].every(([key, it]) => Object.hasOwn(data, key) && says(it.value, data[key]))
  )
}

interface Replacement {
  readonly start: number
  readonly end: number
  readonly text: string
}

class Editor {
  readonly #text: string
  readonly #lineEnd: string
  readonly #replacements: Replacement[] = []

  constructor(text: string) {
    this.#text = text
    this.#lineEnd = text.includes('\r\n') ? '\r\n' : '\n'
  }

  edit(root: Value, change: Change): string {
    this.#change(root, change, [], false)
    let result = ''
    let end = 0
    const sorted = this.#replacements
      .map((it, index) => ({ ...it, index }))
      .sort((a, b) => a.start - b.start || a.index - b.index)
    for (const it of sorted) {
      result += this.#text.slice(end, it.start) + it.text
      end = Math.max(end, it.end)
    }
    return result + this.#text.slice(end)
  }

  /** Changes a value at its position. */
  #change(value: Value, change: Change, path: Path, isInFlow: boolean): void {
    const isFlow = isInFlow || (value.type !== 'scalar' && value.isFlow)
    if ('value' in change) {
      this.#set(value, change.value, path, isFlow, isInFlow)
      return
    }
    const isThroughAlias = isAlias(value, this.#text)
    if (!isThroughAlias && value.type === 'map') this.#changeMap(value, change, path, isFlow)
    else if (!isThroughAlias && value.type === 'list' && !isLink(path))
      this.#changeList(value, change.inside, path, isFlow)
    else this.#replace(value, this.#opened(value, change, path, isThroughAlias), isInFlow)
  }

  #changeMap(map: MapValue, { inside, names }: Inside, path: Path, isFlow: boolean): void {
    for (const [key, name] of names) {
      const entry = map.entries.get(key)
      if (entry !== undefined) this.#replacements.push({ ...rangeOf(entry.keyRange), text: keyText(name) })
    }
    const removed: string[] = []
    const added: [string, unknown][] = []
    for (const [word, change] of inside) {
      const key = String(word)
      const entry = map.entries.get(key)
      const inner = [...path, key]
      if (entry === undefined) {
        const value = changed(undefined, change, inner)
        if (value !== undefined) added.push([key, value])
      } else if ('value' in change && change.value === undefined) removed.push(key)
      else this.#change(entry.value, change, inner, isFlow)
    }
    if (removed.length === map.entries.size && removed.length > 0) {
      const entries = Object.fromEntries(added)
      this.#replacements.push({ ...rangeOf(map.range), text: `${flowText(entries)}${this.#tail(map)}` })
      return
    }
    for (const key of removed) this.#remove(map, key, removed)
    const kept = [...map.entries].filter(([key]) => !removed.includes(key))
    if (added.length > 0) this.#add(map, kept, added, path.length === 0)
  }

  #changeList(list: ListValue, inside: ReadonlyMap<string | number, Change>, path: Path, isFlow: boolean): void {
    const added: unknown[] = []
    const removed = new Set<Value>()
    for (const [word, change] of inside) {
      const index = Number(word)
      const item = list.items[index]
      if (item === undefined) added.push(changed(undefined, change, [...path, index]))
      else if ('value' in change && change.value === undefined) removed.add(item)
      else this.#change(item, change, [...path, index], isFlow)
    }
    if (removed.size === list.items.length && removed.size > 0) {
      this.#replacements.push({ ...rangeOf(list.range), text: `${flowText(added)}${this.#tail(list)}` })
      return
    }
    for (const item of removed) this.#removeItem(list, item, removed)
    if (added.length === 0) return
    const last = list.items.filter((it) => !removed.has(it)).at(-1)
    if (last === undefined) this.#replacements.push({ ...rangeOf(list.range), text: flowText(added) })
    else if (list.isFlow) this.#insert(last.range[1], added.map((it) => `, ${flowText(it)}`).join(''))
    else {
      const start = list.items[0]?.range[0] ?? 0
      const prefix = this.#text.slice(this.#lineStart(start), start)
      const indent = ' '.repeat(Math.max(0, prefix.lastIndexOf('-')))
      this.#insertLines(
        last,
        added.map((it) => `${indent}- ${flowText(it)}`),
      )
    }
  }

  /** Takes an item out: of a block its lines, else the item with a comma. */
  #removeItem(list: ListValue, item: Value, removed: ReadonlySet<Value>): void {
    const [start] = item.range
    const end = this.#endOf(item)
    const index = list.items.indexOf(item)
    const isLeft = (it: Value) => !removed.has(it)
    if (list.isFlow) {
      const [before, next] = [list.items.slice(0, index).findLast(isLeft), list.items[index + 1]]
      if (next !== undefined && list.items.slice(index + 1).some(isLeft))
        this.#replacements.push({ start, end: next.range[0], text: '' })
      else if (next === undefined && before !== undefined)
        this.#replacements.push({ start: before.range[1], end, text: '' })
      return
    }
    const line = this.#lineStart(this.#text.lastIndexOf('-', start - 1))
    const after = this.#text[end - 1] === '\n' ? end - 1 : this.#text.indexOf('\n', end)
    this.#replacements.push({ start: line, end: after === -1 ? this.#text.length : after + 1, text: '' })
  }

  /** Sets a value, and leaves what is equal as it is written. */
  #set(value: Value, next: unknown, path: Path, isFlow: boolean, isInFlow: boolean): void {
    if (value.isBorrowed !== true) {
      if (value.type === 'scalar' && isSameScalar(value, next)) return
      if (value.type === 'map' && isMap(next)) {
        const gone = [...value.entries.keys()].filter((key) => !Object.hasOwn(next, key))
        const inside = [...Object.entries(next), ...gone.map((key) => [key, undefined] as const)]
        const changes = new Map(inside.map(([key, it]) => [key, { value: it }]))
        this.#changeMap(value, { inside: changes, names: new Map() }, path, isFlow)
        return
      }
      if (value.type === 'list' && Array.isArray(next) && next.length === value.items.length && next.length > 0) {
        this.#changeList(value, new Map(next.map((it, index) => [index, { value: it }])), path, isFlow)
        return
      }
    } else if (says(value, next)) return
    this.#replace(value, next, isInFlow)
  }

  /** The map that replaces a link or member without keys, with the changes. The text of its ends is kept if they are the same. */
  #opened(value: Value, change: Change, path: Path, isThroughAlias: boolean): unknown {
    const after = changed(plainOf(value), change, path)
    if (isThroughAlias || !isMap(after)) return after
    const [start, end] = value.range
    const isKept =
      (value.type === 'list' && value.isFlow && isLink(path)) || (value.type === 'scalar' && isMember(path))
    const key = value.type === 'list' ? 'ends' : 'end'
    return isKept && says(value, after[key]) ? { ...after, [key]: new Verbatim(this.#text.slice(start, end)) } : after
  }

  #replace(value: Value, next: unknown, isInFlow: boolean): void {
    const { start, end } = rangeOf(value.range)
    const isEmpty = start === end
    const before = isEmpty && !/\s/.test(this.#text[start - 1] ?? ' ') ? ' ' : ''
    const isAlone = this.#text[end - 1] === '\n' || /^[ \t]*(?:\r?\n|$)/.test(this.#text.slice(end, end + 1000))
    const canBeBlock = typeof next === 'string' && next.includes('\n') && fitsBlock(next)
    // A text with several line ends at its end is not written as a block: they could not be distinguished from empty lines of the file.
    const isBlock = canBeBlock && !next.endsWith('\n\n') && !isInFlow && isAlone
    const text = isBlock ? this.#literal(next, start) : flowText(next)
    this.#replacements.push({ start, end, text: `${before}${text}${this.#tail(value)}` })
  }

  /** A text as a literal block, one step deeper than its key. */
  #literal(text: string, start: number): string {
    const line = this.#lineStart(start)
    const indent = /^[ ]*(?:- +)*/.exec(this.#text.slice(line))?.[0].length ?? 0
    const deeper = ' '.repeat(indent + 2)
    const chomp = text.endsWith('\n') ? '' : '-'
    const body = text.endsWith('\n') ? text.slice(0, -1) : text
    const lines = body.split('\n').map((it) => (it === '' ? '' : `${deeper}${it}`))
    return [`|${chomp}`, ...lines].join(this.#lineEnd)
  }

  /** The line end that belongs to the text of a block. */
  #tail({ range: [start, end] }: Value): string {
    return end > start && this.#text[end - 1] === '\n' ? (this.#text[end - 2] === '\r' ? '\r\n' : '\n') : ''
  }

  #insert(at: number, text: string): void {
    this.#replacements.push({ start: at, end: at, text })
  }

  /** Adds lines behind the last line of a value of a block. */
  #insertLines(last: Value, lines: readonly string[]): void {
    const end = this.#endOf(last)
    const text = lines.join(this.#lineEnd)
    const next = this.#text[end - 1] === '\n' ? end - 1 : this.#text.indexOf('\n', end)
    if (next === -1) this.#insert(this.#text.length, `${this.#lineEnd}${text}`)
    else this.#insert(next + 1, `${text}${this.#lineEnd}`)
  }

  /** Where the last value in a value ends. */
  #endOf(value: Value): number {
    if (value.isBorrowed === true || value.type === 'scalar' || value.isFlow) return value.range[1]
    const last = value.type === 'list' ? value.items.at(-1) : [...value.entries.values()].at(-1)?.value
    return last === undefined ? value.range[1] : Math.max(this.#endOf(last), value.range[0])
  }

  #add(
    map: MapValue,
    kept: readonly (readonly [string, Entry])[],
    added: readonly [string, unknown][],
    isRoot: boolean,
  ): void {
    const last = kept.at(-1)?.[1]
    if (last === undefined) {
      this.#replacements.push({ ...rangeOf(map.range), text: flowText(Object.fromEntries(added)) })
      return
    }
    if (map.isFlow) {
      const text = added.map(([key, value]) => `, ${keyText(key)}: ${flowText(value)}`).join('')
      this.#insert(Math.max(last.value.range[1], last.keyRange[1]), text)
      return
    }
    const start = last.keyRange[0]
    const indent = ' '.repeat(start - this.#lineStart(start))
    const lines = added.flatMap(([key, value]) => {
      if (isRoot && typeof value === 'object') return ['', ...this.#section(key, value as object)]
      return [`${indent}${keyText(key)}: ${flowText(value)}`]
    })
    this.#insertLines(last.value, lines)
  }

  /** A section with a line for each of its entries. */
  #section(key: string, value: object): string[] {
    const lines = Array.isArray(value)
      ? value.map((it) => `  - ${flowText(it)}`)
      : Object.entries(value).map(([name, it]) => `  ${keyText(name)}: ${flowText(it)}`)
    return lines.length === 0 ? [`${keyText(key)}: ${flowText(value)}`] : [`${keyText(key)}:`, ...lines]
  }

  #remove(map: MapValue, key: string, removed: readonly string[]): void {
    const list = [...map.entries]
    const index = list.findIndex(([it]) => it === key)
    const entry = list[index]?.[1]
    if (entry === undefined) return
    const start = entry.keyRange[0]
    const end = Math.max(this.#endOf(entry.value), entry.keyRange[1])
    const next = list[index + 1]?.[1]
    if (map.isFlow) {
      const before = list.slice(0, index).findLast(([it]) => !removed.includes(it))?.[1]
      // The last ones go with the comma before them.
      if (next === undefined && before !== undefined)
        this.#replacements.push({ start: Math.max(before.value.range[1], before.keyRange[1]), end, text: '' })
      else if (next !== undefined && list.slice(index + 1).some(([it]) => !removed.includes(it)))
        this.#replacements.push({ start, end: next.keyRange[0], text: '' })
      return
    }
    const line = this.#lineStart(start)
    const isAlone = this.#text.slice(line, start).trim() === ''
    if (!isAlone && next !== undefined) {
      this.#replacements.push({ start, end: next.keyRange[0], text: '' })
      return
    }
    const after = this.#text[end - 1] === '\n' ? end - 1 : this.#text.indexOf('\n', end)
    this.#replacements.push({ start: line, end: after === -1 ? this.#text.length : after + 1, text: '' })
  }

  #lineStart(offset: number): number {
    const start = this.#text.lastIndexOf('\n', offset - 1) + 1
    return start === 0 && this.#text.startsWith('\ufeff') ? 1 : start
  }
}

const rangeOf = ([start, end]: readonly [number, number]) => ({ start, end })
/** Whether data is a map. */
export const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether a scalar says the value already; a number may be the text that is written. */
const isSameScalar = ({ value, source }: ScalarValue, next: unknown): boolean =>
  Object.is(value, next) || (typeof next === 'string' && typeof value !== 'string' && value !== null && source === next)

/** Text of the file that is kept as it is. */
class Verbatim {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Characters that only an escape keeps in a line. */
const unsafe = /[\p{Cc}\u2028\u2029\ufeff]/gu

/** A key; numbers, such as those of ports, need no quotes: keys are texts. */
const keyText = (key: string): string => (/^(?:0|[1-9]\d{0,9})$/.test(key) ? key : flowText(key))

/** A value on one line. */
function flowText(value: unknown): string {
  if (value instanceof Verbatim) return value.text
  if (Array.isArray(value)) return `[${value.map(flowText).join(', ')}]`
  if (isMap(value)) {
    const members = Object.entries(value).map(([key, it]) => `${keyText(key)}: ${flowText(it)}`)
    return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
  }
  if (typeof value === 'string' && value.search(unsafe) !== -1)
    return JSON.stringify(value).replaceAll(unsafe, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`)
  // In a list, so that the library quotes what means something there.
  const list = new Document([value])
  if (isCollection(list.contents)) list.contents.flow = true
  return list.toString({ lineWidth: 0, flowCollectionPadding: false }).trim().slice(1, -1)
}
