import { ApiError, conflict, ignoreNotFound } from '../../lib/errors/api-error.ts'
import type { NodeUpdate } from '../../model/kinds/node.ts'
import { kindOf } from '../../model/kinds/node.ts'
import type { LabEdits } from '../../model/lab/edits.ts'
import type { LabEvent } from '../../model/lab/event.ts'
import { nameKey } from '../../model/lab/names.ts'
import { isKnownKind } from '../../model/lab/node.ts'
import type { LabProject } from '../../model/lab/project.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import { Changes, type DrawingRecord, type LinkRecord, type NodeRecord, type ProjectRecord } from '../lab/document.ts'
import { withoutNulls } from '../lab/fields.ts'
import { consoleOf, isSame, type PastEdit, settingsOf, type UndoGroup } from '../lab/history.ts'
import type { Lab } from '../lab/lab.ts'
import { nodeRefOf, reportedFields } from '../lab/node-on-compute.ts'
import { saveOrRevert } from '../lab/save-or-revert.ts'
import { claimEnds, requireUnlinked, sameEnd, withLinkLock } from '../links/links.ts'
import { replug } from '../links/replug.ts'
import { impair, unwire, unwireAll, wireAgain } from '../links/wiring.ts'
import { claimNames } from '../nodes/node-names.ts'
import { remake } from '../nodes/nodes.ts'
import { joinLinks, makeNode } from '../nodes/placeholders.ts'
import type { Labs } from '../service.ts'
import { editText } from './edit-text.ts'

/** What undo and redo take for the caller. */
export function editsOf({ history, caller }: Lab): LabEdits {
  const shown = (way: 'undo' | 'redo') => {
    const edit = history.lastOf(way, caller)
    return edit === undefined ? null : { text: textOf(way, edit), by: edit.madeBy ?? null }
  }
  return { undo: shown('undo'), redo: shown('redo') }
}

/** An undo is noted as the reverse of what it undid. */
const textOf = (way: 'undo' | 'redo', { before, after }: PastEdit): string =>
  editText(way === 'undo' ? { before, after } : { before: after, after: before })

/**
 * Reverts or repeats the caller's last edit of a lab, or the last one of all. `check` throws for a project name that the caller may not
 * give. 409 with the reason.
 */
export function undoEdit(
  labs: Labs,
  { id }: Lab,
  { way, check, whose = 'own' }: { way: 'undo' | 'redo'; check: (name: string) => void; whose?: 'own' | 'all' },
  agentFor: ComputeAgents,
): Promise<LabProject> {
  return labs.access.exclusively(id, async (lab) => {
    const last = lab.history.last(way)
    const edit = whose === 'all' ? last : lab.history.lastOf(way, lab.caller)
    if (last === undefined) throw conflict(`Nothing to ${way}: the history is kept while the project is open`)
    if (edit === undefined)
      throw conflict(`You have nothing to ${way}. The last edit (${textOf(way, last)}) is by ${nameOf(last)}`)
    requireOnTop(lab, edit, way)
    const then = edit.before.get('project') as ProjectRecord | undefined
    if (then !== undefined) check(then.name)
    try {
      requireUnchanged(lab, edit)
    } catch (error) {
      lab.history.drop(edit)
      if (!(error instanceof ApiError)) throw error
      throw conflict(`Cannot ${way}: ${error.message}. The edit was removed from the history`, { cause: error })
    }
    await revert(labs, lab, edit, { by: way, ...withoutNulls({ consoles: edit.undoGroup.consoles }) }, agentFor)
    lab.history.drop(edit)
    return lab.project()
  })
}

const nameOf = ({ madeBy }: PastEdit): string => madeBy ?? 'somebody without a name'

/** 409 when somebody else has edited the same since. The edit can be reverted once that one is. */
function requireOnTop(lab: Lab, edit: PastEdit, way: 'undo' | 'redo'): void {
  if (way === 'redo') return
  const above = lab.history.since(edit).find((later) => later.madeBy !== edit.madeBy && touches(later, edit))
  if (above !== undefined)
    throw conflict(
      `Cannot undo (${editText(edit)}): ${nameOf(above)} has edited the same since (${editText(above)}), which has to be undone first`,
    )
}

