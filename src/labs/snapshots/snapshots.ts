import { isSegmentKind } from '../../labfile/segment-kinds.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { mapLimit } from '../../lib/async/map-limit.ts'
import { ApiError, conflict, ignoreNotFound, notFound } from '../../lib/errors/api-error.ts'
import { omit } from '../../lib/omit.ts'
import { Revert } from '../../lib/revert.ts'
import { isStateless } from '../../model/kinds/node.ts'
import { nameKey } from '../../model/lab/names.ts'
import type { LabProject } from '../../model/lab/project.ts'
import type { LabSnapshot } from '../../model/lab/snapshot.ts'
import type { RestoreStep } from '../../model/project-snapshot.ts'
import { type ComputeAgents, removeProject, sendNodeAction } from '../computes/agents.ts'
import {
  Changes,
  LabDocument,
  type ProjectRecord,
  type Restoring,
  type SnapshotContent,
  type SnapshotRecord,
} from '../lab/document.ts'
import { withoutNulls } from '../lab/fields.ts'
import type { Lab } from '../lab/lab.ts'
import { nodeRefOf } from '../lab/node-on-compute.ts'
import type { Labs } from '../service.ts'
import { scoreOf } from '../tasks/tasks.ts'
import { afterRestoreEvent, type RestoreEvent, type RestoreFacts } from './restore-states.ts'

/** The most snapshots of a project. */
export const maxSnapshots = 100

export const contentOf = ({ project, nodes, links, drawings, tasks }: LabDocument): SnapshotContent => ({
  project,
  node: [...nodes.values()],
  link: [...links.values()],
  drawing: [...drawings.values()],
  ...(tasks !== undefined && { tasks }),
})

/** The document of a lab as a snapshot has it. */
export function documentOf(kept: SnapshotContent): LabDocument {
  const changes = new Changes().project(kept.project)
  for (const it of kept.node) changes.put('node', it.node_id, it)
  for (const it of kept.link) changes.put('link', it.link_id, it)
  for (const it of kept.drawing) changes.put('drawing', it.drawing_id, it)
  if (kept.tasks !== undefined) changes.tasks(kept.tasks)
  return new LabDocument(changes.entries)
}

export const snapshotView = (
  lab: Lab,
  { computes: _, moved: __, lastRunning = {}, running = Object.keys(lastRunning).length, ...record }: SnapshotRecord,
): LabSnapshot => ({ ...record, project_id: lab.id, running })

/**
 * Takes a snapshot of a lab, on all its computes at the same time, when changes of nodes and links under way have ended; those that come
 * meanwhile wait. A failure leaves nothing. 409 when they do not end.
 */
export function takeSnapshot(labs: Labs, { id }: Lab, name: string, agentFor: ComputeAgents): Promise<LabSnapshot> {
  return labs.access.exclusively(id, async (lab) => {
    await finishTaking(lab, agentFor)
    const { snapshots } = lab.document
    if (snapshots.size >= maxSnapshots)
      throw conflict(`The project has reached the limit of ${maxSnapshots} snapshots: delete one first`)
    const namesake = [...snapshots.values()].find((snapshot) => nameKey(snapshot.name) === nameKey(name))
    if (namesake !== undefined)
      throw conflict(`name: a snapshot ${namesake.name} already exists; choose another name`, { code: 'name-taken' })
    const snapshot_id = crypto.randomUUID()
    await using revert = new Revert(ignore('opening the project removes the rest'))
    revert.add(() => finishTaking(lab, agentFor))
    revert.add(() => labs.documents.putSideDocument(snapshot_id, undefined))
    const takeAll = async () => {
      const kept = contentOf(lab.document)
      await setProject(lab, ({ snapshotInProgress: _, ...it }) => ({ ...it, snapshotInProgress: snapshot_id }))
      const { computes } = kept.project
      const all = await Promise.allSettled(computes.map((id) => agentFor(id).snapshots.take(lab.id, snapshot_id)))
      const taken = all.map((outcome) => {
        if (outcome.status === 'rejected') throw outcome.reason
        return outcome.value
      })
      return { kept, taken, computes }
    }
    const { kept, taken, computes } = await labs.parts.withOpen(lab, agentFor, () => lab.exclusive(takeAll))
    await labs.documents.putSideDocument(snapshot_id, kept)
    const lastRunning: NonNullable<SnapshotRecord['lastRunning']> = Object.assign({}, ...taken.map((part) => part.ran))
    const record: SnapshotRecord = {
      snapshot_id,
      name,
      created_at: Math.floor(Date.now() / 1000),
      computes,
      size: taken.reduce((sum, { size }) => sum + size, 0),
      ...{
        lastRunning,
        running: kept.node.filter((node) => node.node_id in lastRunning && !isSegmentKind(node.node_type)).length,
      },
    }
    await lab.edit(({ project: { snapshotInProgress: _, ...project } }) => ({
      changes: new Changes().put('snapshot', snapshot_id, record).project(project),
      news: () => [{ action: 'snapshot.created', event: snapshotView(lab, record) }],
      result: undefined,
    }))
    revert.commit()
    return snapshotView(lab, record)
  })
}

