import type { PortRef } from '../../host-agent.ts'
import type { NodeKindName, NodeRef } from '../../model/kinds/node.ts'
import type { LabLinkEnd } from '../../model/lab/link.ts'
import { nodeFields } from '../../model/schema/node-fields.ts'
import type { NodeRecord } from './document.ts'
import type { Lab } from './lab.ts'

/** A node of a lab as its compute reports it. The members of its kind, and those of other versions, pass unchanged. */
export interface ReportedNode {
  readonly node_id: string
  readonly name: string
  readonly status: string
  readonly console?: number | null | undefined
  readonly console_type?: string | null | undefined
  readonly console_host?: string | null | undefined
  readonly command_line?: string | undefined
  readonly node_directory?: string | null | undefined
  readonly status_reason?: string | null | undefined
}

/** The node at its compute. Only nodes of known kinds are on computes. */
export const nodeRefOf = (lab: Lab, { node_type, node_id }: Pick<NodeRecord, 'node_type' | 'node_id'>): NodeRef => ({
  project_id: lab.id,
  kind: node_type as NodeKindName,
  node_id,
})

export const portRefOf = ({
  adapter_number,
  port_number,
}: Pick<LabLinkEnd, 'adapter_number' | 'port_number'>): PortRef => ({
  adapter: adapter_number,
  port: port_number,
})

/** The properties of the kind of a node, as its compute shows it: all but the fields that every node has. */
export function propertiesOf(shown: ReportedNode): Record<string, unknown> {
  const { kind: _, console_type: __, ...rest } = shown as ReportedNode & Record<string, unknown>
  return Object.fromEntries(Object.entries(rest).filter(([name]) => !(name in nodeFields)))
}

/** The fields of a record that come from the compute. */
export const reportedFields = (
  shown: ReportedNode,
): Pick<NodeRecord, 'name' | 'console' | 'console_type' | 'properties'> => ({
  name: shown.name,
  console: shown.console ?? null,
  console_type: shown.console_type ?? 'none',
  properties: propertiesOf(shown),
})