/** Whether an edit changed what an earlier one did, or linked a node that it made. */
function touches(later: PastEdit, edit: PastEdit): boolean {
  for (const [key, value] of later.after) {
    if (edit.after.has(key)) return true
    const link = key.startsWith('link/') ? (value as LinkRecord | undefined) : undefined
    if (link?.nodes.some(({ node_id }) => edit.after.has(`node/${node_id}`) && !edit.before.get(`node/${node_id}`)))
      return true
  }
  return false
}

/** 409 when an entry was changed after the edit. */
function requireUnchanged(lab: Lab, edit: PastEdit): void {
  const { before, after } = edit
  const now = lab.document.read(after.keys())
  for (const [key, value] of after) {
    const [table = '', id = ''] = key.split('/')
    if (!isSame(key, now.get(key), value)) throw conflict(`the ${table} ${id} has changed since this edit`)
    if (table === 'link') requirePorts(lab, edit, key)
    const then = before.get(key) as NodeRecord | undefined
    if (table !== 'node') continue
    const other = [...lab.document.nodes.values()].find(
      (it) =>
        then !== undefined &&
        it.node_id !== id &&
        nameKey(it.name) === nameKey(then.name) &&
        !after.has(`node/${it.node_id}`),
    )
    if (other !== undefined) throw conflict(`another node now has the name ${other.name}`)
    const link = lab.document.linksOf(id).find(({ link_id }) => then === undefined && !after.has(`link/${link_id}`))
    if (link !== undefined) throw conflict(`the node ${id} was linked since this edit`)
  }
}

/** 409 when the ports of a link that is made again are linked, or its name is taken. */
function requirePorts(lab: Lab, { before, after }: PastEdit, key: string): void {
  const then = before.get(key) as LinkRecord | undefined
  if (then === undefined) return
  const own = new Set([...after.keys()].flatMap((it) => (it.startsWith('link/') ? [it.slice('link/'.length)] : [])))
  requireUnlinked(lab, [then], own)
}

/**
 * Reverts all edits of a group that has failed, except entries that another edit has changed since. The result: what could not be
 * reverted, for people.
 */
export async function rollBack(labs: Labs, lab: Lab, undoGroup: UndoGroup, agentFor: ComputeAgents): Promise<string[]> {
  const unreverted: string[] = []
  for (const edit of lab.history.of(undoGroup)) {
    const now = lab.document.read(edit.after.keys())
    const isOurs = ([key]: readonly [string, unknown]) => isSame(key, now.get(key), edit.after.get(key))
    const own = {
      ...edit,
      before: new Map([...edit.before].filter(isOurs)),
      after: new Map([...edit.after].filter(isOurs)),
    }
    for (const key of edit.after.keys()) if (!own.after.has(key)) unreverted.push(`${key} was changed since`)
    try {
      requireUnchanged(lab, own)
      await revert(labs, lab, own, { by: 'rollback' }, agentFor)
    } catch (error) {
      unreverted.push((error as Error).message)
    }
    lab.history.drop(edit)
  }
  return unreverted
}

/** Reverts an edit that was just found to be unchanged. The names that nodes get again are claimed meanwhile; 409 when one is. */
async function revert(
  labs: Labs,
  lab: Lab,
  edit: PastEdit,
  undoGroup: UndoGroup,
  agentFor: ComputeAgents,
): Promise<void> {
  const names = [...edit.before].flatMap(([key, value]) => {
    const then = key.startsWith('node/') ? (value as NodeRecord | undefined) : undefined
    const now = lab.document.read([key]).get(key) as NodeRecord | undefined
    return then === undefined || (now !== undefined && nameKey(now.name) === nameKey(then.name)) ? [] : [then.name]
  })
  const links = [...edit.before].flatMap(([key, value]) => {
    const then = key.startsWith('link/') ? (value as LinkRecord | undefined) : undefined
    const now = lab.document.read([key]).get(key)
    return then !== undefined && (now === undefined || isMoved(now, then)) ? [then] : []
  })
  const releaseNames = claimNames(lab, names)
  let releaseEnds = () => {}
  try {
    releaseEnds = claimEnds(lab, links)
    await lab.requireSavable()
    await revertAll(labs, lab, edit, undoGroup, agentFor)
  } finally {
    releaseNames()
    releaseEnds()
  }
}

