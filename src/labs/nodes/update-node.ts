import { omit } from '../../lib/omit.ts'
import type { NodeUpdate } from '../../model/kinds/node.ts'
import { nameKey } from '../../model/lab/names.ts'
import { isKnownKind, type LabNode, type LabNodeUpdate } from '../../model/lab/node.ts'
import { type ComputeAgents, withImages } from '../computes/agents.ts'
import type { Conventions } from '../lab/conventions.ts'
import { Changes, type NodeRecord } from '../lab/document.ts'
import { withoutNulls } from '../lab/fields.ts'
import type { UndoGroup } from '../lab/history.ts'
import { keptWith, splitKept } from '../lab/kept.ts'
import type { Lab } from '../lab/lab.ts'
import { nodeRefOf, reportedFields } from '../lab/node-on-compute.ts'
import { saveOrRevert } from '../lab/save-or-revert.ts'
import { replug } from '../links/replug.ts'
import type { Labs } from '../service.ts'
import { nameClaim, requireStillFree, takeName } from './node-names.ts'
import { adaptersFor, refusedOf } from './node-settings.ts'

interface UpdateOptions {
  readonly undoGroup?: UndoGroup
  readonly more?: (record: NodeRecord) => Promise<Partial<NodeRecord>>
  readonly conventions?: Conventions | undefined
}

type Settings = Readonly<Record<string, unknown>>

/**
 * Changes a node on its compute, then in the document. When the compute refuses one change, nothing changes. `more` gives members of
 * the record that replace those of the input, also by null.
 */
export async function updateNode(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  idOrName: string,
  input: LabNodeUpdate,
  agentFor: ComputeAgents,
  { undoGroup = { by: 'edit', consoles: new Set() }, more, conventions }: UpdateOptions = {},
): Promise<LabNode> {
  const record = lab.node(idOrName)
  const { node_id, compute_id, node_type } = record
  const { properties, kept } = splitKept(node_type, 'update', input)
  const wanted = input.name ?? record.name
  const unique = conventions === undefined ? 'refuse' : undefined
  const name =
    wanted === record.name ? wanted : takeName(lab, wanted, { unique, free: conventions?.nodeName, self: node_id })
  const isRenamed = name !== record.name
  const settings = { ...adaptersFor(node_type, 'update', input), ...withoutNulls(properties) }
  const changed = otherThan(record.properties, settings)
  const { console, console_type } = input
  const update = { ...changed, ...otherThan(record, { name, console, console_type }) }
  const isPlaceholder = !isKnownKind(node_type) || record.creationError !== undefined
  const isSent = !isPlaceholder && Object.keys(update).length > 0
  const send = async (wanted: Settings): Promise<Partial<NodeRecord>> => {
    const shown = await agentFor(compute_id).nodes.update(nodeRefOf(lab, record), wanted as NodeUpdate)
    lab.keepReported(shown)
    return reportedFields(shown)
  }
  const change = async () => {
    if (isRenamed) requireStillFree(lab, name, node_id)
    const reported = isSent ? await send(update).catch(refusedOf(properties)) : {}
    if ('console' in update) undoGroup.consoles?.add(`node/${node_id}`)
    const ofPlaceholder = (now: NodeRecord) =>
      isPlaceholder && { name, ...withoutNulls({ console_type }), properties: { ...now.properties, ...changed } }
    const save = async () => {
      const added = await more?.({ ...record, ...reported })
      const next = (now: NodeRecord): NodeRecord => ({
        ...now,
        ...mapFieldsOf(now, input, isRenamed ? name : undefined),
        ...reported,
        ...keptWith(now.kept, kept),
        ...ofPlaceholder(now),
        ...added,
      })
      return saveRecord(lab, node_id, next, undoGroup)
    }
    const saved = await saveOrRevert(lab, save, async () => {
      if (!isSent) return
      await send(formerOf(record, update))
      await replug(labs, lab, { ...record, properties: { ...record.properties, ...changed } }, agentFor)
    })
    if (isSent) await replug(labs, lab, record, agentFor)
    return saved
  }
  try {
    return await (isSent ? withImages(agentFor(compute_id), () => lab.change(change)) : change())
  } finally {
    if (wanted !== record.name) lab.claimed.delete(nameClaim(name))
  }
}

/** The members that have another value; null and undefined change nothing. */
const otherThan = (before: object, wanted: Settings): Settings =>
  Object.fromEntries(
    Object.entries(withoutNulls(wanted)).filter(
      ([key, value]) => JSON.stringify(value) !== JSON.stringify((before as Settings)[key]),
    ),
  )

/** What the map shows of a node after a change. A label that is its name follows a `newName`. */
function mapFieldsOf(now: NodeRecord, input: LabNodeUpdate, newName: string | undefined): Partial<NodeRecord> {
  const given = withoutNulls(omit(input, 'name', 'properties', 'kept', 'console', 'console_type'))
  if (newName === undefined || input.label !== undefined || now.label?.text !== now.name) return given
  return { label: { ...now.label, text: newName }, ...given }
}

/** Saves a changed record, and the new name of the node in those that start after it. 404 for a node that was deleted meanwhile. */
function saveRecord(
  lab: Lab,
  id: string,
  change: (now: NodeRecord) => NodeRecord,
  undoGroup: UndoGroup,
): Promise<LabNode> {
  return lab.edit(({ nodes }) => {
    const now = lab.node(id)
    const next = change(now)
    const later = next.name === now.name ? [] : afterRename(nodes.values(), now, next.name)
    const changes = new Changes()
    for (const record of [next, ...later]) changes.put('node', record.node_id, record)
    return {
      changes,
      news: () => [next, ...later].map((node) => ({ action: 'node.updated', event: lab.nodeView(node) })),
      get result() {
        return lab.nodeView(next)
      },
    }
  }, undoGroup)
}

/** The former values of settings that were changed on a compute. A text that there was not becomes empty: null would leave it as it is. */
const formerOf = (record: NodeRecord, update: Settings): Settings =>
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