export function removeSnapshot(labs: Labs, { id }: Lab, snapshotId: string, agentFor: ComputeAgents): Promise<void> {
  return labs.access.exclusively(id, async (lab) => {
    const record = find(lab, snapshotId)
    for (const computeId of record.computes)
      await agentFor(computeId).snapshots.remove(lab.id, record.snapshot_id).catch(ignoreNotFound)
    await lab.edit(() => ({
      changes: new Changes().remove('snapshot', record.snapshot_id),
      news: () => [{ action: 'snapshot.deleted', event: snapshotView(lab, record) }],
      result: undefined,
    }))
    await labs.documents.putSideDocument(record.snapshot_id, undefined)
  })
}

/**
 * Restores a lab to a snapshot. First all computes copy the files of the snapshot. Then the restore is saved in the record, and all computes
 * exchange the files: a service that is killed from there on finishes the restore at its next start. When a compute fails, or the document
 * cannot be saved, the exchange is undone and the lab is as before; nodes that ran are started again. It waits for changes as a snapshot does.
 */
export function restoreSnapshot(
  labs: Labs,
  { id }: Lab,
  snapshotId: string,
  agentFor: ComputeAgents,
): Promise<LabProject> {
  return labs.access.exclusively(id, async (lab) => {
    const record = find(lab, snapshotId)
    const { snapshot_id } = record
    // Refused before anything is changed: an archive may bring snapshots of any size.
    lab.requireRoomFor(replacing(lab.document, await keptOf(labs, record)).entries)
    const all = (step: RestoreStep) => stepOnAll(lab, snapshot_id, { step, computes: record.computes, agentFor })
    await lab.exclusive(async () => {
      await using revert = new Revert(ignore('the next restore removes the rest'))
      revert.add(() => all('undo'))
      await all('prepare')
      revert.commit()
      labs.jobs.cancelAllOf(lab.id, 'A snapshot was restored', { only: 'start' })
      await restorePrepared(labs, lab, record, agentFor)
    })
    lab.emit({ action: 'snapshot.restored', event: snapshotView(lab, record) })
    return lab.project()
  })
}

async function restorePrepared(labs: Labs, lab: Lab, record: SnapshotRecord, agentFor: ComputeAgents): Promise<void> {
  await moveRestore(lab, 'begin', { snapshot_id: record.snapshot_id, lastRunning: runningIn(lab) })
  try {
    await exchange(labs, lab, record, agentFor)
  } catch (error) {
    // Where this cannot be saved, the next start finds nothing to exchange, and turns back then.
    await moveRestore(lab, 'fail').catch(ignore('the files are exchanged back in any case'))
    await undoRestore(lab, record, agentFor).catch(ignore('opening the project undoes the restore'))
    if (lab.isOpen) await runAgain(labs, lab, agentFor).catch(ignore('the client gets the first error'))
    throw error
  }
  await recoverSnapshots(labs, lab, agentFor).catch(ignore('opening the project removes the old files'))
  if (lab.isOpen) await runAgain(labs, lab, agentFor)
}

async function runAgain(labs: Labs, lab: Lab, agentFor: ComputeAgents): Promise<void> {
  await labs.parts.reopen(lab, agentFor)
  await runRestored(lab, agentFor)
}

