import { Kind } from '@sinclair/typebox'
import { choicesOf, flagOf, type SettingKey, settingKeys, shownSetting } from '../config/keys.ts'
import { version } from '../system/version.ts'
import type { Command } from './command.ts'

/** The output of `patchbay` without a command: all commands. */
export function overview(commands: Readonly<Record<string, Command>>): string {
  const usages = Object.entries(commands).map(([name, { usage }]) => `patchbay ${name} ${usage}`.trimEnd())
  const width = Math.max(...usages.map(({ length }) => length))
  const lines = Object.values(commands).map(({ summary }, index) => `${usages[index]?.padEnd(width)}  ${summary}`)
  return `Patchbay ${version}: runs emulated network labs over HTTP

${lines.join('\n')}

Flags are settings: --port 3080, --data DIR, --config FILE, --log-level debug, ...; "patchbay serve --help" lists them all.
`
}

const flagsIntro = `Flags win over environment variables (--pc-engine is PATCHBAY_PC_ENGINE), and those over the file
(pc.engine in ~/.config/patchbay/config.toml). Other users of the machine can see a password or token on the
command line, and outside a terminal it is refused: use --password-file, --token-file or --join-token-file,
or the variables PATCHBAY_PASSWORD and PATCHBAY_TOKEN.
`

/** The help of one command, with its flags. */
export const helpOf = (name: string, { usage, text, takesSettings = false }: Command): string =>
  `${`patchbay ${name} ${usage}`.trimEnd()}\n\n${text}\n${takesSettings ? `\n${flagsIntro}\n${flags()}` : ''}`

/** Every flag with its meaning and its default. */
function flags(): string {
  const rows = [
    ['--config FILE', 'The configuration file. Default: ~/.config/patchbay/config.toml'],
    ...settingKeys.map((key) => [usage(key), meaning(key)]),
  ] as [string, string][]
  return rows.map(([left, right]) => `  ${left}\n        ${right}\n`).join('')
}

function usage(key: SettingKey): string {
  const flag = flagOf(key)
  switch (key.schema[Kind]) {
    case 'Boolean':
      return `--[no-]${flag}`
    case 'Integer':
      return `--${flag} NUMBER`
    case 'Tuple':
      return `--${flag} FIRST-LAST`
    case 'Array':
      return `--${flag} A,B,...`
    case 'Record':
      return `--${flag} A=B,...`
    case 'Union':
      return `--${flag} ${choicesOf(key).join('|')}`
    default:
      return `--${flag} VALUE`
  }
}

function meaning({ schema }: SettingKey): string {
  const value = shownSetting(schema.default, schema)
  const isEmpty = ['', '[]', '{}', 'false'].includes(value)
  return `${String(schema.description)}${isEmpty ? '' : `. Default: ${value}`}`
}
