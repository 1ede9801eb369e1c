import {
  Composer,
  type CST,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  Parser,
} from 'yaml'
import { type ApiError, badRequest, tooLarge } from '../errors/api-error.ts'

/** The longest text in characters, the deepest nesting, and the most uses of anchors. */
const maxText = 4 << 20
const maxDepth = 64
const maxAliases = 100
const maxShown = 80

/** Members and indexes from the root of a document. */
export type Path = readonly (string | number)[]

/** Something of a foreign lab that the lab file does not have. */
export interface LeftOut {
  /** Where it is, as `topology.nodes.r1.binds`. */
  readonly path: string
  /** Both count from 1. */
  readonly line: number
  readonly column: number
  readonly message: string
}

/** A text of a foreign format, YAML or JSON, with the position of each of its parts. */
export class Source {
  readonly #document: Document
  readonly #lines: LineCounter
  readonly #leftOut: LeftOut[] = []
  readonly root: Part

  /** 400 with line and column when the text is not one YAML or JSON document, 413 when it is too long. */
  constructor(text: string) {
    if (text.length > maxText) throw tooLarge(`The file has ${text.length} characters, at most ${maxText} are read`)
    this.#lines = new LineCounter()
    const [document, ...more] = this.#parsed(text)
    if (document === undefined) throw badRequest('1:1: the file is empty')
    if (more.length > 0)
      throw badRequest(`${this.#at(more[0]?.range?.[0] ?? 0)}: a second document begins here, expected one`)
    const [error] = document.errors
    if (error !== undefined) throw badRequest(`${this.#at(error.pos[0])}: ${oneLine(error.message)}`)
    this.#document = document
    this.#requireSingleKeys(document.contents)
    this.root = new Part(this, [], this.#values(document))
  }

  get leftOut(): readonly LeftOut[] {
    return [...this.#leftOut].sort((a, b) => a.line - b.line || a.column - b.column)
  }

  /** Notes that something is not in the lab file. Each place and message once. */
  leaveOut(path: Path, message: string): void {
    const place = { path: pathText(path), ...this.#place(path), message }
    if (!this.#leftOut.some((it) => it.path === place.path && it.message === message)) this.#leftOut.push(place)
  }

  /** The error of a part: 400 with its line, column and path. */
  fault(path: Path, message: string): ApiError {
    const { line, column } = this.#place(path)
    return badRequest(`${line}:${column}: ${path.length === 0 ? '' : `${pathText(path)}: `}${message}`)
  }

  /** The documents of the text. Further in than `maxDepth` the library would recurse too deep. */
  #parsed(text: string): Document[] {
    this.#lines.addNewLine(0)
    const parser = new Parser(this.#lines.addNewLine)
    const tokens: CST.Token[] = []
    for (const lexeme of new Lexer().lex(text)) {
      for (const token of parser.next(lexeme)) tokens.push(token)
      // The stack has the document, a token for each map and list, and a scalar.
      if (parser.stack.length > maxDepth + 2) throw badRequest(`${this.#at(parser.offset)}: ${tooDeep}`)
    }
    for (const token of parser.end()) tokens.push(token)
    // Keys are compared here: the library compares each with all before it.
    return [...new Composer({ merge: true, uniqueKeys: false, prettyErrors: false }).compose(tokens)]
  }

  #values(document: Document): unknown {
    try {
      return document.toJS({ maxAliasCount: maxAliases })
    } catch (cause) {
      throw badRequest(`1:1: ${oneLine((cause as Error).message)}`, { cause: cause as Error })
    }
  }

  #requireSingleKeys(root: unknown): void {
    const open: unknown[] = [root]
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (isSeq(node)) open.push(...node.items.filter((it) => it !== null))
      if (!isMap(node)) continue
      const keys = new Set<string>()
      for (const { key, value } of node.items) {
        const name = String(isScalar(key) ? key.value : key)
        if (keys.has(name) && name !== '<<')
          throw badRequest(`${this.#at((key as Node).range?.[0] ?? 0)}: the key ${quoted(name)} is there twice`)
        keys.add(name)
        if (value !== null) open.push(value)
      }
    }
  }

  #at(offset: number): string {
    const { line, col } = this.#lines.linePos(offset)
    return `${line}:${col}`
  }

