import type { NodeAction } from '../../host-agent.ts'
import { conflict, ignoreNotFound } from '../../lib/errors/api-error.ts'
import { kindOf, type NodeUpdate } from '../../model/kinds/node.ts'
import { nameKey } from '../../model/lab/names.ts'
import { isKnownKind, type LabNode, type LabNodeUpdate } from '../../model/lab/node.ts'
import { type ComputeAgents, sendNodeAction, withImages } from '../computes/agents.ts'
import type { Conventions } from '../lab/conventions.ts'
import { Changes, type NodeRecord } from '../lab/document.ts'
import { withoutNulls } from '../lab/fields.ts'
import type { UndoGroup } from '../lab/history.ts'
import { keptWith, sorted } from '../lab/kept.ts'
import type { Lab } from '../lab/lab.ts'
import { requireUnlocked } from '../lab/locked.ts'
import { nodeRefOf, reportedFields } from '../lab/node-on-compute.ts'
import { placeholderReason } from '../lab/placeholder-view.ts'
import { saveOrRevert } from '../lab/save-or-revert.ts'
import { startWithin } from '../lab/token-limits.ts'
import { unlinkNode } from '../links/links.ts'
import type { Labs } from '../service.ts'
import { createNode } from './create-node.ts'
import { nameClaim, requireStillFree, takeName } from './node-names.ts'
import { adaptersFor, refusedOf } from './node-settings.ts'
import { makeNode, retryPlaceholder } from './placeholders.ts'

/** Finds a node that its compute has, by its id or name. 404, 409 with the reason for a placeholder. */
export function nodeOnCompute(lab: Lab, idOrName: string): NodeRecord {
  const record = lab.node(idOrName)
  const reason = placeholderReason(record, record.creationError)
  if (reason !== undefined) throw conflict(`node_id: ${record.name}: ${reason}`)
  return record
}

/**
 * Changes a node on its compute, then in the document. When the compute refuses one change, nothing changes. `more` gives members of
 * the record that replace those of the input, also by null.
 */
export async function updateNode(
  lab: Lab,
  idOrName: string,
  input: LabNodeUpdate,
  agentFor: ComputeAgents,
  {
    undoGroup = { by: 'edit', consoles: new Set() },
    more,
    conventions,
  }: {
    undoGroup?: UndoGroup
    more?: (record: NodeRecord) => Promise<Partial<NodeRecord>>
    conventions?: Conventions | undefined
  } = {},
): Promise<LabNode> {
  const record = lab.node(idOrName)
  const { name: wanted, properties: _, kept: __, console, console_type, ...map } = input
  const { properties, kept } = sorted(record.node_type, 'update', input)
  const isWanted = wanted !== undefined && wanted !== null && wanted !== record.name
  const unique = conventions === undefined ? 'refuse' : undefined
  const naming = { unique, free: conventions?.nodeName, self: record.node_id } as const
  const name = isWanted ? takeName(lab, wanted, naming) : record.name
  const isRenamed = name !== record.name
  const changed: Record<string, unknown> = {
    ...adaptersFor(record.node_type, 'update', map),
    ...withoutNulls(properties),
  }
  for (const [key, value] of Object.entries(changed)) {
    if (JSON.stringify(value) === JSON.stringify(record.properties[key])) delete changed[key]
  }
  const update = {
    ...changed,
    ...(isRenamed && { name }),
    ...(console !== undefined && console !== null && console !== record.console && { console }),
    ...(console_type !== undefined &&
      console_type !== null &&
      console_type !== record.console_type && { console_type }),
  }
  const isPlaceholder = !isKnownKind(record.node_type) || record.creationError !== undefined
  const isUpdated = !isPlaceholder && Object.keys(update).length > 0
  const change = async () => {
    if (isRenamed) requireStillFree(lab, name, record.node_id)
    const send = () => agentFor(record.compute_id).nodes.update(nodeRefOf(lab, record), update as NodeUpdate)
    const shown = isUpdated ? await send().catch(refusedOf(properties)) : undefined
    if (shown !== undefined) lab.keepReported(shown)
    if ('console' in update) undoGroup.consoles?.add(`node/${record.node_id}`)
    const write = (added: Partial<NodeRecord> | undefined) =>
      lab.edit(({ nodes }) => {
        // 404 for a node that was deleted meanwhile.
        const now = lab.node(record.node_id)
        const label =
          isRenamed && map.label === undefined && now.label?.text === now.name
            ? { ...now.label, text: name }
            : now.label
        const next: NodeRecord = {
          ...now,
          label,
          ...withoutNulls(map),
          ...(shown !== undefined && reportedFields(shown)),
          ...keptWith(now.kept, kept),
          ...(isPlaceholder && {
            name,
            ...withoutNulls({ console_type }),
            properties: { ...now.properties, ...changed },
          }),
          ...added,
        }
        const changes = new Changes().put('node', record.node_id, next)
        const later = next.name === now.name ? [] : afterRename(nodes.values(), now, next.name)
        for (const it of later) changes.put('node', it.node_id, it)
        return {
          changes,
          news: () => [next, ...later].map((node) => ({ action: 'node.updated', event: lab.nodeView(node) })),
          get result() {
            return lab.nodeView(next)
          },
        }
      }, undoGroup)
    return await saveOrRevert(
      lab,
      async () => write(await more?.({ ...record, ...(shown !== undefined && reportedFields(shown)) })),
      async () => {
        if (isUpdated)
          lab.keepReported(
            await agentFor(record.compute_id).nodes.update(
              nodeRefOf(lab, record),
              formerOf(record, update) as NodeUpdate,
            ),
          )
      },
    )
  }
  try {
    return await (isUpdated ? withImages(agentFor(record.compute_id), () => lab.change(change)) : change())
  } finally {
    if (isWanted) lab.claimed.delete(nameClaim(name))
  }
}

/** The former values of settings that were changed on a compute. A text that there was not becomes empty: null would leave it as it is. */
const formerOf = (record: NodeRecord, update: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(update).flatMap(([key, now]) => {
      const before = record.properties[key] ?? record[key as keyof NodeRecord] ?? (typeof now === 'string' ? '' : null)
      return before === null ? [] : [[key, before]]
    }),
  )

/** The other nodes that start after a node, with its new name. */
function afterRename(nodes: Iterable<NodeRecord>, { node_id, name: old }: NodeRecord, name: string): NodeRecord[] {
  const isOld = (it: string) => nameKey(it) === nameKey(old)
  return [...nodes]
    .filter((it) => it.node_id !== node_id && it.after.some(isOld))
    .map((node) => ({ ...node, after: node.after.map((other) => (isOld(other) ? name : other)) }))
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
  using _ = starts ? startWithin(agentFor.limits, lab, lab.node(record.node_id)) : undefined
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
