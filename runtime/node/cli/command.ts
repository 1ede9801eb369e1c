/** A command of the program: a row of the table in `../commands.ts`. Help is made from the table. */
export interface Command {
  /** The arguments after the name, as `[--json] [flags]`. */
  readonly usage: string
  /** One line for the list of commands. */
  readonly summary: string
  /** What it does, for its own help. */
  readonly text: string
  /** Whether the settings are flags of the command; its help then lists them. */
  readonly takesSettings?: boolean
  /** Resolves with the exit code. A command imports its modules when it runs: help must not wait for the modules of the service. */
  run(argv: string[]): Promise<number>
}
