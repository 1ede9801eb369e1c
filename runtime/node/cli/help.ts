import { version } from '../os/system/version.ts'
import { heading } from './colours.ts'
import { type Command, groups } from './command.ts'
import type { CommandOutcome } from './outcome.ts'
import { found, isGroup } from './run.ts'
import { columnsOf, wrapped } from './wrapping.ts'

type Table = Readonly<Record<string, Command>>

/** The help of the command that the words name, or the list of the commands that begin with the word, or of all. CommandError 64. */
export async function help(words: readonly string[], commands: Table): Promise<CommandOutcome> {
  const [first = ''] = words
  const isOfGroup = words.length === 1 && isGroup(first, commands)
  if (words.length === 0 || isOfGroup) {
    const shown = listed(commands).filter(([name]) => !isOfGroup || name.startsWith(`${first} `))
    return {
      json: { version, commands: shown.map(([name, { group, summary }]) => ({ name, group, summary })) },
      text: () => overview(shown, isOfGroup ? `patchbay ${first} ` : 'patchbay '),
    }
  }
  const { name, command } = found(
    words.flatMap((it) => it.split(' ')),
    commands,
  )
  const { group, summary, text, args, flags, settings } = command
  const settingsOf = async () =>
    (await import('./setting-flags.ts')).settingWords().map(({ word, about }) => ({ name: word, about }))
  return {
    json: {
      command: name,
      group,
      usage: usageOf(name, command),
      summary,
      text: text.replaceAll('\n', ' '),
      args: args.map(({ complete: _, ofNode: __, ...it }) => it),
      flags: Object.entries(flags).map(([flag, { complete: _, ...it }]) => ({ name: `--${flag}`, ...it })),
      ...(settings !== undefined && { settings: await settingsOf() }),
    },
    text: async () => (await helpOf(name, command)).trimEnd(),
  }
}

const listed = (commands: Table) => Object.entries(commands).filter(([, { hidden = false }]) => !hidden)

/** The headings of the groups. */
export const titles: Readonly<Record<(typeof groups)[number], string>> = {
  labs: 'Labs',
  nodes: 'Nodes',
  links: 'Links',
  files: 'Files',
  service: 'Service',
  fleet: 'Fleet',
  program: 'Program',
}

/** A list of commands, such as the output of `patchbay` without a command. */
function overview(all: readonly (readonly [string, Command])[], words: string): string {
  const width = Math.max(...all.map(([name]) => name.length))
  const sections = groups.flatMap((group) => {
    const rows = all.filter(([, it]) => it.group === group)
    return rows.length === 0
      ? []
      : [
          `${heading(titles[group])}\n${rows.map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}\n`).join('')}`,
        ]
  })
  return fitting(`Patchbay ${version}: runs emulated network labs

Usage: ${words}COMMAND [ARGUMENTS] [FLAGS]

${sections.join('\n')}
Run "patchbay help COMMAND" for details.`)
}

/** The first line of the help of a command. */
export function usageOf(name: string, { args, flags, settings }: Command): string {
  const words = args.map(({ name, optional = false, many = false }) => {
    const word = many ? `${name}...` : name
    return optional ? `[${word}]` : word
  })
  const hasFlags = Object.keys(flags).length > 0 || settings !== undefined
  return ['patchbay', name, ...words, ...(hasFlags ? ['[flags]'] : [])].join(' ')
}

/** The help of one command, with its arguments and flags. */
async function helpOf(name: string, command: Command): Promise<string> {
  const rows = [
    ...command.args.map(({ name, about, choices }): Row => [name, withChoices(about, choices)]),
    ...Object.entries(command.flags).map(
      ([flag, { value, short, about, choices, many = false }]): Row => [
        `${short === undefined ? '' : `-${short}, `}--${flag}${value === undefined ? '' : ` ${value}`}`,
        withChoices(many ? `${about}; repeatable` : about, choices),
      ],
    ),
  ]
  const width = Math.max(0, ...rows.map(([left]) => left.length))
  const list = rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join('')
  const isSetting = command.settings === 'list'
  const settings = isSetting ? `\n${await (await import('./setting-flags.ts')).settingFlags()}` : ''
  return fitting(
    `${heading(usageOf(name, command))}\n\n${command.text.replaceAll('\n', ' ')}\n${list === '' ? '' : `\n${list}`}${settings}`,
  )
}

const longestLine = 100

/** A text in lines that fit the terminal. */
const fitting = (text: string): string => wrapped(text, Math.min(longestLine, columnsOf(process.stdout) ?? longestLine))

type Row = readonly [string, string]
export const withChoices = (about: string, choices: readonly string[] | undefined): string =>
  choices === undefined ? about : `${about} (${choices.join(', ')})`
