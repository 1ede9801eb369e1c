import { Diagnostics } from '../labfile/diagnostics.ts'
import { LabFileError } from '../labfile/lab-file-error.ts'
import type { Position } from '../labfile/position.ts'
import { joined, treeOf } from '../labfile/tree.ts'
import type { Value } from '../labfile/values.ts'
import type { ErrorCode } from '../lib/errors/error-codes.ts'

/** What becomes of a part: the lab file has it in another form, or not at all. */
type Effect = 'changed' | 'left-out'

const maxShown = 80
/** Most parts that are listed as left out. */
const maxLeftOut = 1000

/** Something of a foreign lab that the lab file does not have, or has in another form, and where it is. */
export interface LeftOut extends Position {
  readonly effect: Effect
  readonly message: string
}

/** A text of a foreign format, YAML or JSON, with the position of each of its parts. */
export class Source {
  readonly #leftOut = new Map<string, LeftOut>()
  readonly root: Part

  /** 400 with line and column when the text is not a YAML or JSON document of at most 1 MiB. */
  constructor(text: string) {
    const diagnostics = new Diagnostics()
    const root = treeOf(text, diagnostics, (at, message) => this.leaveOut(at, message, 'changed'))
    if (!diagnostics.isEmpty) throw new LabFileError(diagnostics.list())
    if (root === undefined || (root.type === 'scalar' && root.value === null))
      throw new LabFileError([{ line: 1, column: 1, path: '', message: 'the file is empty' }])
    this.root = new Part(this, root.at, root)
  }

  get leftOut(): readonly LeftOut[] {
    return [...this.#leftOut.values()].sort((a, b) => a.line - b.line || a.column - b.column)
  }

  /** Reads a part of the lab. Undefined when it cannot be read: it is left out, with the reason. */
  attempt<T>(read: () => T): T | undefined {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof LabFileError)) throw error
      for (const { message, hint, ...at } of error.diagnostics)
        this.leaveOut(at, `is not imported: ${message}${hint === undefined ? '' : `; ${hint}`}`)
      return undefined
    }
  }

  /** Notes that something is not in the lab file, or has another form there. Each position and message once; of very many the first. A function is called when it is listed. */
  leaveOut({ line, column, path }: Position, given: string | (() => string), effect: Effect = 'left-out'): void {
    const { size } = this.#leftOut
    if (size > maxLeftOut) return
    const message = typeof given === 'function' ? given() : given
    const key = `${line}:${column} ${path} ${message}`
    if (this.#leftOut.has(key)) return
    const others = `this and more was left out; the list ends after ${maxLeftOut} parts`
    this.#leftOut.set(key, { path, line, column, effect, message: size < maxLeftOut ? message : others })
  }
}

/** A value of a source as messages quote it, in one line. */
export function quoted(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > maxShown ? `${text.slice(0, maxShown)}...` : text
}

/** A part of a source: a value with its position. It remembers which of its members were read. */
export class Part {
  readonly #source: Source
  readonly #at: Position
  /** Undefined: it is not there. */
  readonly #value: Value | undefined
  readonly #read = new Set<string>()

  /** `at`: the position of its key, where it has one; of its parent, where it is not there. */
  constructor(source: Source, at: Position, value: Value | undefined) {
    this.#source = source
    this.#at = at
    this.#value = value
  }

  /** The value without positions. */
  get value(): unknown {
    return this.#value === undefined ? undefined : plain(this.#value)
  }

  /** Absent, or null: both are "not set" in the formats that are read here. */
  get isAbsent(): boolean {
    return this.#value === undefined || (this.#value.type === 'scalar' && this.#value.value === null)
  }

  get isList(): boolean {
    return this.#value?.type === 'list'
  }

  get isObject(): boolean {
    return this.#value?.type === 'map'
  }