/** The document of a snapshot, with the computes to which the lab was moved since; 409. */
export async function keptOf(labs: Labs, { snapshot_id, moved }: SnapshotRecord): Promise<SnapshotContent> {
  const kept = (await labs.documents.readSideDocument(snapshot_id)) as SnapshotContent | undefined
  if (kept === undefined) throw conflict('The document of this snapshot is missing: delete the snapshot')
  if (moved === undefined) return kept
  const now = (id: string) => moved[id] ?? id
  return {
    ...kept,
    project: { ...kept.project, computes: [...new Set(kept.project.computes.map(now))] },
    node: kept.node.map((node) => ({ ...node, compute_id: now(node.compute_id) })),
    link: kept.link.map((link) => {
      const { wiring } = link
      return wiring.type === 'direct' ? { ...link, wiring: { ...wiring, compute_id: now(wiring.compute_id) } } : link
    }),
  }
}

/** The nodes that run, except those of stateless kinds, which run again by themselves. */
function runningIn(lab: Lab): NonNullable<Restoring['lastRunning']> {
  const running = [...lab.document.nodes.values()].flatMap(({ node_id, node_type }) => {
    const status = lab.reported.get(node_id)?.status
    const runs = (status === 'started' || status === 'suspended') && !isStateless(node_type)
    return runs ? [[node_id, status] as const] : []
  })
  return Object.fromEntries(running)
}

/** Stops the nodes, exchanges the files on all computes, and then the document. Each step may be done already. */
async function exchange(labs: Labs, lab: Lab, record: SnapshotRecord, agentFor: ComputeAgents): Promise<void> {
  const { snapshot_id, computes } = record
  const kept = await keptOf(labs, record)
  await labs.parts.close(lab, agentFor)
  await stepOnAll(lab, snapshot_id, { step: 'commit', computes, agentFor })
  await lab.edit((document) => {
    const { project } = document
    const changes = replacing(document, kept)
    // These fields keep their present values.
    const { name, is_open, revision, path, restoring } = project
    const { archiveAttempts, stop_at, ttl_deletes, moving, formerComputes, pendingLinks, class: ofClass } = project
    const present = {
      archiveAttempts,
      stop_at,
      ttl_deletes,
      moving,
      formerComputes,
      pendingLinks,
      restoring,
      class: ofClass,
    }
    const then = omit(
      kept.project,
      'snapshotInProgress',
      'score',
      ...(Object.keys(present) as (keyof typeof present)[]),
    )
    const emptied = project.computes.filter((id) => !computes.includes(id))
    const score = kept.tasks && scoreOf(kept.tasks, undefined)
    const now = { ...then, name, is_open, revision, path, ...withoutNulls({ ...present, score }) }
    changes.project(afterRestoreEvent(now, 'commit', { snapshot_id, formerComputes: emptied }))
    return { changes, news: () => [], result: undefined, isChecked: true }
  })
  lab.history.clear()
  labs.registry.put(lab.id, lab.document.project).catch(ignore('the next change of the project is saved again'))
}

/** The changes that give a lab the nodes, links and drawings of a snapshot. */
function replacing({ nodes, links, drawings }: LabDocument, kept: SnapshotContent): Changes {
  const changes = new Changes()
  for (const node of nodes.keys()) changes.remove('node', node)
  for (const link of links.keys()) changes.remove('link', link)
  for (const drawing of drawings.keys()) changes.remove('drawing', drawing)
  // What was done in the lab as it is now says nothing of it as it was.
  changes.tasks(undefined).taskResults(undefined)
  const content = documentOf(kept)
  for (const [key, record] of content.entries()) changes.entries.set(key, record)
  changes.order('node', [...content.nodes.keys()])
  changes.order('link', [...content.links.keys()])
  changes.order('drawing', [...content.drawings.keys()])
  return changes
}

