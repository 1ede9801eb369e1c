import { labFileSchema } from '../../../src/labfile/json-schema.ts'
import type { CommandInput } from './command.ts'
import type { schemaFlags } from './command-flags.ts'
import type { CommandOutcome } from './outcome.ts'

/** `patchbay schema`: the JSON Schema of lab files, or of what a command prints with `--json`. */
export async function schema({ flags }: CommandInput<typeof schemaFlags>): Promise<CommandOutcome> {
  const found = await schemaOf(flags.of)
  return { json: { schema: found }, isVerbatim: true, text: () => JSON.stringify(found, null, 2) }
}

async function schemaOf(what: string | undefined): Promise<object> {
  const { jsonOutputs } = await import('./json-outputs.ts')
  if (what === undefined || !(what in jsonOutputs)) return labFileSchema()
  // Words of our own messages are no keyword of JSON Schema.
  const plain = JSON.stringify(jsonOutputs[what as keyof typeof jsonOutputs], (key, value) =>
    key === 'expects' ? undefined : value,
  )
  return { $schema: 'http://json-schema.org/draft-07/schema#', ...JSON.parse(plain) }
}
