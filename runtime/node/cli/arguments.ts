import { parseArgs } from 'node:util'
import { nearest } from '../../../src/lib/text/nearest-word.ts'
import type { Argument, Command, CommandInput, Flag } from './command.ts'
import { wrongArguments } from './exits.ts'

/** The arguments and flags of a command. Throws CommandError 64 for those that it does not take. */
export function argumentsOf(
  name: string,
  { args: wanted, flags }: Command,
  argv: readonly string[],
): Pick<CommandInput<Readonly<Record<string, Flag>>>, 'args' | 'flags'> {
  const help = `"patchbay ${name} --help" lists its arguments and flags`
  const options = Object.fromEntries(
    Object.entries(flags).map(([flag, { value, many = false, short }]) => [
      flag,
      {
        type: value === undefined ? ('boolean' as const) : ('string' as const),
        multiple: many,
        ...(short && { short }),
      },
    ]),
  )
  let parsed: ReturnType<typeof parseArgs>
  try {
    parsed = parseArgs({ args: [...argv], options, allowPositionals: true, strict: true })
  } catch (error) {
    const { code, message } = error as Error & { code?: string }
    const word = /'(?:-\w, )?(--?[\w-]+)/.exec(message)?.[1] ?? ''
    const flag = flags[word.replace(/^--/, '')]
    if (code === 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE') {
      throw wrongArguments(
        flag?.value === undefined
          ? `${word} does not accept a value`
          : `${word}: a value is missing, expected ${flag.value}`,
        help,
      )
    }
    const guess = nearest(word.replace(/^--?/, ''), Object.keys(flags))
    throw wrongArguments(`unknown flag ${word}${guess === undefined ? '' : `, did you mean --${guess}?`}`, help)
  }
  const values = Object.fromEntries(
    Object.entries(flags).map(([flag, { value, many }]) => [
      flag,
      parsed.values[flag] ?? (many ? [] : value === undefined ? false : undefined),
    ]),
  )
  for (const [flag, { choices }] of Object.entries(flags)) {
    const given = values[flag]
    if (choices !== undefined && typeof given === 'string') requireChoice(`--${flag}`, given, choices)
  }
  requireCount(parsed.positionals, wanted, help)
  return { args: parsed.positionals, flags: values as CommandInput<Readonly<Record<string, Flag>>>['flags'] }
}

/**
 * The arguments of a command whose last argument is a command of a node (`exec`), with `--` before words that belong to the node: words
 * with one "-" after its first word are not flags of ours. The arguments of other commands stay as they are.
 */
export function withWordsOfNode(
  { args, flags }: Pick<Command, 'args' | 'flags'>,
  argv: readonly string[],
): readonly string[] {
  const first = args.findIndex(({ ofNode }) => ofNode === true)
  if (first === -1) return argv
  const own: string[] = []
  const words: string[] = []
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? ''
    if (word === '--') {
      words.push(...argv.slice(index + 1))
      break
    }
    const isFlag = words.length > first ? word.startsWith('--') : /^-./.test(word)
    if (!isFlag) {
      words.push(word)
      continue
    }
    own.push(word)
    const next = argv[index + 1]
    if (flags[word.slice(2)]?.value === undefined || next === undefined) continue
    own.push(next)
    index++
  }
  return [...own, '--', ...words]
}

function requireCount(given: readonly string[], wanted: readonly Argument[], help: string): void {
  const missing = wanted[given.length]
  if (missing !== undefined && missing.optional !== true) throw wrongArguments(`expected ${missing.name}`, help)
  const extra = given[wanted.length]
  if (extra !== undefined && wanted.at(-1)?.many !== true)
    throw wrongArguments(`unexpected argument ${JSON.stringify(extra)}`, help)
  for (const [index, word] of given.entries()) {
    const { name = '', choices } = wanted[Math.min(index, wanted.length - 1)] ?? {}
    if (choices !== undefined) requireChoice(name, word, choices)
  }
}

function requireChoice(name: string, word: string, choices: readonly string[]): void {
  if (choices.includes(word)) return
  const guess = nearest(word, choices)
  throw wrongArguments(
    `${name}: expected one of ${choices.join(', ')}, got ${JSON.stringify(word)}${guess === undefined ? '' : `; did you mean ${guess}?`}`,
  )
}
