import type { PcFiles } from '../stack/directory-files.ts'
import type { Net } from '../stack/net.ts'

/** The pc as commands see it. */
export interface CommandHost {
  readonly net: Net
  readonly files: PcFiles
  readonly history: readonly string[]
  /** The name in the prompt. */
  name: string
  /** `set echo`: whether the lines of scripts are shown before they run. */
  isEchoing: boolean
  lport: number
  rhost: string
  rport: number
  /** Writes text to the console unchanged; lines must end with CR LF. */
  readonly print: (text: string) => void
  readonly quit: () => void
  /** Runs the lines of a script as typed input. */
  readonly script: (text: string) => Promise<void>
  readonly clearHistory: () => void
}

export interface ConsoleCommand {
  readonly name: string
  /** Arguments in short, for the list of commands. */
  readonly usage: string
  readonly help: string
  /** More lines for `name ?`. */
  readonly details?: readonly string[]
  /** Resolves when the command has ended. `signal` aborts on Ctrl-C and at the end of the pc. */
  run(machine: CommandHost, words: readonly string[], signal: AbortSignal): Promise<void> | void
}
