import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { choicesOf, settingKeys, shownSetting } from '../runtime/node/service/config/keys.ts'

// Writes the table of settings into docs/configuration.md, from the one schema that has them.
const rows = settingKeys.map((setting) => {
  const { key, schema } = setting
  const words = choicesOf(setting).map((word) => `\`${word}\``)
  const choices = words.length === 0 ? [] : [`(${words.join(', ')})`]
  const value = shownSetting(schema.default, schema)
  return `| \`${key}\` | ${value === '' ? '' : `\`${value}\``} | ${[String(schema.description), ...choices].join(' ')} |`
})
const table = ['| key | default | meaning |', '|---|---|---|', ...rows].join('\n')
const page = join(import.meta.dirname, '../docs/configuration.md')
const text = await readFile(page, 'utf8')
const [before, rest = ''] = text.split('<!-- settings:begin -->')
const after = rest.split('<!-- settings:end -->')[1] ?? ''
await writeFile(page, `${before}<!-- settings:begin -->\n${table}\n<!-- settings:end -->${after}`)
