import { escapeUnsafe } from '../lib/text/escape.ts'
import { nearest } from '../lib/text/nearest-word.ts'
import type { LabFileDiagnostic, Position } from './position.ts'

/** Most diagnostics that are reported for one file. */
export const maxDiagnostics = 20
/** Diagnostics after which the reading ends: a hostile file has half a million. */
const maxCollected = 200
/** Longest path of a diagnostic, characters: a key of YAML may have a megabyte. */
const maxPath = 300
/** Thrown when a file has that many. */
export const enough = Symbol('enough diagnostics')

/** How to correct something. A function is called for diagnostics that are reported alone: to look for a near word takes time. */
export type Hint = string | (() => string | undefined)

/** Collects what is wrong in one lab file. */
export class Diagnostics {
  readonly #found = new Map<string, { readonly diagnostic: LabFileDiagnostic; readonly hint: Hint | undefined }>()
  #count = 0

  get isEmpty(): boolean {
    return this.#found.size === 0
  }

  /** How many were added, those that are there already among them. */
  get count(): number {
    return this.#count
  }

  /** A diagnostic at a position that has one already with the same words is dropped: templates and aliases are read more than once. */
  add({ line, column, path }: Position, message: string, hint?: Hint): void {
    this.#count++
    const key = `${line}:${column}:${message}`
    if (this.#found.has(key)) return
    this.#found.set(key, {
      diagnostic: { line, column, path: escapeUnsafe(cut(path, maxPath)), message: escapeUnsafe(message) },
      hint,
    })
    if (this.#found.size > maxCollected) throw enough
  }

  /** All that were found, in the order of the file; the first 20 have their hints. */
  list(): LabFileDiagnostic[] {
    const hints = new Map([...this.#found.values()].map(({ diagnostic, hint }) => [diagnostic, hint]))
    return inOrder([...hints.keys()]).map((diagnostic, index) => {
      const hint = index < maxDiagnostics ? hints.get(diagnostic) : undefined
      const said = typeof hint === 'function' ? hint() : hint
      return said === undefined ? diagnostic : { ...diagnostic, hint: escapeUnsafe(said) }
    })
  }
}

/** Faults in the order of the file. */
export const inOrder = (diagnostics: readonly LabFileDiagnostic[]): LabFileDiagnostic[] =>
  diagnostics.toSorted((a, b) => a.line - b.line || a.column - b.column)

/** `and 13 more`: the diagnostics that are not reported. */
export const moreDiagnostics = (count: number): string =>
  count > maxCollected - maxDiagnostics ? `and at least ${count} more` : `and ${count} more`

/** `did you mean "image"?`, or the right words when none is near. */
export function didYouMean(word: string, known: readonly string[]): string | undefined {
  const guess = nearest(word, known)
  if (guess !== undefined) return `did you mean ${JSON.stringify(guess)}?`
  if (known.length === 0) return undefined
  return `expected ${known.length > 1 ? 'one of ' : ''}${known.slice(0, 40).join(', ')}${known.length > 40 ? ' …' : ''}`
}

/** A text of the file for a message: quoted, and not longer than a line. */
export const quoted = (text: string): string => JSON.stringify(cut(text, 80))

const cut = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 3)}...` : text)
