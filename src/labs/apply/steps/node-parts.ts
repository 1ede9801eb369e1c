import type { DesiredDay0, DesiredNode } from '../../../labfile/desired.ts'
import { kindOf } from '../../../model/kinds/node.ts'
import { day0Image, day0Media } from '../../nodes/day0.ts'
import { updateNode } from '../../nodes/update-node.ts'
import type { PlannedChange } from '../../plan/types.ts'
import type { ApplyContext } from '../context.ts'

/** The inputs of a node for the configurations that are taken from the file. */
export function configInputs({ kind, configs }: DesiredNode, names: readonly string[]): Record<string, unknown> {
  const access = kindOf(kind).configs ?? {}
  return Object.fromEntries(names.map((name) => [access[name]?.field, configs[name]?.text]))
}

/** Sets the console port of a new node. 409 when it is in use: a creation would choose another port without an error. */
export async function giveConsole(
  { labs, lab, agentFor, undoGroup }: ApplyContext,
  id: string,
  { console }: PlannedChange['settings'],
): Promise<void> {
  if (console != null) await updateNode(labs, lab, id, { console }, agentFor, { undoGroup })
}

/** Makes the CD or disk of a machine in its directory, and inserts it. */
export async function insertMedium(
  { labs, lab, agentFor, undoGroup }: ApplyContext,
  id: string,
  day0: DesiredDay0,
): Promise<void> {
  const record = lab.node(id)
  const image = day0Image(day0)
  const { property, file } = day0Media[day0.medium]
  const path = `project-files/${record.node_type}/${id}/${file.slice(2)}`
  const body = new Blob([image]).stream() as ReadableStream<Uint8Array>
  await agentFor(record.compute_id).files.write(lab.id, path, body, { parents: true, size: image.byteLength })
  await updateNode(labs, lab, id, { properties: { [property]: file } }, agentFor, { undoGroup })
}