  /** The place of a part: of its key, where it has one. Of its parent, where it comes from a merge. */
  #place(path: Path): { line: number; column: number } {
    let node: unknown = this.#document.contents
    let offset = (node as Node | null)?.range?.[0] ?? 0
    for (const step of path) {
      if (isAlias(node)) node = node.resolve(this.#document)
      if (isMap(node)) {
        const pair = node.items.find(({ key }) => String(isScalar(key) ? key.value : key) === String(step))
        if (pair === undefined) break
        offset = (pair.key as Node).range?.[0] ?? offset
        node = pair.value
      } else if (isSeq(node)) {
        node = node.items[Number(step)]
        offset = (node as Node | undefined)?.range?.[0] ?? offset
      } else break
    }
    const { line, col } = this.#lines.linePos(offset)
    return { line, column: col }
  }
}

const tooDeep = `nested more than ${maxDepth} deep`
const oneLine = (text: string): string => text.split('\n')[0] ?? text

/** A path as people write it: `topology.links[0].endpoints`. */
const pathText = (path: Path): string =>
  path.map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`)).join('')

/** A value of a source as messages quote it, in one line. */
export function quoted(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > maxShown ? `${text.slice(0, maxShown)}...` : text
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** A part of a source: a value with its place. It remembers which of its members were read. */
export class Part {
  readonly value: unknown
  readonly path: Path
  readonly #source: Source
  readonly #read = new Set<string>()

  constructor(source: Source, path: Path, value: unknown) {
    this.#source = source
    this.path = path
    this.value = value
  }

  /** Absent, or null: both are "not set" in the formats that are read here. */
  get isAbsent(): boolean {
    return this.value === undefined || this.value === null
  }

  get isList(): boolean {
    return Array.isArray(this.value)
  }

  get isObject(): boolean {
    return isObject(this.value)
  }

  /** The member of an object, which may be absent. 400 when this is something else. */
  get(key: string): Part {
    this.#read.add(key)
    return new Part(
      this.#source,
      [...this.path, key],
      Object.hasOwn(this.#object(), key) ? this.#object()[key] : undefined,
    )
  }

  /** The members of an object in their order; none when it is absent. */
  entries(): [string, Part][] {
    return Object.keys(this.#object()).map((key) => [key, this.get(key)])
  }

  /** The items of a list; none when it is absent. */
  items(): Part[] {
    if (this.isAbsent) return []
    if (!Array.isArray(this.value)) throw this.fault(`expected a list, got ${quoted(this.value)}`)
    return this.value.map((item, index) => new Part(this.#source, [...this.path, index], item))
  }

  /** A text. Numbers and booleans are texts, too: YAML reads them where a text was meant. */
  text(): string {
    if (typeof this.value === 'string') return this.value
    if (typeof this.value === 'number' || typeof this.value === 'boolean') return String(this.value)
    throw this.fault(this.isAbsent ? 'is missing, expected a text' : `expected a text, got ${quoted(this.value)}`)
  }

  optionalText(): string | undefined {
    return this.isAbsent ? undefined : this.text()
  }

  /** A number, also as a text. */
  optionalNumber(): number | undefined {
    if (this.isAbsent || this.value === '') return undefined
    const number = typeof this.value === 'string' ? Number(this.value) : this.value
    if (typeof number === 'number' && Number.isFinite(number)) return number
    throw this.fault(`expected a number, got ${quoted(this.value)}`)
  }

  fault(message: string): ApiError {
    return this.#source.fault(this.path, message)
  }

  leaveOut(message: string): void {
    this.#source.leaveOut(this.path, message)
  }

  /** Leaves out the members that were not read, by name: what is not known here must not vanish. */
  leaveOutUnread(message: (key: string) => string): void {
    if (!this.isObject) return
    for (const key of Object.keys(this.#object()))
      if (!this.#read.has(key)) this.#source.leaveOut([...this.path, key], message(key))
  }

  #object(): Record<string, unknown> {
    if (this.isAbsent) return {}
    if (isObject(this.value)) return this.value
    throw this.fault(`expected an object, got ${quoted(this.value)}`)
  }
}
