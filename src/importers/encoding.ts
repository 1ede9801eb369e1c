/** A file as text, and what was assumed of its encoding. */
export interface DecodedText {
  readonly text: string
  /** For the user: what was read in place of UTF-8. */
  readonly note?: string
}

const utf16 = 'it is in UTF-16, and was read as such'
const latin1 =
  'it is not in UTF-8, and was read as Windows-1252 (Latin-1): if characters are wrong, save it in UTF-8 and import it again'

/**
 * Decodes a file by its byte order mark, or by the zero bytes that UTF-16 has in place of it (YAML 1.2, 5.2). A text without both is UTF-8,
 * or else Windows-1252, which has a character for each byte.
 */
export function decodedText(bytes: Uint8Array): DecodedText {
  const [first, second] = bytes
  const decode = (encoding: string) => new TextDecoder(encoding).decode(bytes)
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0))
    return { text: decode('utf-16le'), note: utf16 }
  if ((first === 0xfe && second === 0xff) || (first === 0 && second !== 0))
    return { text: decode('utf-16be'), note: utf16 }
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch {
    return { text: decode('windows-1252'), note: latin1 }
  }
}
