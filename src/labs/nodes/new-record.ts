import type { KindDescriptor } from '../../model/kinds/kind.ts'
import { kindOf, type NodeKindName } from '../../model/kinds/node.ts'
import { type LabLabel, type LabNode, type LabNodeCreate, mapFields } from '../../model/lab/node.ts'
import { Changes, type NodeRecord } from '../lab/document.ts'
import { withDefaults } from '../lab/fields.ts'
import type { UndoGroup } from '../lab/history.ts'
import { keptWith } from '../lab/kept.ts'
import type { Lab } from '../lab/lab.ts'

/** A node that is being created, before its compute is chosen. */
export interface NewNode {
  readonly input: LabNodeCreate
  readonly node_type: NodeKindName
  readonly node_id: string
  readonly name: string
  /** Default: that of the input, or the name. */
  readonly label?: LabLabel | undefined
  /** See `splitKept`. */
  readonly kept: Readonly<Record<string, unknown>> | undefined
}

/** Gives members of a new record that no client gives. */
export type RecordExtras = (record: NodeRecord) => Promise<Pick<NodeRecord, 'lastApplied'>>

/** The record of a new node. `settings`: what its compute has made of the input, or will. */
export function newNodeRecord(
  { input, node_type, node_id, name, label, kept }: NewNode,
  compute_id: string,
  settings: Pick<NodeRecord, 'console' | 'console_type' | 'properties'>,
): NodeRecord {
  const { portNameFormat }: KindDescriptor = kindOf(node_type)
  return {
    node_id,
    compute_id,
    node_type,
    template_id: input.template_id ?? null,
    name,
    ...withDefaults(mapFields, {
      port_name_format: portNameFormat,
      ...input,
      label: label ?? input.label ?? { text: name },
    }),
    ...settings,
    ...keptWith(undefined, kept),
  }
}

/** Adds the record of a new node to the document, and shows the node. */
export async function addNewNode(
  lab: Lab,
  known: NodeRecord,
  more?: RecordExtras,
  undoGroup?: UndoGroup,
): Promise<LabNode> {
  const record = { ...known, ...(await more?.(known)) }
  const news = () => [{ action: 'node.created' as const, event: lab.nodeView(record) }]
  await lab.add(new Changes().put('node', record.node_id, record), news, undoGroup)
  return lab.nodeView(record)
}