/** Recovers what was interrupted: removes a partial snapshot; finishes a restore, or undoes it when a compute refuses its part. */
export async function recoverSnapshots(labs: Labs, lab: Lab, agentFor: ComputeAgents): Promise<void> {
  await finishTaking(lab, agentFor).catch(ignore('the next opening of the project tries again'))
  const interrupted = lab.document.project.restoring
  if (interrupted === undefined) return
  const { snapshot_id } = interrupted
  const record = lab.document.snapshots.get(snapshot_id)
  if (interrupted.phase === 'swapping') {
    try {
      if (record === undefined) throw conflict('The snapshot was deleted')
      await exchange(labs, lab, record, agentFor)
    } catch (error) {
      if (error instanceof ApiError && error.code === 'compute-unreachable') throw error
      await moveRestore(lab, 'fail')
    }
  }
  const { phase, formerComputes = [] } = lab.document.project.restoring ?? interrupted
  if (phase === 'rolling-back') await undoRestore(lab, record, agentFor)
  if (phase !== 'committed') return
  const computes = record?.computes ?? lab.document.project.computes
  await stepOnAll(lab, snapshot_id, { step: 'finish', computes, agentFor })
  for (const computeId of formerComputes)
    await removeProject(agentFor(computeId), lab.id).catch(ignore('the lab has no nodes on that compute any more'))
  if (Object.keys(record?.lastRunning ?? {}).length === 0) await moveRestore(lab, 'end')
}

/** Exchanges the files back; `runRestored` then starts the nodes that ran. */
async function undoRestore(lab: Lab, record: SnapshotRecord | undefined, agentFor: ComputeAgents): Promise<void> {
  const { restoring, computes } = lab.document.project
  if (restoring === undefined) return
  const { snapshot_id, lastRunning = {} } = restoring
  await stepOnAll(lab, snapshot_id, { step: 'undo', computes: record?.computes ?? computes, agentFor })
  const isOver = Object.keys(lastRunning).length === 0
  await setProject(lab, (project) => {
    const reverted = afterRestoreEvent(project, 'revert', { snapshot_id, lastRunning })
    return isOver ? afterRestoreEvent(reverted, 'end') : reverted
  })
}

async function finishTaking(lab: Lab, agentFor: ComputeAgents): Promise<void> {
  const { snapshotInProgress, computes } = lab.document.project
  if (snapshotInProgress === undefined) return
  for (const id of computes) await agentFor(id).snapshots.remove(lab.id, snapshotInProgress).catch(ignoreNotFound)
  await setProject(lab, ({ snapshotInProgress: _, ...project }) => project)
}

/** Starts the nodes that ran in the restored snapshot, or before a restore that was undone. */
export async function runRestored(lab: Lab, agentFor: ComputeAgents): Promise<void> {
  const { restoring } = lab.document.project
  if (restoring?.phase !== 'committed' && restoring?.phase !== 'rolled-back') return
  const { lastRunning = {} } =
    (restoring.phase === 'committed' ? lab.document.snapshots.get(restoring.snapshot_id) : restoring) ?? {}
  await mapLimit(Object.entries(lastRunning), async ([id, status]) => {
    const node = lab.document.nodes.get(id)
    if (node === undefined) return
    const run = async (action: 'start' | 'suspend') => {
      lab.keepReported(await sendNodeAction(agentFor(node.compute_id), nodeRefOf(lab, node), action))
      lab.emit({ action: 'node.updated', event: lab.nodeView(node) })
    }
    try {
      await run('start')
      if (status === 'suspended') await run('suspend')
    } catch (error) {
      const message = `${node.name} could not be started again: ${(error as Error).message}`
      lab.emit({ action: 'log.warning', event: { message } })
    }
  })
  await moveRestore(lab, 'end')
}

async function stepOnAll(
  lab: Lab,
  snapshotId: string,
  { step, computes, agentFor }: { step: RestoreStep; computes: readonly string[]; agentFor: ComputeAgents },
): Promise<void> {
  for (const computeId of computes) await agentFor(computeId).snapshots.restore(lab.id, snapshotId, step)
}

/** Saves the state of a restore after an event. */
const moveRestore = (lab: Lab, event: RestoreEvent, facts?: RestoreFacts): Promise<void> =>
  setProject(lab, (project) => afterRestoreEvent(project, event, facts))

const setProject = (lab: Lab, change: (project: ProjectRecord) => ProjectRecord): Promise<void> =>
  lab.edit(({ project }) => ({ changes: new Changes().project(change(project)), news: () => [], result: undefined }))

function find(lab: Lab, id: string): SnapshotRecord {
  const found = lab.document.snapshots.get(id.toLowerCase())
  if (found !== undefined) return found
  throw notFound(`snapshot_id: the project ${lab.document.project.name} has no snapshot ${id}`)
}
