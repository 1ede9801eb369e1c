import { PatchbayError } from '../../../src/client/patchbay-error.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { escapeUnsafe, escapeUnsafeLines } from '../../../src/lib/text/escape.ts'
import { nearest } from '../../../src/lib/text/nearest-word.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { version } from '../os/system/version.ts'
import { argumentsOf, withWordsOfNode } from './arguments.ts'
import { errorColours } from './colours.ts'
import type { Command } from './command.ts'
import { CommandError, exits, wrongArguments } from './exits.ts'
import type { CommandDiagnostic } from './json-outputs.ts'
import { lastAnswer } from './last-answer.ts'
import type { CommandOutcome } from './outcome.ts'
import { columnsOf, wrapped } from './wrapping.ts'

type Table = Readonly<Record<string, Command>>

/** Runs the command of the command line, and prints its outcome; resolves with the exit code. */
export async function runCommand(argv: readonly string[], commands: Table): Promise<number> {
  const [first, ...others] = argv
  if (first === '--version' || first === '-v') return print(`${version}\n`)
  const isJson = beforeEnd(argv).includes('--json')
  try {
    if (first === undefined || first === '--help' || first === '-h')
      return await show(await help(others.filter((it) => it !== '--json').slice(0, 1), commands), isJson)
    // Flags without a command are flags of `serve`.
    const words = first.startsWith('-') ? ['serve', ...argv] : argv
    const remaining = beforeEnd(words.slice(1)).filter((it) => it !== '--json')
    if (isGroup(first, commands) && remaining.every((it) => it === '--help' || it === '-h') && remaining.length > 0)
      return await show(await help([first], commands), isJson)
    const { name, command, rest: given } = found(words, commands)
    const rest = withWordsOfNode(command, given)
    const flags = beforeEnd(rest)
    if (flags.includes('--help') || flags.includes('-h')) return await show(await help([name], commands), isJson)
    const input = command.settings === undefined ? argumentsOf(name, command, rest) : ({ args: [], flags: {} } as const)
    const own = 'json' in command.flags ? rest.filter((it) => it !== '--json') : rest
    const outcome = await command.run({ ...input, argv: own, signal: interruption(command) })
    if (typeof outcome !== 'number') return withOutput(await show(outcome, isJson))
    return withOutput(outputFault === undefined ? outcome : exits.done)
  } catch (error) {
    if (outputFault !== undefined) return withOutput(exits.done)
    const fault = faultOf(error)
    if (fault === undefined) throw error
    return withOutput(await fail(fault, isJson))
  }
}

/** The words before `--`, after which none is a flag. */
function beforeEnd(words: readonly string[]): readonly string[] {
  const end = words.indexOf('--')
  return end === -1 ? words : words.slice(0, end)
}

/** Whether that is the first word of commands of two words, and no command itself. */
export const isGroup = (word: string, commands: Table): boolean =>
  !Object.hasOwn(commands, word) && Object.keys(commands).some((command) => command.startsWith(`${word} `))

/** The command that the words begin with: its name may have two words. */
export function found(
  words: readonly string[],
  commands: Table,
): { name: string; command: Command; rest: readonly string[] } {
  for (const length of [2, 1]) {
    const name = words.slice(0, length).join(' ')
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (command !== undefined) return { name, command, rest: words.slice(length) }
  }
  const [first = '', second] = words
  const inGroup = Object.keys(commands).filter((it) => it.startsWith(`${first} `))
  if (inGroup.length > 0) {
    const list = inGroup.map((it) => it.slice(first.length + 1)).join(', ')
    throw wrongArguments(
      second === undefined || second.startsWith('-')
        ? `${first}: expected one of ${list}`
        : `${first}: expected one of ${list}, got ${JSON.stringify(second)}`,
    )
  }
  const guess = nearest(first, Object.keys(commands))
  throw wrongArguments(
    `unknown command ${first}${guess === undefined ? '' : `, did you mean ${guess}?`}`,
    '"patchbay help" lists them',
  )
}

const help = async (words: readonly string[], commands: Table): Promise<CommandOutcome> =>
  (await import('./help.ts')).help(words, commands)

const interrupt = new AbortController()
/** npm passes on a signal that the terminal has sent to all: a second signal within this time, ms, is the same. */
const sameSignalMs = 500

/**
 * Aborts at the first Ctrl-C: a command then ends what it began. The second one ends the program at once. Commands with settings
 * handle signals themselves.
 */
