import type { NodeAction } from '../../host-agent.ts'
import { conflict, ignoreNotFound } from '../../lib/errors/api-error.ts'
import { kindOf } from '../../model/kinds/node.ts'
import { isKnownKind, type LabNode } from '../../model/lab/node.ts'
import { type ComputeAgents, sendNodeAction } from '../computes/agents.ts'
import type { Conventions } from '../lab/conventions.ts'
import { Changes, type NodeRecord } from '../lab/document.ts'
import type { UndoGroup } from '../lab/history.ts'
import type { Lab } from '../lab/lab.ts'
import { requireUnlocked } from '../lab/locked.ts'
import { nodeRefOf } from '../lab/node-on-compute.ts'
import { placeholderReason } from '../lab/placeholder-view.ts'
import { saveOrRevert } from '../lab/save-or-revert.ts'
import { reserveStart } from '../lab/token-limits.ts'
import { unlinkNode } from '../links/links.ts'
import type { Labs } from '../service.ts'
import { createNode } from './create-node.ts'
import { makeNode, retryPlaceholder } from './placeholders.ts'

/** Finds a node that its compute has, by its id or name. 404, 409 with the reason for a placeholder. */
export function nodeOnCompute(lab: Lab, idOrName: string): NodeRecord {
  const record = lab.node(idOrName)
  const reason = placeholderReason(record, record.creationError)
  if (reason !== undefined) throw conflict(`node_id: ${record.name}: ${reason}`)
  return record
}

/** Deletes a node with its links. Its directory stays until the project is closed, for an undo. 409 when it is locked. */
export async function removeNode(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  idOrName: string,
  agentFor: ComputeAgents,
  undoGroup: UndoGroup = { by: 'edit' },
): Promise<void> {
  const { node_id } = lab.node(idOrName)
  await lab.change(async () => {
    // 404 when it is gone by then.
    const record = lab.node(node_id)
    requireUnlocked(record, `The node ${record.name}`)
    await remove(labs, lab, record, agentFor, undoGroup)
  })
}

async function remove(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  record: NodeRecord,
  agentFor: ComputeAgents,
  undoGroup: UndoGroup,
): Promise<void> {
  await lab.requireSavable()
  await unlinkNode(labs, lab, record.node_id, agentFor, undoGroup)
  if (isKnownKind(record.node_type))
    await agentFor(record.compute_id).nodes.remove(nodeRefOf(lab, record), { files: 'later' }).catch(ignoreNotFound)
  const last = lab.nodeView(record)
  const write = () =>
    lab.edit(
      () => ({
        changes: new Changes().remove('node', record.node_id),
        news: () => [{ action: 'node.deleted', event: last }],
        result: undefined,
      }),
      undoGroup,
    )
  await saveOrRevert(lab, write, () => remake(lab, record, agentFor))
  lab.reported.delete(record.node_id)
  lab.unknownReasons.delete(record.node_id)
  // A link that was being made may have been written before the node was gone.
  await unlinkNode(labs, lab, record.node_id, agentFor, undoGroup)
}

/** Makes a node again that was removed from its compute in vain, in its directory. It is stopped. */
export async function remake(lab: Lab, record: NodeRecord, agentFor: ComputeAgents): Promise<void> {
  if (!isKnownKind(record.node_type) || record.creationError !== undefined) return
  const { creationError } = await makeNode(lab, record, agentFor)
  if (creationError !== undefined) throw conflict(`${record.name}: ${creationError}`)
  lab.keepReported(await agentFor(record.compute_id).nodes.get(nodeRefOf(lab, record)))
}

/**
 * Starts, stops, suspends, resumes or reloads a node of a lab: every such action of labs comes here. 404, 409 with the reason; 409 `limit-reached`
 * beyond the limits of the caller's token.
 */
export async function runNodeAction(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  record: NodeRecord,
  action: NodeAction,
  agentFor: ComputeAgents,
): Promise<LabNode> {
  if (action === 'start') await retryPlaceholder(labs, lab, record, agentFor)
  else nodeOnCompute(lab, record.node_id)
  // A suspended node counts as running, so that the other actions start nothing that does not count yet.
  const starts = action === 'start' || action === 'reload'
  using _ = starts ? reserveStart(agentFor.limits, lab, lab.node(record.node_id)) : undefined
  const shown = await sendNodeAction(agentFor(record.compute_id), nodeRefOf(lab, record), action)
  lab.keepReported(shown)
  lab.onNodeActed(shown)
  return lab.nodeView(lab.node(record.node_id))
}

/** Copies a node under a new name, at another position of the map. Its guest may run: it is still meanwhile. 409 for a placeholder. */
export async function duplicateNode(
  labs: Labs,
  lab: Lab,
  idOrName: string,
  { x, y, z }: { x: number; y: number; z: number },
  { agentFor, conventions }: { agentFor: ComputeAgents; conventions?: Conventions | undefined },
): Promise<LabNode> {
  const source = nodeOnCompute(lab, idOrName)
  const { node_id: _, name, console: __, properties, label, ...rest } = source
  const labelOf = (copy: string) => ({ ...label, text: label?.text === name || label == null ? copy : label.text })
  // The copy gets what its kind accepts at a creation; read-only properties and the MAC address are its own.
  const known = kindOf(source.node_type as never).create.properties
  const settings = Object.fromEntries(
    Object.entries(properties).filter(([key]) => key in known && key !== 'mac_address'),
  )
  // A snapshot has the copy with its files, or not at all.
  const fill = (nodeId: string) => agentFor(source.compute_id).nodes.duplicate(nodeRefOf(lab, source), nodeId)
  return createNode(
    labs,
    lab,
    { ...rest, name, properties: settings, x, y, z },
    { agentFor, conventions, label: labelOf, fill },
  )
}
