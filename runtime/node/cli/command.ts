/** A command of the program: a row of the table in `../commands.ts`, from which help is made. */
export interface Command {
  /** What follows the name, as `[--json] [flags]`. */
  readonly usage: string
  /** One line for the list of commands. */
  readonly summary: string
  /** What it does, for its own help. */
  readonly text: string
  /** Whether it takes the settings as flags, which its help lists. */
  readonly takesSettings?: boolean
  /** Resolves with the exit code. What a command needs is loaded by it: a terminal must not wait for the modules of the service. */
  run(argv: string[]): Promise<number>
}
