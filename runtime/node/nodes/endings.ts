import { conflict } from '../../../src/errors/api-error.ts'
import { KeeperError } from '../keeper-protocol/error.ts'
import type { Exit } from '../keeper-protocol/protocol.ts'

/** What a program that ended told of it: how, and its last words. */
export const describeExit = ({ code, signal, last_words }: Exit): string =>
  `(${signal === null ? `exit code ${code}` : `signal ${signal}`})${last(last_words)}`

/** Why a start failed, as the client is told it; `exit` is set when the program ended by itself, `hint` may help then. */
export function failureOf(error: Error, exit: Exit | null, hint: string | undefined): Error {
  if (exit !== null) {
    return conflict(`The program ended at once ${describeExit(exit)}${hinted(hint)}`, { cause: error })
  }
  return error instanceof KeeperError ? conflict(error.message, { cause: error }) : error
}

/** What may help, at the end of a sentence. */
export const hinted = (hint: string | undefined): string => (hint === undefined ? '' : `; ${hint}`)

/** The last lines of what a program said. */
function last(words: string): string {
  const lines = words.split('\n').filter((line) => line.trim() !== '')
  return lines.length === 0 ? '' : `: ${lines.slice(-3).join(' / ').slice(-500)}`
}
