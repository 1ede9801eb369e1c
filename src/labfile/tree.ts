import {
  Composer,
  type CST,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  type ParsedNode,
  Parser,
} from 'yaml'
import { halfPairIn } from '../lib/http/whole-pairs.ts'
import { wellFormed } from '../lib/text/escape.ts'
import type { Diagnostics } from './diagnostics.ts'
import { quoted } from './diagnostics.ts'
import type { Position } from './position.ts'
import type { Entry, Value } from './values.ts'

/** Largest lab file, bytes of UTF-8. */
const maxBytes = 1 << 20
/** Deepest nesting of maps and lists. */
const maxDepth = 64
const maxAliases = 100
/** Tokens in the wrong position, after which the reading ends. */
const maxWrong = 100
/** Most tokens: names, texts, signs, line ends. A lab with as much as a lab may have needs half of them. */
const maxTokens = 600_000
/** Most values, with those that aliases repeat. */
export const maxValues = 200_000
/** Characters of a line that are looked at before and after a fault. */
const maxLine = 200

/** `nodes` and `R1` become `nodes.R1`. */
export function joined(path: string, key: string | number): string {
  if (typeof key === 'number') return `${path}[${key}]`
  if (!/^[^\s.[\]"]+$/.test(key)) return `${path}[${quoted(key)}]`
  return path === '' ? key : `${path}.${key}`
}

/** Gets what a lab file must not have, where it is ignored or read as YAML 1.1 does. */
export type ForeignNote = (at: Position, message: string) => void

/**
 * The values of a YAML document. Undefined when it is not one; `diagnostics` has the reasons. With `foreign` the text is of another program,
 * and read as its reader does: with the merge key `<<` of YAML 1.1, tags and directives, the first one of several documents, and the
 * last one of equal keys.
 */
export function treeOf(text: string, diagnostics: Diagnostics, foreign?: ForeignNote): Value | undefined {
  const start: Position = { line: 1, column: 1, path: '' }
  if (text.length > maxBytes || new TextEncoder().encode(text).length > maxBytes) {
    diagnostics.add(start, `the file has more than ${maxBytes >> 20} MiB`)
    return undefined
  }
  const lines = new LineCounter()
  const positionAt = (offset: number, path: string): Position => {
    const { line, col } = lines.linePos(offset)
    return { line, column: Math.max(1, line === 1 && text.startsWith('\ufeff') ? col - 1 : col), path }
  }
  const tokens = tokensOf(text, lines)
  if (!Array.isArray(tokens)) {
    diagnostics.add(positionAt(tokens.end, ''), tokens.because)
    return undefined
  }
  // Keys are compared here: the library compares each with all before it.
  const composer = new Composer({
    version: '1.2',
    schema: 'core',
    merge: false,
    uniqueKeys: false,
    prettyErrors: false,
  })
  const [document, second] = withoutStacks(() => firstTwo(composer.compose(tokens, true, text.length)))
  if (document === undefined) return undefined
  if (second !== undefined && foreign !== undefined)
    foreign(positionAt(second.range[0], ''), 'a second document begins here, and is not imported')
  else if (second !== undefined)
    diagnostics.add(positionAt(second.range[0], ''), 'a second document begins here', 'a lab file has one document')
  const { yaml, tags } = document.directives
  if (foreign === undefined && (yaml.explicit === true || Object.keys(tags).length > 1))
    diagnostics.add(start, 'directives (lines that begin with %) are not allowed', 'a lab file is YAML 1.2')
  for (const { pos, message } of document.errors)
    diagnostics.add(positionAt(pos[0], ''), message, () => hintAt(text, pos[0]))
  if (!diagnostics.isEmpty) return undefined
  const value = new Builder(diagnostics, positionAt, foreign).build(document.contents)
  return diagnostics.isEmpty ? value : undefined
}

/**
 * Runs a function whose errors need no stack: the library makes one for each fault, and half a million stacks of a hostile file would
 * take ten times as long. Only V8 has the limit; elsewhere this changes nothing.
 */
function withoutStacks<T>(run: () => T): T {
  const limits = Error as unknown as { stackTraceLimit?: number }
  const { stackTraceLimit } = limits
  limits.stackTraceLimit = 0
  try {
    return run()
  } finally {
    if (stackTraceLimit === undefined) delete limits.stackTraceLimit
    else limits.stackTraceLimit = stackTraceLimit
  }
}

function firstTwo<T>(items: Iterable<T>): T[] {
  const found: T[] = []
  for (const item of items) if (found.push(item) === 2) break
  return found
}

/** The tokens of the document; or where the reading ends, as the library would recurse too deep or work too long. */
function tokensOf(text: string, lines: LineCounter): CST.Token[] | { readonly end: number; readonly because: string } {
  lines.addNewLine(0)
  const parser = new Parser(lines.addNewLine)
  const tokens: CST.Token[] = []
  let wrong = 0
  let count = 0
  let isAfterSign = false
  for (const lexeme of new Lexer().lex(text)) {
    count += 1
    if (count > maxTokens) return { end: parser.offset, because: `the file has more than ${maxTokens} tokens of YAML` }
    // The library reports each item that is missing in `[,,` much later.
    if (lexeme === ',' && isAfterSign) wrong += 1
    if (lexeme.trim() !== '') isAfterSign = lexeme === ',' || lexeme === '[' || lexeme === '{'
    for (const token of parser.next(lexeme)) {
      tokens.push(token)
      if (token.type === 'error') wrong += 1
    }
    // After so many misplaced tokens the rest of the text has no meaning.
    if (wrong > maxWrong) break
    // The stack has the document, a token for each map and list, and a scalar.
    if (parser.stack.length > maxDepth + 2)
      return { end: parser.offset, because: `maps and lists are nested more than ${maxDepth} deep` }
  }
  for (const token of parser.end()) tokens.push(token)
  return tokens
}

/** `${` without quotes begins a map inside of `{ }` and `[ ]`: the message of the library does not say so. */
function hintAt(text: string, offset: number): string | undefined {
  const before = text.slice(Math.max(0, offset - maxLine), offset)
  const [after = ''] = text.slice(offset, offset + maxLine).split('\n', 1)
  const line = `${before.slice(before.lastIndexOf('\n') + 1)}${after}`
  return /[^"'$]\$\{/.test(line) ? `write a value with $\{...} in quotes inside { } and [ ]` : undefined
}

class Builder {
  readonly #diagnostics: Diagnostics
  readonly #position: (offset: number, path: string) => Position
  readonly #anchors = new Map<string, ParsedNode>()
  /** Nodes in which the builder is: an alias to one of them has no end. */
  readonly #open = new Set<ParsedNode>()
  readonly #foreign: ForeignNote | undefined
  #aliases = 0
  #values = 0

  constructor(
    diagnostics: Diagnostics,
    positionAt: (offset: number, path: string) => Position,
    foreign: ForeignNote | undefined,
  ) {
    this.#diagnostics = diagnostics
    this.#position = positionAt
    this.#foreign = foreign
  }

  build(node: ParsedNode | null): Value {
    try {
      return this.#value(node, '', undefined)
    } catch (error) {
      if (error !== tooLarge) throw error
      return { type: 'scalar', value: null, source: '', at: this.#position(0, ''), range: [0, 0] }
    }
  }

  #value(node: ParsedNode | null, path: string, through: readonly [number, number] | undefined): Value {
    const [start, end] = node?.range ?? [0, 0]
    const at = this.#position(start, path)
    this.#count(1, at)
    const located = {
      at,
      range: through ?? ([start, end] as const),
      ...(through !== undefined && { isBorrowed: true as const }),
    }
    if (node === null) return { ...located, type: 'scalar', value: null, source: '' }
    if (isAlias(node)) return this.#target(node.source, [start, end], path, through)
    if (node.tag !== undefined && this.#foreign === undefined)
      this.#diagnostics.add(at, `tags (here ${quoted(node.tag)}) are not allowed`)
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node)
    if (isScalar(node)) {
      const { source } = node
      const value = this.#foreign !== undefined && typeof node.value === 'string' ? wellFormed(node.value) : node.value
      const half = typeof value === 'string' ? halfPairIn(value) : undefined
      if (half !== undefined) this.#diagnostics.add(at, half)
      const isPlain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
      return { ...located, type: 'scalar', value: isPlain ? value : null, source: source ?? String(value ?? '') }
    }
    this.#open.add(node)
    try {
      if (isSeq(node)) {
        const items = node.items.map((item, index) => this.#value(item as ParsedNode, joined(path, index), through))
        return { ...located, type: 'list', items, isFlow: node.flow === true }
      }
      if (isMap(node))
        return {
          ...located,
          type: 'map',
          entries: this.#entries(node.items, path, through),
          isFlow: node.flow === true,
        }
      throw new Error('a node of YAML is a scalar, a list, a map or an alias')
    } finally {
      this.#open.delete(node)
    }
  }

  #count(values: number, at: Position): void {
    this.#values += values
    if (this.#values > maxValues) throw this.#end(at, `the file has more than ${maxValues} values`)
  }

  #entries(
    pairs: readonly { readonly key: unknown; readonly value: unknown }[],
    path: string,
    through: readonly [number, number] | undefined,
  ): Map<string, Entry> {
    const entries = new Map<string, Entry>()
    const merged: Value[] = []
    for (const pair of pairs) {
      const node = pair.key as (ParsedNode & Node) | null
      const range = node?.range ?? [0, 0, 0]
      const here = this.#position(range[0], path)
      const name = this.#keyOf(node, here)
      if (name === undefined) continue
      if (name === '<<' && this.#foreign !== undefined) {
        merged.push(this.#value(pair.value as ParsedNode | null, path, through))
        continue
      }
      const at = this.#position(range[0], joined(path, name))
      if (name === '<<') this.#diagnostics.add(here, 'the merge key << is not allowed', 'use `templates` and `is`')
      else if (node?.anchor !== undefined && this.#foreign === undefined)
        this.#diagnostics.add(here, 'a key must not have an anchor')
      else if (entries.has(name)) this.#addTwice(at, here, name)
      const value = this.#value(pair.value as ParsedNode | null, joined(path, name), through)
      // A key without a value has no node; its position is that of the key.
      const isMissing = pair.value === null
      entries.set(name, {
        key: at,
        keyRange: [range[0], range[1]],
        value: isMissing ? ({ ...value, at, range: [range[1], range[1]] } as Value) : value,
      })
    }
    // Own members win, then those of the first map (yaml.org/type/merge).
    for (const map of merged.flatMap((it) => (it.type === 'list' ? it.items : [it]))) {
      if (map.type === 'map') this.#count(map.entries.size, map.at)
      if (map.type !== 'map') this.#foreign?.(map.at, 'the merge key << has no map, and is ignored')
      else for (const [name, entry] of map.entries) if (!entries.has(name)) entries.set(name, entry)
    }
    return entries
  }

  /** The text of a key. Undefined, and noted, for one that is not a text. */
  #keyOf(node: (ParsedNode & Node) | null, here: Position): string | undefined {
    const source = isScalar(node) ? node?.source : undefined
    if (this.#foreign !== undefined) {
      if (source !== undefined) return wellFormed(source)
      this.#foreign(here, 'a key is not a string, and is not imported')
      return undefined
    }
    const half = source === undefined ? undefined : halfPairIn(source)
    if (source === undefined || source === '' || node?.tag !== undefined)
      this.#diagnostics.add(here, 'a key must be a string')
    else if (half !== undefined) this.#diagnostics.add(here, half)
    else return source
    return undefined
  }

  #addTwice(at: Position, here: Position, name: string): void {
    if (this.#foreign === undefined) this.#diagnostics.add(here, `the key ${quoted(name)} occurs twice`)
    else this.#foreign(at, 'the key occurs twice: the last one is used')
  }

  #target(
    anchor: string,
    range: readonly [number, number],
    path: string,
    through: readonly [number, number] | undefined,
  ): Value {
    const here = this.#position(range[0], path)
    const none: Value = { type: 'scalar', value: null, source: '', at: here, range }
    const found = this.#anchors.get(anchor)
    this.#aliases += 1
    if (this.#aliases > maxAliases) throw this.#end(here, `the file has more than ${maxAliases} aliases`)
    if (found !== undefined && !this.#open.has(found)) return this.#value(found, path, through ?? range)
    this.#diagnostics.add(
      here,
      found === undefined
        ? `there is no anchor ${quoted(anchor)} before this alias`
        : 'this alias names a value that contains it',
    )
    return none
  }

  #end(at: Position, message: string): unknown {
    this.#diagnostics.add(at, message)
    return tooLarge
  }
}

/** Thrown to end the building of a tree; its fault is in the list already. */
const tooLarge = Symbol('too large')
