import type { InventoryFormat } from '../../../src/model/lab/inventory.ts'
import { clientOf } from './client.ts'
import type { CommandInput } from './command.ts'
import type { inventoryFlags } from './command-flags.ts'
import type { CommandOutcome } from './outcome.ts'
import { labOf } from './targets.ts'

/** `patchbay inventory LAB`: how programs reach its nodes. */
export async function inventory({ args, flags, signal }: CommandInput<typeof inventoryFlags>): Promise<CommandOutcome> {
  const [word = ''] = args
  const context = { client: await clientOf(flags), signal }
  const { project_id } = await labOf(word, context)
  const format: InventoryFormat = flags.json ? 'json' : ((flags.format as InventoryFormat | undefined) ?? 'ansible')
  const name = 'GET /v2/projects/{project_id}/inventory'
  const answer = await context.client.answer(name, { params: { project_id }, query: { format }, signal })
  const text = await answer.text()
  const json = format === 'json' ? (JSON.parse(text) as Record<string, unknown>) : {}
  return {
    json,
    isVerbatim: true,
    text: () => (format === 'json' ? JSON.stringify(json, null, 2) : text.trimEnd()),
  }
}
