import { badRequest } from '../../../../src/errors/api-error.ts'

/**
 * The words of a text as a POSIX shell would split them, with quotes and backslashes and nothing else: no variables, no
 * commands, no patterns. 400 when a quote or a backslash has no end; `where` names the field.
 */
export function shellWords(text: string, where: string): string[] {
  const words: string[] = []
  // undefined between words: '' is a word too.
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
      // Inside double quotes it stands for itself before what it has no meaning for; a line end vanishes with it.
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
  if (quote !== '') throw badRequest(`${where}: the quote ${quote} has no end`)
  return word === undefined ? words : [...words, word]
}
