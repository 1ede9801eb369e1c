import { notInLine } from './one-line.ts'

const unsafe = new RegExp(`[${notInLine}]`, 'g')
const unsafeInText = new RegExp(`(?![\\n\\t])[${notInLine}]`, 'g')
const escaped = (it: string): string => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`

/**
 * A text of a user for a terminal or a message: what is not part of one line of text is escaped, as a terminal would obey it or turn the
 * direction of text.
 */
export const escapeUnsafe = (text: string): string => text.replace(unsafe, escaped)

/** The same for a text of several lines, which stay lines. */
export const escapeUnsafeLines = (text: string): string => text.split('\n').map(escapeUnsafe).join('\n')

/** The same for a text of a program: tabs stay, too. */
export const escapeUnsafeText = (text: string): string => text.replace(unsafeInText, escaped)

/** A text with U+FFFD for each half of a surrogate pair, which JSON can contain: they have no UTF-8, and a URL takes none. */
export const wellFormed = (text: string): string => text.replace(/\p{Surrogate}/gu, '\ufffd')

/** The longest path of a file (PATH_MAX, limits.h of Linux). */
const maxPath = 4096

/** The path or the name of a file for a message: whole, as a reader needs its end. What is longer than any path is cut. */
export const quotedPath = (path: string): string =>
  JSON.stringify(path.length > maxPath ? `${path.slice(0, maxPath)}...` : path)
