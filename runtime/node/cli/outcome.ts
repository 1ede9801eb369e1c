import type { ExitCode } from './exits.ts'

/** What a command has to show: with `--json` as one object, else as text. */
export interface CommandOutcome {
  /** Default: 0. */
  readonly exit?: ExitCode
  /** The members of the object besides `ok` and `exit`. */
  readonly json: Readonly<Record<string, unknown>>
  /** The text is that of a guest or a file: it is not broken into lines for the terminal. */
  readonly isVerbatim?: true
  /** Without the last line break; empty: nothing is printed. */
  text(): string | Promise<string>
}
