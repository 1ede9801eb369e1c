/** The lines of an answer, and the text of its last line. */
export type DynamipsReply = { readonly lines: readonly string[]; readonly text: string }

/**
 * `unreachable`: no connection; `timeout`: no answer in time; `refused`: dynamips answered with an error; `closed`: dynamips ended,
 * or the client was closed; `aborted`: the caller cancelled; `protocol`: the answer is not of the protocol, or the command cannot
 * be written in it.
 */
type HypervisorErrorCode = 'unreachable' | 'timeout' | 'refused' | 'closed' | 'aborted' | 'protocol'

/** A failed command or connection. */
export class HypervisorError extends Error {
  override readonly name = 'HypervisorError'
  readonly code: HypervisorErrorCode
  /** The error number of dynamips, such as 208 (unknown object). */
  readonly reply: number | undefined

  constructor(code: HypervisorErrorCode, message: string, options: ErrorOptions & { reply?: number } = {}) {
    super(message, options)
    this.code = code
    this.reply = options.reply
  }
}

type ReplyLine =
  | { readonly type: 'data'; readonly text: string }
  | { readonly type: 'done'; readonly text: string }
  | { readonly type: 'refused'; readonly text: string; readonly reply: number }

/**
 * Parses a line: `101 text` is data, `100-text` ends the answer, `206-text` is an error (README.hypervisor of dynamips). A CR at
 * the end is dropped. Throws on other text.
 */
export function parseReply(line: string): ReplyLine {
  const [, code = '', mark, text = ''] = /^([12]\d\d)([ -])(.*?)\r?$/s.exec(line) ?? []
  if (mark === undefined) throw new HypervisorError('protocol', `Dynamips sent ${JSON.stringify(line.slice(0, 80))}`)
  if (code.startsWith('1')) return { type: mark === '-' ? 'done' : 'data', text }
  return { type: 'refused', text, reply: Number(code) }
}

/**
 * The text of a command. Values are quoted, because `#` and `!` begin a comment. The protocol has no escapes, and drops empty
 * values, so both are refused.
 */
export function commandText(command: string, values: readonly (string | number)[]): string {
  const quoted = values.map((value) => {
    if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are refused
    if (typeof value === 'string' && /^[^"\u0000-\u001f\u007f]+$/.test(value)) return `"${value}"`
    throw new HypervisorError('protocol', `${command}: dynamips does not accept ${JSON.stringify(value).slice(0, 120)}`)
  })
  return [command, ...quoted].join(' ')
}
