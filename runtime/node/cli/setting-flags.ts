import { Kind } from '@sinclair/typebox'
import { choicesOf, flagOf, type SettingKey, settingKeys, shownSetting } from '../service/config/keys.ts'

const flagsIntro = `Flags take precedence over environment variables (--pc-engine is PATCHBAY_PC_ENGINE), which take precedence over the file (pc.engine in ~/.config/patchbay/config.toml). Other users of the machine can see a password or token on the command line, and outside a terminal it is refused. Use --password-file, --token-file or --join-token-file, or the variables PATCHBAY_PASSWORD and PATCHBAY_TOKEN.
`

/** Every flag with its meaning and its default. */
export function settingFlags(): string {
  const rows = [
    ['--config FILE', 'The configuration file. Default: ~/.config/patchbay/config.toml'],
    ...settingKeys.map((key) => [usage(key), meaning(key)]),
  ] as [string, string][]
  return `${flagsIntro}\n${rows.map(([left, right]) => `  ${left}\n        ${right}\n`).join('')}`
}

/** The flags as words that a shell may offer. */
export const settingWords = (): { word: string; about: string }[] =>
  settingKeys.map((key) => ({ word: `--${flagOf(key)}`, about: String(key.schema.description) }))

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