/** Makes the reverse changes on the computes, and writes the former entries. Nodes come before the links that need them. */
async function revertAll(
  labs: Labs,
  lab: Lab,
  edit: PastEdit,
  undoGroup: UndoGroup,
  agentFor: ComputeAgents,
): Promise<void> {
  const entries = [...edit.before].map(([key, then]) => ({ key, then, now: lab.document.read([key]).get(key) }))
  const of = (table: string) => entries.filter(({ key }) => key.startsWith(`${table}/`))
  const write = async (records: readonly (readonly [key: string, record: unknown])[]) => {
    if (records.length === 0) return
    const news = records.map(([key, record]) => newsOf(lab, key, lab.document.read([key]).get(key), record))
    const changes = new Changes()
    for (const [key, record] of records) changes.entries.set(key, record)
    await lab.edit(() => ({ changes, news: () => news.map((make) => make()), result: undefined }), undoGroup)
  }
  /** Changes a link while no other request does, unless one has deleted it meanwhile. 409 when one has changed it. */
  const changeLink = (key: string, change: (present: LinkRecord) => Promise<void>): Promise<void> => {
    const id = key.slice('link/'.length)
    return withLinkLock(lab, [id], async () => {
      const present = lab.document.links.get(id)
      if (present === undefined) return
      // What has failed is reverted nevertheless: it would be left half done.
      if (undoGroup.by !== 'rollback' && !isSame(key, present, edit.after.get(key)))
        throw conflict(`Cannot revert the edit: the link ${id} was changed meanwhile`)
      await change(present)
    })
  }
  // All links that have to go are removed before one is added: two links that exchanged their ends occupy each other's ports.
  for (const { key, then, now } of of('link')) {
    if (then !== undefined && !isMoved(now, then)) continue
    await changeLink(key, async (present) => {
      await unwire(lab, present, agentFor)
      await saveOrRevert(
        lab,
        () => write([[key, undefined]]),
        () => wireAgain(labs, lab, present, agentFor),
      )
    })
  }
  for (const { key, then, now } of of('node')) {
    const [record, current] = [then as NodeRecord | undefined, now as NodeRecord | undefined]
    if (record === undefined) await removeFromCompute(lab, current as NodeRecord, agentFor)
    const isMade = current === undefined || (current.creationError !== undefined && record?.creationError === undefined)
    const next =
      record === undefined
        ? undefined
        : isMade
          ? await remade(lab, record, agentFor)
          : await changed(lab, current, record, { agentFor, console: isConsoleSet(edit, key, current) })
    await saveOrRevert(
      lab,
      () => write([[key, next]]),
      async () => {
        if (next === undefined) await remake(lab, current as NodeRecord, agentFor)
        else if (isMade) {
          await removeFromCompute(lab, next, agentFor)
          lab.reported.delete(next.node_id)
        } else {
          await changed(lab, next, current, { agentFor, console: isConsoleSet(edit, key, current) })
          await replug(labs, lab, next, agentFor)
        }
      },
    )
    if (record === undefined) lab.reported.delete((current as NodeRecord).node_id)
    else if (!isMade) await replug(labs, lab, current, agentFor)
  }
  const made = of('link').filter(({ then }) => then !== undefined)
  const created = made.filter(({ now, then }) => now === undefined || isMoved(now, then))
  const unwired = created.map(
    ({ then }): LinkRecord => ({ ...(then as LinkRecord), wiring: { type: 'none' }, capture: null }),
  )
  const ids = unwired.map(({ link_id }) => link_id)
  await withLinkLock(lab, ids, async () => {
    const joined = new Map((await joinLinks(labs, lab, unwired, agentFor)).map((link) => [link.link_id, link]))
    await saveOrRevert(
      lab,
      () => write(unwired.map((link) => [`link/${link.link_id}`, joined.get(link.link_id) ?? link] as const)),
      () => unwireAll(lab, [...joined.values()], agentFor),
    )
  })
  for (const { key, then, now } of made) {
    if (now === undefined || isMoved(now, then)) continue
    await changeLink(key, async (present) => {
      const { wiring, capture } = present
      const next: LinkRecord = { ...(then as LinkRecord), wiring, capture }
      await impair(lab, next, agentFor)
      await saveOrRevert(
        lab,
        () => write([[key, next]]),
        () => impair(lab, present, agentFor),
      )
    })
  }
  await write(of('drawing').map(({ key, then }) => [key, then] as const))
  const project = entries.find(({ key }) => key === 'project')
  if (project !== undefined)
    await labs.settings.set(lab, settingsOf(project.then as ProjectRecord), agentFor, undoGroup)
}

