import { stripVTControlCharacters } from 'node:util'
import { badRequest } from '../../../../src/lib/errors/api-error.ts'
import type { ConsoleMatch } from '../../../../src/model/console.ts'
import type { EchoFilter } from './console-echo.ts'

/** Most output that is kept, and what of its end is shown, characters. */
const keptSize = 64 * 1024
const shownSize = 500
/** A search looks at so many new characters, and as many before them: a match of that length is always found. */
const pieceSize = 4096
/** Most instructions of a compiled expression. With `pieceSize` a search takes at most about 100 ms. */
const maxProgram = 500
/** Most of length times repetitions: the compiler unrolls `{n}`. */
const maxUnrolled = 20_000

/** A compiled regular expression. */
interface Expression {
  matcher(text: string): {
    find(start: number): boolean
    start(): number
    end(): number
    group(group?: number): string | null
    groupCount(): number
  }
}

/**
 * Compiles an expression of a client, with `^` and `$` at lines. RE2 needs time linear in the text, unlike RegExp, which a client
 * could make take for ever. 400.
 */
export async function compiled(field: string, source: string): Promise<Expression> {
  let repeats = 1
  for (const [, least = '', most] of source.matchAll(/\{(\d+),?(\d*)\}/g)) repeats += Number(most || least)
  if (repeats * source.length > maxUnrolled) throw tooLarge(field)
  // 260 KB that a service without such requests does not need.
  const { RE2JS } = await import('re2js')
  try {
    const expression = RE2JS.compile(source, RE2JS.MULTILINE)
    if (expression.programSize() > maxProgram) throw tooLarge(field)
    return expression as unknown as Expression
  } catch (error) {
    if (!(error instanceof Error) || error.name === 'ApiError') throw error
    throw badRequest(`${field}: not a regular expression of RE2: ${error.message}`, { cause: error })
  }
}

const tooLarge = (field: string) => badRequest(`${field}: the expression is too large: use smaller repetitions`)

/** Most characters of an escape sequence that waits for its end. */
const longestEscape = 64

/** The output of a console as text without escape sequences, CR and NUL, and the search for an expression in it. */
export class ConsoleSearch {
  readonly #expression: Expression | undefined
  readonly #echo: EchoFilter | undefined
  readonly #decoder = new TextDecoder()
  #text = ''
  /** The end of the output, with echoes. */
  #shown = ''
  /** An escape sequence whose end is still to come. */
  #begun = ''
  /** Where the output begins that was not searched yet. */
  #searched = 0

  /** Without an expression nothing matches. `echo`: takes out what is no output. */
  constructor(expression: Expression | undefined, echo?: EchoFilter) {
    this.#expression = expression
    this.#echo = echo
  }

  push(bytes: Uint8Array): void {
    const text = this.#begun + plain(this.#decoder.decode(bytes, { stream: true }))
    const cut = unfinishedAt(text)
    this.#begun = text.slice(cut)
    const shown = stripVTControlCharacters(text.slice(0, cut))
    this.#shown = (this.#shown + shown).slice(-shownSize)
    this.#text += this.#echo?.push(shown) ?? shown
    const surplus = this.#text.length - keptSize
    if (surplus <= 0) return
    this.#text = this.#text.slice(surplus)
    this.#searched = Math.max(0, this.#searched - surplus)
  }

  get isSearched(): boolean {
    return this.#expression === undefined || this.#searched === this.#text.length
  }

  /** Searches the next piece. */
  next(): ConsoleMatch | undefined {
    if (this.#expression === undefined) return undefined
    const begin = Math.max(0, this.#searched - pieceSize)
    const end = Math.min(this.#text.length, this.#searched + pieceSize)
    // `^` and `\b` need the character before it.
    const offset = Math.max(0, begin - 1)
    const piece = this.#text.slice(offset, end)
    const found = this.#expression.matcher(piece)
    this.#searched = end
    if (!found.find(begin - offset)) return undefined
    // What follows may belong to the match.
    if (found.end() === piece.length && end < this.#text.length) return undefined
    const groups = Array.from({ length: found.groupCount() }, (_, index) => found.group(index + 1) ?? null)
    return { matched: found.group() ?? '', before: this.#text.slice(0, offset + found.start()), groups }
  }

  /** The output, when nothing of it matches and no more comes. */
  get unmatched(): ConsoleMatch {
    const output = this.#text + (this.#echo?.held ?? '')
    return { matched: '', before: output.slice(-keptSize), groups: [] }
  }

  /** The last lines, for a message. */
  get tail(): string {
    return this.#shown.split('\n').slice(-5).join('\n').trim()
  }
}

/** Text of a terminal without what programs that read lines stumble over. */
const plain = (text: string): string => text.replaceAll('\r', '').replaceAll('\0', '')

/** Where an escape sequence begins whose end is still to come (ECMA-48: parameters, then one final character); else the end of the text. */
function unfinishedAt(text: string): number {
  const at = text.lastIndexOf('\u001b')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence begins by one
  const isOpen = at >= 0 && text.length - at <= longestEscape && /^\u001b[[\]()#;?\d]*$/.test(text.slice(at))
  return isOpen ? at : text.length
}
