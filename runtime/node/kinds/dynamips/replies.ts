import { HypervisorError } from './hypervisor-error.ts'

/** What one command brought: the lines of its answer, and the text of the line that ended it. */
export interface DynamipsReply {
  readonly lines: readonly string[]
  readonly text: string
}

/** A line that dynamips sent: part of an answer, its end, or the end of a command that was refused. */
export type ReplyLine =
  | { readonly type: 'data'; readonly text: string }
  | { readonly type: 'done'; readonly text: string }
  | { readonly type: 'refused'; readonly text: string; readonly reply: number }

/** `101 text`, `100-text` or `206-text`, as dynamips ends it (CR LF) or not. Throws for anything else. */
export function parseReply(line: string): ReplyLine {
  const [, code = '', mark, text = ''] = /^([12]\d\d)([ -])(.*?)\r?$/s.exec(line) ?? []
  if (mark === undefined) throw new HypervisorError('protocol', `Dynamips said ${JSON.stringify(line.slice(0, 80))}`)
  if (code.startsWith('1')) return { type: mark === '-' ? 'done' : 'data', text }
  return { type: 'refused', text, reply: Number(code) }
}

/**
 * A command as it is sent. Values are quoted: dynamips would take what is after `#` or `!` for a comment. Nothing can be
 * escaped in its quotes, and it drops an empty value, so that those that follow would change places.
 */
export function commandText(command: string, values: readonly (string | number)[]): string {
  const quoted = values.map((value) => {
    if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    if (typeof value === 'string' && /^[^"\u0000-\u001f\u007f]+$/.test(value)) return `"${value}"`
    throw new HypervisorError('protocol', `${command}: dynamips cannot be told ${JSON.stringify(value).slice(0, 120)}`)
  })
  return [command, ...quoted].join(' ')
}
