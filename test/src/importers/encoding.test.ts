import { expect, test } from 'vitest'
import { decodedText } from '../../../src/importers/encoding.ts'

const text = 'name: hö\n'
const utf16 = (isBig: boolean, mark: string): Uint8Array => {
  const bytes = Buffer.from(mark + text, 'utf16le')
  return isBig ? bytes.swap16() : bytes
}
const saysUtf16 = 'it is in UTF-16, and was read as such'

test.each([
  ['UTF-8', Buffer.from(text), undefined],
  ['UTF-8 with a byte order mark', Buffer.from(`\ufeff${text}`), undefined],
  ['UTF-16LE with a byte order mark', utf16(false, '\ufeff'), saysUtf16],
  ['UTF-16BE with a byte order mark', utf16(true, '\ufeff'), saysUtf16],
  ['UTF-16LE', utf16(false, ''), saysUtf16],
  ['UTF-16BE', utf16(true, ''), saysUtf16],
  [
    'Latin-1',
    Buffer.from(text, 'latin1'),
    'it is not in UTF-8, and was read as Windows-1252 (Latin-1): if characters are wrong, save it in UTF-8 and import it again',
  ],
])('a file in %s is decoded, and it is said when it is not in UTF-8', (_, bytes, note) => {
  expect(decodedText(bytes)).toEqual({ text, ...(note !== undefined && { note }) })
})

test('an empty file is an empty text', () => {
  expect(decodedText(new Uint8Array())).toEqual({ text: '' })
})
