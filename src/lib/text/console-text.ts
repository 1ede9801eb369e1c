import { escapeUnsafeText } from './escape.ts'

/** Characters that begin a control sequence or string (ECMA-48, 5.4 and 5.6), by ESC or as one character of C1. */
const beginnings = ['\u001b', '\u0090', '\u0098', '\u009b', '\u009d', '\u009e', '\u009f']
const sequence =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\u0007\u001b\u009c\n]*(?:\u0007|\u001b\\|\u009c)|\u001b(?![[\]PX^_])[ -/]*[0-~]/
const sequences = new RegExp(sequence, 'g')
const wholeSequence = new RegExp(`^(?:${sequence.source})`)
/** Control characters but line feeds and tabs. */
const controls = /[^\P{Cc}\n\t]/gu
/** Most characters of a sequence that waits for its end. */
const longestSequence = 256

/** Output of a console as text for any terminal: without control sequences and characters; what turns the direction of text is escaped. */
export const consoleText = (output: string): string =>
  escapeUnsafeText(output.replace(sequences, '').replace(controls, ''))

/** The same for output that comes in pieces. */
export class ConsoleText {
  readonly #decoder = new TextDecoder()
  /** A sequence whose end is still to come. */
  #begun = ''

  push(bytes: Uint8Array): string {
    const output = this.#begun + this.#decoder.decode(bytes, { stream: true })
    const at = Math.max(...beginnings.map((it) => output.lastIndexOf(it)))
    const isOpen = at >= 0 && output.length - at <= longestSequence && !wholeSequence.test(output.slice(at))
    const end = isOpen ? at : output.length
    this.#begun = output.slice(end)
    return consoleText(output.slice(0, end))
  }
}