/** Whether a link was deleted and made again at other ports under the same id, which a lab file derives from its name. */
function isMoved(now: unknown, then: unknown): boolean {
  const [one, other] = [now as LinkRecord | undefined, then as LinkRecord | undefined]
  return one !== undefined && other !== undefined && !one.nodes.every((end) => sameEnd(other.nodes, end) !== undefined)
}

/** Removes a node from its compute. Its directory stays until the project is closed. */
async function removeFromCompute(lab: Lab, record: NodeRecord, agentFor: ComputeAgents): Promise<void> {
  if (isKnownKind(record.node_type))
    await agentFor(record.compute_id).nodes.remove(nodeRefOf(lab, record), { files: 'later' }).catch(ignoreNotFound)
}

/** Makes a deleted node again, in its old directory. */
async function remade(lab: Lab, record: NodeRecord, agentFor: ComputeAgents): Promise<NodeRecord> {
  const made = await makeNode(lab, record, agentFor)
  if (made.creationError !== undefined && record.creationError === undefined)
    throw conflict(`${record.name} cannot be recreated: ${made.creationError}`)
  if (!isKnownKind(made.node_type) || made.creationError !== undefined) return made
  lab.unknownReasons.delete(made.node_id)
  lab.keepReported(await agentFor(made.compute_id).nodes.get(nodeRefOf(lab, made)))
  return made
}

/** Whether the present console port of a node is the one that the edit set. */
const isConsoleSet = ({ undoGroup, after }: PastEdit, key: string, now: NodeRecord): boolean =>
  undoGroup.consoles?.has(key) === true && consoleOf(after.get(key)) === now.console

/** Changes a node back. `console`: also its console port. */
async function changed(
  lab: Lab,
  now: NodeRecord,
  then: NodeRecord,
  { agentFor, console }: { agentFor: ComputeAgents; console: boolean },
): Promise<NodeRecord> {
  const update: Record<string, unknown> = {}
  const taken = isKnownKind(now.node_type) ? kindOf(now.node_type).update.properties : {}
  // A compute shows more properties than an update accepts.
  for (const [key, value] of Object.entries(then.properties))
    if (key in taken && JSON.stringify(value) !== JSON.stringify(now.properties[key])) update[key] = value
  for (const key of ['name', 'console_type'] as const) if (then[key] !== now[key]) update[key] = then[key]
  if (console && then.console !== null && then.console !== now.console) update.console = then.console
  const next: NodeRecord = { ...then, console: now.console }
  if (Object.keys(update).length === 0 || !isKnownKind(now.node_type) || now.creationError !== undefined) return next
  try {
    const shown = await agentFor(now.compute_id).nodes.update(nodeRefOf(lab, now), update as NodeUpdate)
    lab.keepReported(shown)
    return { ...next, ...reportedFields(shown) }
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error
    throw conflict(`${now.name}: ${error.message}`)
  }
}

/** Prepares the event of an entry that is about to be written. */
function newsOf(lab: Lab, key: string, before: unknown, after: unknown): () => LabEvent {
  const [table = ''] = key.split('/')
  const change = after === undefined ? 'deleted' : before === undefined ? 'created' : 'updated'
  const value = after ?? before
  const event = (): LabEvent => {
    if (table === 'node') return { action: `node.${change}`, event: lab.nodeView(value as NodeRecord) }
    if (table === 'link') return { action: `link.${change}`, event: lab.linkView(value as LinkRecord) }
    return { action: `drawing.${change}`, event: lab.drawingView(value as DrawingRecord) }
  }
  if (after !== undefined) return event
  const last = event()
  return () => last
}
