/** A key as RFB sends it: its symbol (RFC 6143, 7.5.4) and its position on the keyboard (`code` of KeyboardEvent). */
export interface Keystroke {
  readonly keysym: number
  readonly code: string
  readonly isShifted: boolean
}

/** The keys with two characters of a US keyboard, the default of guests. */
const pairs: readonly (readonly [code: string, plain: string, shifted: string])[] = [
  ...[...'1234567890'].map((it, index) => [`Digit${it}`, it, '!@#$%^&*()'.charAt(index)] as const),
  ...[...'abcdefghijklmnopqrstuvwxyz'].map((it) => [`Key${it.toUpperCase()}`, it, it.toUpperCase()] as const),
  ...[['Minus', '-', '_'] as const, ['Equal', '=', '+'] as const, ['Backquote', '`', '~'] as const],
  ...[['BracketLeft', '[', '{'] as const, ['BracketRight', ']', '}'] as const, ['Backslash', '\\', '|'] as const],
  ...[['Semicolon', ';', ':'] as const, ['Quote', "'", '"'] as const, ['Comma', ',', '<'] as const],
  ...[['Period', '.', '>'] as const, ['Slash', '/', '?'] as const, ['Space', ' ', ' '] as const],
]
/** Control characters that are keys, with the symbols of X11 (keysymdef.h). */
const controls: Readonly<Record<string, readonly [code: string, keysym: number]>> = {
  '\b': ['Backspace', 0xff08],
  '\x7f': ['Backspace', 0xff08],
  '\t': ['Tab', 0xff09],
  '\r': ['Enter', 0xff0d],
  '\n': ['Enter', 0xff0d],
  '\x1b': ['Escape', 0xff1b],
}
const keys = new Map<string, Omit<Keystroke, 'keysym'>>(
  pairs.flatMap(([code, plain, shifted]) => [
    [shifted, { code, isShifted: true }] as const,
    [plain, { code, isShifted: false }] as const,
  ]),
)

/** The keys that type a text. Other characters than those of a US keyboard are sent by their symbol alone. */
export function keystrokesOf(text: string): Keystroke[] {
  return [...text.replaceAll('\r\n', '\n')].map((character) => {
    const [code, keysym] = controls[character] ?? []
    if (code !== undefined && keysym !== undefined) return { code, keysym, isShifted: false }
    const point = character.codePointAt(0) ?? 0
    // Characters of Latin-1 are their own symbols, others have an offset (X11 protocol, appendix A).
    const symbol = point < 0x100 ? point : 0x1000000 + point
    return { keysym: symbol, ...(keys.get(character) ?? { code: 'Unidentified', isShifted: false }) }
  })
}
