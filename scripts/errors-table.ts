import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCodes } from '../src/lib/errors/error-codes.ts'

// Writes the table of error codes into docs/errors.md.
const rows = Object.entries(errorCodes).map(
  ([code, [statuses, meaning]]) => `| \`${code}\` | ${statuses.join(', ')} | ${meaning} |`,
)
const table = ['| Code | Status | Meaning |', '|---|---|---|', ...rows].join('\n')
const page = join(import.meta.dirname, '../docs/errors.md')
const text = await readFile(page, 'utf8')
const [before, rest = ''] = text.split('<!-- codes:begin -->')
const after = rest.split('<!-- codes:end -->')[1] ?? ''
await writeFile(page, `${before}<!-- codes:begin -->\n${table}\n<!-- codes:end -->${after}`)
