/**
 * A text of a user for a terminal or a message: control characters, and those that change the direction of text (UAX 9), are escaped,
 * as a terminal would obey them.
 */
export const shown = (text: string): string =>
  text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is escaped
    /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** The same for a text of several lines, which stay lines. */
export const shownLines = (text: string): string => text.split('\n').map(shown).join('\n')

/** A text with U+FFFD for each half of a surrogate pair, which JSON can contain: they have no UTF-8, and a URL takes none. */
export const wellFormed = (text: string): string => text.replace(/\p{Surrogate}/gu, '\ufffd')
