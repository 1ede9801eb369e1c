import { labFileSchema } from '../../../src/labfile/json-schema.ts'
import type { CommandInput, outputFlags } from './command.ts'
import type { CommandOutcome } from './outcome.ts'

/** `patchbay schema`: the JSON Schema of lab files. */
export async function schema(_: CommandInput<typeof outputFlags>): Promise<CommandOutcome> {
  const found = labFileSchema()
  return { json: { schema: found }, isVerbatim: true, text: () => JSON.stringify(found, null, 2) }
}
