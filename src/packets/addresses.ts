const hexBytes: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Six bytes as `02:00:00:00:00:01`. */
export const macText = (bytes: Uint8Array, at: number): string =>
  `${byteText(bytes, at)}:${byteText(bytes, at + 1)}:${byteText(bytes, at + 2)}:${byteText(bytes, at + 3)}:${byteText(bytes, at + 4)}:${byteText(bytes, at + 5)}`

/** Four bytes as `10.0.0.1`. */
export const ip4Text = (bytes: Uint8Array, at: number): string =>
  `${bytes[at]}.${bytes[at + 1]}.${bytes[at + 2]}.${bytes[at + 3]}`

/** Sixteen bytes as RFC 5952 writes them: the first of the longest runs of zeros is shortened. */
export function ip6Text(bytes: Uint8Array, at: number): string {
  let start = -1
  let length = 1
  for (let from = 0; from < 8; ) {
    let to = from
    while (to < 8 && bytes[at + to * 2] === 0 && bytes[at + to * 2 + 1] === 0) to++
    if (to - from > length) {
      start = from
      length = to - from
    }
    from = to + 1
  }
  let text = ''
  for (let word = 0; word < 8; word++) {
    if (word === start) {
      text += '::'
      word += length - 1
    } else {
      if (word > 0 && word !== start + length) text += ':'
      text += (((bytes[at + word * 2] as number) << 8) | (bytes[at + word * 2 + 1] as number)).toString(16)
    }
  }
  return text
}

/** Bytes as hexadecimal digits without blanks. */
export function hexText(bytes: Uint8Array, from: number, to: number): string {
  let text = ''
  for (let at = from; at < to; at++) text += byteText(bytes, at)
  return text
}

const byteText = (bytes: Uint8Array, at: number): string => hexBytes[bytes[at] as number] as string

const utf8 = new TextDecoder()

/** Bytes as UTF-8 on one line; what has no shape on a terminal is shown as Wireshark shows it: escaped. */
export const printable = (bytes: Uint8Array, from: number, to: number): string =>
  escaped(utf8.decode(bytes.subarray(from, to)))

const escapes: Readonly<Record<string, string>> = { '\r': '\\r', '\n': '\\n', '\t': '\\t' }

/** Almost every text matches, and this test is much faster than one by Unicode classes. */
const isPlain = /^[\x20-\x7e]*$/

/** Text without characters that would move the cursor, colour a terminal or reverse the direction of writing. */
export const escaped = (text: string): string =>
  isPlain.test(text)
    ? text
    : text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
        const code = character.codePointAt(0) as number
        return (
          escapes[character] ?? (code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`)
        )
      })
