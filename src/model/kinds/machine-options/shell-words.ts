import { badRequest } from '../../../lib/errors/api-error.ts'

/**
 * Splits a text into words as a POSIX shell does, with quotes and backslashes, but without variables, commands and patterns. 400
 * for a quote or backslash without an end; `where` is the name of the field.
 */
export function shellWords(text: string, where: string): string[] {
  const words: string[] = []
  // Undefined between words, because '' is a word.
  let word: string | undefined
  let quote = ''
  for (let index = 0; index < text.length; index++) {
    const char = text[index] ?? ''
    const next = text[index + 1]
    if (quote === "'") {
      if (char === quote) quote = ''
      else word += char
    } else if (char === '\\') {
      if (next === undefined) throw badRequest(`${where}: a backslash at the end, expected a character after it`)
      // In double quotes a backslash is literal before most characters. A backslash and a newline are removed.
      const isKept = quote === '"' && !'$`"\\\n'.includes(next)
      word = (word ?? '') + (isKept ? char : '') + (next === '\n' ? '' : next)
      index++
    } else if (quote === '"') {
      if (char === quote) quote = ''
      else word += char
    } else if (char === '"' || char === "'") {
      quote = char
      word ??= ''
    } else if (/[ \t\r\n]/.test(char)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? '') + char
  }
  if (quote !== '') throw badRequest(`${where}: the quote ${quote} is not closed`)
  return word === undefined ? words : [...words, word]
}
