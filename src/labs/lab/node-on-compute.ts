import { nodeFields } from '../../model/schema/node-fields.ts'
import type { ComputeNode, NodePath } from '../computes/compute-client.ts'
import type { NodeRecord } from './document.ts'
import type { Lab } from './lab.ts'

export const nodePathOf = (lab: Lab, { node_type, node_id }: NodeRecord): NodePath => ({
  project_id: lab.id,
  node_type,
  node_id,
})

/** The properties of the kind of a node, as its compute shows it: all but the fields that every node has. */
export function propertiesOf(shown: ComputeNode): Record<string, unknown> {
  const { console_type: _, ...rest } = shown as Record<string, unknown>
  return Object.fromEntries(Object.entries(rest).filter(([name]) => !(name in nodeFields)))
}

/** The fields of a record that come from the compute. */
export const reportedFields = (
  shown: ComputeNode,
): Pick<NodeRecord, 'name' | 'console' | 'console_type' | 'properties'> => ({
  name: shown.name,
  console: shown.console ?? null,
  console_type: shown.console_type ?? 'none',
  properties: propertiesOf(shown),
})
