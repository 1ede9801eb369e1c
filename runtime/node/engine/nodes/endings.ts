import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { KeeperError } from '../../keeper/protocol/error.ts'
import type { Exit } from '../../keeper/protocol/protocol.ts'

/** Exit code or signal of an ended program, and its last words. */
export const describeExit = ({ code, signal, last_words }: Exit): string =>
  `(${signal === null ? `exit code ${code}` : `signal ${signal}`})${last(last_words)}`

/** The error of a failed start for the client. `exit` is set when the program ended by itself; `hint` is then added. */
export function failureOf(error: Error, exit: Exit | null, hint: string | undefined): Error {
  if (exit !== null) return conflict(`The program ended at once ${describeExit(exit)}${hinted(hint)}`, { cause: error })
  return error instanceof KeeperError ? conflict(error.message, { cause: error }) : error
}

/** The hint as the end of a sentence. */
export const hinted = (hint: string | undefined): string => (hint === undefined ? '' : `; ${hint}`)

/** The last lines of a program's output. */
function last(words: string): string {
  const lines = words.split('\n').filter((line) => line.trim() !== '')
  return lines.length === 0 ? '' : `: ${lines.slice(-3).join(' / ').slice(-500)}`
}
