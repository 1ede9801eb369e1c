import { nearest } from '../../../src/lib/text/nearest-word.ts'
import type { CommandDiagnostic } from './json-outputs.ts'

/** The exit codes of all commands. */
export const exits = {
  done: 0,
  /** Tried, and failed. */
  failed: 1,
  /** There is a difference, and the command was asked to report it by its exit code. */
  differs: 2,
  /** The file, or a file that it names, is wrong, or the lab is another user's: nothing was tried. */
  wrong: 3,
  /** Done, but for steps that need a flag. */
  withheld: 4,
  /** There is no service, it does not let the client in, or the connection was lost. */
  noService: 5,
  /** A lab file has no checks: nothing was tested. */
  unchecked: 6,
  /** Done, but for nodes that cannot run: they are placeholders. */
  partial: 7,
  arguments: 64,
  interrupted: 130,
} as const
export type ExitCode = (typeof exits)[keyof typeof exits]

/** Ends a command with an exit code and messages for the user. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exit: ExitCode
  readonly diagnostics: readonly CommandDiagnostic[]

  constructor(exit: ExitCode, diagnostics: string | readonly CommandDiagnostic[], options?: ErrorOptions) {
    const list = typeof diagnostics === 'string' ? [{ message: diagnostics }] : diagnostics
    super(list[0]?.message ?? '', options)
    this.exit = exit
    this.diagnostics = list
  }
}

/** There is no such thing; the hint is the nearest of the `known` names, or `otherwise`. */
export function notFound(message: string, word: string, known: readonly string[], otherwise: string): CommandError {
  const guess = nearest(word, known)
  return new CommandError(exits.failed, [{ message, hint: guess === undefined ? otherwise : `did you mean ${guess}?` }])
}

/** Wrong arguments; `hint` says what would be right. */
export const wrongArguments = (message: string, hint?: string): CommandError =>
  new CommandError(exits.arguments, [{ message, ...(hint !== undefined && { hint }) }])
