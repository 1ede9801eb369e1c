import type { CommandOutcome } from './outcome.ts'

/** What a shell offers for a word: names that the service has, files, or a fixed list. */
export type Completion =
  | ('lab' | 'node' | 'link' | 'snapshot' | 'image')
  | ('compute' | 'token' | 'organization' | 'template' | 'class')
  | ('file' | 'command')

/** An argument of a command, by its position. */
export interface Argument {
  /** As help shows it, such as LAB. */
  readonly name: string
  readonly about: string
  readonly optional?: boolean
  /** The last one may be given several times. */
  readonly many?: boolean
  /** The words of a command of a node: after the first one those with one "-" belong to it, and after "--" all do. */
  readonly ofNode?: boolean
  readonly choices?: readonly string[]
  readonly complete?: Completion
}

/** A flag of a command, such as `--json`. */
export interface Flag {
  readonly about: string
  /** The word for its value in help, such as URL; absent: the flag has no value. */
  readonly value?: string
  readonly many?: boolean
  readonly short?: string
  readonly choices?: readonly string[]
  readonly complete?: Completion
}

/** The values of flags: `true` or `false`, a text or undefined, or a list of texts. */
export type FlagValues<F extends Readonly<Record<string, Flag>>> = {
  readonly [K in keyof F]: F[K] extends { readonly value: string }
    ? F[K] extends { readonly many: true }
      ? readonly string[]
      : string | undefined
    : boolean
}

/** What a command gets. */
export interface CommandInput<F extends Readonly<Record<string, Flag>> = Readonly<Record<never, Flag>>> {
  readonly args: readonly string[]
  readonly flags: FlagValues<F>
  /** The arguments as they were given, without a flag `--json` of the command. */
  readonly argv: readonly string[]
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal
}

export const groups = ['labs', 'nodes', 'links', 'files', 'service', 'fleet', 'program'] as const
type CommandGroup = (typeof groups)[number]

/** A command of the program: a row of the table in `./commands.ts`. Help, completion and the reference page are made from it. */
export interface Command {
  readonly group: CommandGroup
  /** One line for the list of commands. */
  readonly summary: string
  /** What it does, for its own help. */
  readonly text: string
  readonly args: readonly Argument[]
  readonly flags: Readonly<Record<string, Flag>>
  /** The settings are flags of the command, and it reads `argv` itself; its help then lists them (`list`) or names them (`named`). */
  readonly settings?: 'list' | 'named'
  /** Not in lists. */
  readonly hidden?: boolean
  /** Imports its modules when it runs: a command must not wait for the modules of others. Resolves with the exit code or the outcome. */
  run(input: CommandInput<Readonly<Record<string, Flag>>>): Promise<number | CommandOutcome>
}

/** A row of the table: infers the types of the flags for `run`, then forgets them so that rows fit in one table. */
export function command<const F extends Readonly<Record<string, Flag>>>(
  row: Omit<Command, 'args' | 'flags' | 'run'> & {
    readonly args?: readonly Argument[]
    readonly flags?: F
    run(input: CommandInput<F>): Promise<number | CommandOutcome>
  },
): Command {
  return { args: [], flags: {}, ...row } as unknown as Command
}

/** The flag of every command that shows something. */
export const outputFlags = {
  json: { about: 'print one JSON object' },
} as const satisfies Readonly<Record<string, Flag>>

/** The flags of every command that asks a service. */
export const serviceFlags = {
  server: {
    value: 'URL',
    about: 'service URL (default: $PATCHBAY_SERVER, then the saved login, then your local service)',
  },
  ...outputFlags,
} as const satisfies Readonly<Record<string, Flag>>
/** The flags of every command that shows lines of a log. */
export const logging = {
  follow: { short: 'f', about: 'show new lines until Ctrl-C' },
  lines: { value: 'NUMBER', about: 'number of last lines to show (default: 50)' },
  ...outputFlags,
} as const satisfies Readonly<Record<string, Flag>>
export type ServiceFlags = FlagValues<typeof serviceFlags>