function interruption({ settings }: Command): AbortSignal {
  let began: number | undefined
  const onSignal = () => {
    if (began !== undefined && performance.now() - began > sameSignalMs) process.exit(exits.interrupted)
    began ??= performance.now()
    interrupt.abort()
  }
  if (settings === undefined) {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, onSignal)
    process.stdout.on('error', (error) => {
      outputFault ??= error
      interrupt.abort()
    })
    // Messages that nothing reads, such as after `2>&1 | head -1`, must not end what a command has begun.
    process.stderr.on('error', ignore('there is no other place for messages'))
  }
  return interrupt.signal
}

/** Why writing to standard output failed. EPIPE: its reader has ended, as `head` does; a command that runs until Ctrl-C then ends, too. */
let outputFault: Error | undefined

/** The exit code of a command that was run to its end, as far as its output could be written. */
function withOutput(exit: number): number {
  if (outputFault === undefined || (outputFault as NodeJS.ErrnoException).code === 'EPIPE') return exit
  process.stderr.write(`patchbay: standard output: ${reasonOf(outputFault)}\n`)
  return exits.failed
}

/** Resolves when the text is written, or cannot be. */
async function print(text: string): Promise<number> {
  const error = await new Promise<Error | null | undefined>((resolve) => process.stdout.write(text, resolve))
  outputFault ??= error ?? undefined
  return exits.done
}

/** Prints one object. The runner of GitHub Actions takes "##[" anywhere in a line for a command, and guests and files may have it. */
const printJson = (value: object): Promise<number> => print(`${JSON.stringify(value).replaceAll('##[', '\\u0023#[')}\n`)

async function show({ exit = exits.done, json, isVerbatim, text }: CommandOutcome, isJson: boolean): Promise<number> {
  if (isJson) await printJson({ ok: exit === exits.done, exit, ...json })
  else {
    const shown = isVerbatim ? await text() : wrapped(await text(), columnsOf(process.stdout))
    if (shown !== '') await print(`${shown}\n`)
  }
  return exit
}

async function fail(
  { exit, diagnostics }: Pick<CommandError, 'exit' | 'diagnostics'>,
  isJson: boolean,
): Promise<number> {
  if (isJson) await printJson({ ok: false, exit, errors: diagnostics })
  for (const { message, hint, file, line, column } of diagnostics) {
    const where = file === undefined ? 'patchbay' : [file, line, column].filter((it) => it !== undefined).join(':')
    const advice = hint === undefined ? '' : file === undefined ? ` (${hint})` : `; ${hint}`
    const text = escapeUnsafeLines(`: ${message}${advice}`)
    process.stderr.write(`${wrapped(`${errorColours.red(escapeUnsafe(where))}${text}`, columnsOf(process.stderr))}\n`)
  }
  return exit
}

/** Whether the members of an answer were not there, or had other types. */
const isOfAnswer = (error: unknown): boolean =>
  lastAnswer() !== undefined && (error instanceof TypeError || error instanceof RangeError)

function malformedAnswer(message: string): Pick<CommandError, 'exit' | 'diagnostics'> {
  const { server, call } = lastAnswer() ?? {}
  return {
    exit: exits.noService,
    diagnostics: [
      {
        message: `The service ${server} sent an unexpected response to ${call}`,
        hint: `"patchbay version --server ${server}" shows its version; first error: ${message}`,
      },
    ],
  }
}

/** What the user can do. */
function hintOf({ status, code }: PatchbayError): string | undefined {
  if (status === 401) return 'set PATCHBAY_TOKEN, or run "patchbay login URL"'
  if (code === 'unreachable') return 'is it running? "patchbay serve" starts a service, --server URL selects another'
  return undefined
}

/** What an error says to the user; undefined for a defect. */
export function faultOf(
  error: unknown,
): { exit: CommandError['exit']; diagnostics: readonly CommandDiagnostic[] } | undefined {
  if (error instanceof CommandError) return error
  if (interrupt.signal.aborted) return { exit: exits.interrupted, diagnostics: [{ message: 'interrupted' }] }
  const { name, message } = error as Error
  if (error instanceof PatchbayError) {
    const isRefused = error.status === 0 || error.status === 401 || error.status === 403
    const hint = hintOf(error)
    return {
      exit: isRefused ? exits.noService : exits.failed,
      diagnostics: [{ message, ...(hint !== undefined && { hint }) }],
    }
  }
  if (name === 'ConfigError') return { exit: exits.arguments, diagnostics: [{ message }] }
  if (['StartError', 'NewerRecord', 'ApiError'].includes(name))
    return { exit: exits.failed, diagnostics: [{ message }] }
  return isOfAnswer(error) ? malformedAnswer(message) : undefined
}
