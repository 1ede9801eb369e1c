import { loadConfig } from '../service/config/load.ts'
import type { CommandOutcome } from './outcome.ts'

/** `patchbay config`: every setting with its value and its source; secrets are masked. */
export function configCommand(argv: readonly string[]): CommandOutcome {
  const settings = loadConfig({ argv, env: process.env }).effective()
  return {
    json: { settings },
    text() {
      const widthOf = (column: 'key' | 'value') => Math.max(...settings.map((row) => row[column].length))
      const [keys, values] = [widthOf('key'), widthOf('value')]
      return settings.map((it) => `${it.key.padEnd(keys)}  ${it.value.padEnd(values)}  ${it.source}`).join('\n')
    },
  }
}
