import { loadConfig } from '../config/load.ts'

/** `patchbay config`: every setting with its value and its source; secrets are masked. */
export async function configCommand(argv: readonly string[]): Promise<number> {
  const rows = loadConfig({ argv, env: process.env }).effective()
  const [key, value] = (['key', 'value'] as const).map((column) => Math.max(...rows.map((row) => row[column].length)))
  for (const row of rows)
    process.stdout.write(`${row.key.padEnd(key ?? 0)}  ${row.value.padEnd(value ?? 0)}  ${row.source}\n`)
  return 0
}
