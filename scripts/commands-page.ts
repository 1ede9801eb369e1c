import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Command, groups } from '../runtime/node/cli/command.ts'
import { commands } from '../runtime/node/cli/commands.ts'
import { titles, usageOf, withChoices } from '../runtime/node/cli/help.ts'

// Writes the reference of the commands into docs/commands.md, from the table that also makes the help.
const page = join(import.meta.dirname, '../docs/commands.md')
const [begin, end] = ['<!-- commands:begin -->', '<!-- commands:end -->']

/** The page as it has to be. */
export async function commandsPage(): Promise<string> {
  const text = await readFile(page, 'utf8')
  const [before = '', rest = ''] = text.split(begin)
  return `${before}${begin}\n${reference()}\n${end}${rest.split(end)[1] ?? ''}`
}

function reference(): string {
  return groups
    .flatMap((group) => {
      const rows = Object.entries(commands).filter(([, it]) => it.group === group && it.hidden !== true)
      return rows.length === 0 ? [] : [`## ${titles[group]}`, ...rows.map(([name, command]) => section(name, command))]
    })
    .join('\n\n')
}

function section(name: string, command: Command): string {
  const { args, flags, settings } = command
  const rows = [
    ...args.map(({ name, about, choices }) => [name, withChoices(about, choices)] as const),
    ...Object.entries(flags).map(([flag, { value, short, about, choices, many = false }]) => {
      const long = `--${flag}${value === undefined ? '' : ` ${value}`}`
      const text = withChoices(many ? `${about}; repeatable` : about, choices)
      return [short === undefined ? long : `-${short}, ${long}`, text] as const
    }),
  ].map(([left, right]) => `| \`${left.replaceAll('|', '\\|')}\` | ${plain(right)} |`)
  return [
    `### ${name}`,
    `\`\`\`\n${usageOf(name, command)}\n\`\`\``,
    plain(command.text.replaceAll('\n', ' ')),
    ...(rows.length === 0 ? [] : [['| | |', '|---|---|', ...rows].join('\n')]),
    ...(settings === undefined ? [] : ['Its flags are the [settings](configuration.md#settings).']),
  ].join('\n\n')
}

/** A text as Markdown, also in a cell of a table. */
const plain = (text: string): string => text.replace(/[|*<]/g, '\\$&')

if (import.meta.main) await writeFile(page, await commandsPage())