  /** The member of an object, which may be absent. 400 when this is something else. */
  get(key: string): Part {
    this.#read.add(key)
    const entry = this.#entries().get(key)
    const path = this.#at.path === '' ? key : `${this.#at.path}.${key}`
    return new Part(this.#source, entry?.key ?? { ...this.#at, path }, entry?.value)
  }

  /** Whether an object has a member that is set. It does not count as read. */
  has(key: string): boolean {
    return !new Part(this.#source, this.#at, this.#entries().get(key)?.value).isAbsent
  }

  /** This part, if it is an object or absent. Something else is left out, and an absent part is returned. */
  asObject(): Part {
    if (this.isAbsent || this.isObject) return this
    this.leaveOut(`is not imported: expected an object, got ${quoted(this.value)}`)
    return new Part(this.#source, this.#at, undefined)
  }

  /** The items of a list; none when it is absent. Something else is left out. */
  itemsOrNone(): Part[] {
    return this.attempt((part) => part.items()) ?? []
  }

  /** A number, also as a text. Something else is left out. */
  numberOrNone(): number | undefined {
    return this.attempt((part) => part.optionalNumber())
  }

  /** A text, as `text` reads it. Something else is left out. */
  textOrNone(): string | undefined {
    return this.attempt((part) => part.optionalText())
  }

  /** The members of an object in their order; none when it is absent. */
  entries(): [string, Part][] {
    return [...this.#entries().keys()].map((key) => [key, this.get(key)])
  }

  /** The items of a list; none when it is absent. */
  items(): Part[] {
    if (this.isAbsent) return []
    if (this.#value?.type !== 'list') throw this.error(`expected a list, got ${quoted(this.value)}`)
    return this.#value.items.map((item) => new Part(this.#source, item.at, item))
  }

  /** A text. Numbers and booleans are texts, too, as they are written: YAML reads them where a text was meant. */
  text(): string {
    if (this.isAbsent) throw this.error('is missing, expected a string')
    if (this.#value?.type !== 'scalar') throw this.error(`expected a string, got ${quoted(this.value)}`)
    return typeof this.#value.value === 'string' ? this.#value.value : this.#value.source
  }

  optionalText(): string | undefined {
    return this.isAbsent ? undefined : this.text()
  }

  /** A number, also as a text. */
  optionalNumber(): number | undefined {
    const { value } = this
    if (this.isAbsent || value === '') return undefined
    const number = typeof value === 'string' ? Number(value) : value
    if (typeof number === 'number' && Number.isFinite(number)) return number
    throw this.error(`expected a number, got ${quoted(value)}`)
  }

  /** The position of its key, where it has one. */
  get at(): Position {
    return this.#at
  }

  /** Line and column. */
  get where(): string {
    return `${this.#at.line}:${this.#at.column}`
  }

  /** The error of this part: 400 with line, column and path. */
  error(message: string, code?: ErrorCode): LabFileError {
    return new LabFileError([{ ...this.#at, message }], code)
  }

  leaveOut(message: string | (() => string)): void {
    this.#source.leaveOut(this.#at, message)
  }

  /** Notes that the lab file has this part in another form. */
  change(message: string | (() => string)): void {
    this.#source.leaveOut(this.#at, message, 'changed')
  }

  /** A part with another value at the position of this one. */
  with(value: unknown): Part {
    return new Part(this.#source, this.#at, valueAt(value, this.#at))
  }

  /** Reads from this part on; undefined, and listed with the reason, when that fails. */
  attempt<T>(read: (part: this) => T): T | undefined {
    return this.#source.attempt(() => read(this))
  }

  /** Leaves out the members that were not read, by name: what is not known here must not vanish. */
  leaveOutUnread(message: (key: string) => string): void {
    if (this.#value?.type !== 'map') return
    for (const [name, { key }] of this.#value.entries)
      if (!this.#read.has(name)) this.#source.leaveOut(key, message(name))
  }

  #entries() {
    if (this.isAbsent) return new Map<string, never>()
    if (this.#value?.type === 'map') return this.#value.entries
    throw this.error(`expected an object, got ${quoted(this.value)}`)
  }
}

/** A value of JSON in the form of a document, all at the line and column of `at`. */
export function valueAt(value: unknown, at: Position): Value {
  const place = { at, range: [0, 0] as const }
  const below = (key: string | number): Position => ({ ...at, path: joined(at.path, key) })
  if (Array.isArray(value)) {
    const items = value.map((item, index) => valueAt(item, below(index)))
    return { ...place, type: 'list', items, isFlow: false }
  }
  if (value !== null && typeof value === 'object') {
    const entries = Object.entries(value).map(([name, member]) => {
      const key = below(name)
      return [name, { key, keyRange: [0, 0] as const, value: valueAt(member, key) }] as const
    })
    return { ...place, type: 'map', entries: new Map(entries), isFlow: false }
  }
  const scalar = (value ?? null) as string | number | boolean | null
  return { ...place, type: 'scalar', value: scalar, source: String(scalar ?? '') }
}

function plain(value: Value): unknown {
  if (value.type === 'scalar') return value.value
  if (value.type === 'list') return value.items.map(plain)
  return Object.fromEntries([...value.entries].map(([key, it]) => [key, plain(it.value)]))
}
