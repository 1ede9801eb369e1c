import { ignore } from '../async/ignore.ts'
import { mapLimit } from '../async/map-limit.ts'
import { ApiError, conflict, ignoreNotFound, notFound } from '../errors/api-error.ts'
import { isStateless } from '../kinds/node.ts'
import { isSegmentKind } from '../labfile/segment-kinds.ts'
import type { LabProject } from '../model/lab/project.ts'
import type { LabSnapshot } from '../model/lab/snapshot.ts'
import type { RestoreStep } from '../model/project-snapshot.ts'
import {
  Changes,
  type DrawingRecord,
  LabDocument,
  type LinkRecord,
  type NodeRecord,
  type ProjectRecord,
  type Restoring,
  type SnapshotRecord,
} from './document.ts'
import { withoutNulls } from './fields.ts'
import type { Lab } from './lab.ts'
import type { ComputeClients, Labs } from './labs.ts'
import { nameKey } from './names.ts'
import { nodePathOf } from './node-on-compute.ts'

/** The most snapshots of a project. */
export const maxSnapshots = 100

/** The document of a snapshot. */
type Kept = Pick<LabDocument, 'project'> & {
  readonly node: readonly NodeRecord[]
  readonly link: readonly LinkRecord[]
  readonly drawing: readonly DrawingRecord[]
}
export const contentOf = ({ project, nodes, links, drawings }: LabDocument): Kept => ({
  project,
  node: [...nodes.values()],
  link: [...links.values()],
  drawing: [...drawings.values()],
})

/** The document of a lab as a snapshot has it. */
export function documentOf(kept: Kept): LabDocument {
  const changes = new Changes().project(kept.project)
  for (const it of kept.node) changes.put('node', it.node_id, it)
  for (const it of kept.link) changes.put('link', it.link_id, it)
  for (const it of kept.drawing) changes.put('drawing', it.drawing_id, it)
  return new LabDocument(changes.entries)
}

export const snapshotView = (
  lab: Lab,
  { computes: _, moved: __, ran = {}, running = Object.keys(ran).length, ...record }: SnapshotRecord,
): LabSnapshot => ({ ...record, project_id: lab.id, running })

/**
 * Takes a snapshot of a lab, on all its computes at the same time, when changes of nodes and links under way have ended; those that come
 * meanwhile wait. A failure leaves nothing. 409 when they do not end.
 */
export function takeSnapshot(labs: Labs, { id }: Lab, name: string, clientFor: ComputeClients): Promise<LabSnapshot> {
  return labs.exclusively(id, async (lab) => {
    await finishTaking(lab, clientFor)
    const { snapshots } = lab.document
    if (snapshots.size >= maxSnapshots)
      throw conflict(`The project has reached the limit of ${maxSnapshots} snapshots: delete one first`)
    const taken = [...snapshots.values()].find((it) => nameKey(it.name) === nameKey(name))
    if (taken !== undefined)
      throw conflict(`name: a snapshot ${taken.name} already exists; choose another name`, { word: 'name-taken' })
    const snapshot_id = crypto.randomUUID()
    try {
      const take = async () => {
        const kept = contentOf(lab.document)
        await setProject(lab, ({ taking: _, ...it }) => ({ ...it, taking: snapshot_id }))
        const { computes } = kept.project
        const all = await Promise.allSettled(computes.map((id) => clientFor(id).takeSnapshot(lab.id, snapshot_id)))
        const taken = all.map((it) => {
          if (it.status === 'rejected') throw it.reason
          return it.value
        })
        return { kept, taken, computes }
      }
      const { kept, taken, computes } = await labs.whileOpen(lab, clientFor, () => lab.exclusive(take))
      await labs.putSideDocument(snapshot_id, kept)
      const ran: NonNullable<SnapshotRecord['ran']> = Object.assign({}, ...taken.map((it) => it.ran))
      const record: SnapshotRecord = {
        ...{ snapshot_id, name, created_at: Math.floor(Date.now() / 1000), computes },
        size: taken.reduce((sum, { size }) => sum + size, 0),
        ...{ ran, running: kept.node.filter((it) => it.node_id in ran && !isSegmentKind(it.node_type)).length },
      }
      await lab.edit(({ project: { taking: _, ...project } }) => ({
        changes: new Changes().put('snapshot', snapshot_id, record).project(project),
        news: () => [{ action: 'snapshot.created', event: snapshotView(lab, record) }],
        result: undefined,
      }))
      return snapshotView(lab, record)
    } catch (error) {
      await labs.putSideDocument(snapshot_id, undefined).catch(ignore('the client gets the first error'))
      await finishTaking(lab, clientFor).catch(ignore('opening the project removes the rest'))
      throw error
    }
  })
}

export function removeSnapshot(labs: Labs, { id }: Lab, snapshotId: string, clientFor: ComputeClients): Promise<void> {
  return labs.exclusively(id, async (lab) => {
    const record = find(lab, snapshotId)
    for (const computeId of record.computes)
      await clientFor(computeId).removeSnapshot(lab.id, record.snapshot_id).catch(ignoreNotFound)
    await lab.edit(() => ({
      changes: new Changes().remove('snapshot', record.snapshot_id),
      news: () => [{ action: 'snapshot.deleted', event: snapshotView(lab, record) }],
      result: undefined,
    }))
    await labs.putSideDocument(record.snapshot_id, undefined)
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
  clientFor: ComputeClients,
): Promise<LabProject> {
  return labs.exclusively(id, async (lab) => {
    const record = find(lab, snapshotId)
    const { snapshot_id } = record
    // Refused before anything is changed: an archive may bring snapshots of any size.
    lab.requireRoomFor(replacing(lab.document, await keptOf(labs, record)).entries)
    const all = (step: RestoreStep) => stepOnAll(lab, snapshot_id, { step, computes: record.computes, clientFor })
    await lab.exclusive(async () => {
      try {
        await all('prepare')
      } catch (error) {
        await all('undo').catch(ignore('the next restore removes the rest'))
        throw error
      }
      labs.jobs.endOf(lab.id, 'A snapshot was restored', { only: 'start' })
      await restorePrepared(labs, lab, record, clientFor)
    })
    lab.emit({ action: 'snapshot.restored', event: snapshotView(lab, record) })
    return lab.project()
  })
}

async function restorePrepared(labs: Labs, lab: Lab, record: SnapshotRecord, clientFor: ComputeClients): Promise<void> {
  await mark(lab, { snapshot_id: record.snapshot_id, way: 'forward', ran: runningIn(lab) })
  try {
    await exchange(labs, lab, record, clientFor)
  } catch (error) {
    // Where this cannot be saved, the next start finds nothing to exchange, and turns back then.
    await turnBack(lab).catch(ignore('the files are exchanged back in any case'))
    await undoRestore(lab, record, clientFor).catch(ignore('opening the project undoes the restore'))
    if (lab.isOpen) await runAgain(labs, lab, clientFor).catch(ignore('the client gets the first error'))
    throw error
  }
  await recoverSnapshots(labs, lab, clientFor).catch(ignore('opening the project removes the old files'))
  if (lab.isOpen) await runAgain(labs, lab, clientFor)
}

async function runAgain(labs: Labs, lab: Lab, clientFor: ComputeClients): Promise<void> {
  await labs.reopen(lab, clientFor)
  await runRestored(lab, clientFor)
}

/** The document of a snapshot, with the computes to which the lab was moved since; 409. */
export async function keptOf(labs: Labs, { snapshot_id, moved }: SnapshotRecord): Promise<Kept> {
  const kept = (await labs.readSideDocument(snapshot_id)) as Kept | undefined
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
function runningIn(lab: Lab): NonNullable<Restoring['ran']> {
  const running = [...lab.document.nodes.values()].flatMap(({ node_id, node_type }) => {
    const status = lab.shown.get(node_id)?.status
    const runs = (status === 'started' || status === 'suspended') && !isStateless(node_type)
    return runs ? [[node_id, status] as const] : []
  })
  return Object.fromEntries(running)
}

/** Stops the nodes, exchanges the files on all computes, and then the document. Each step may be done already. */
async function exchange(labs: Labs, lab: Lab, record: SnapshotRecord, clientFor: ComputeClients): Promise<void> {
  const { snapshot_id, computes } = record
  const kept = await keptOf(labs, record)
  await labs.closeOnComputes(lab, clientFor)
  await stepOnAll(lab, snapshot_id, { step: 'commit', computes, clientFor })
  await lab.edit((document) => {
    const { project } = document
    const changes = replacing(document, kept)
    // These fields keep their present values.
    const { name, is_open, revision, path, archiving, stop_at, ttl_deletes, moving, left: copies, unjoined } = project
    const {
      taking: _,
      archiving: _______,
      stop_at: __,
      ttl_deletes: ___,
      moving: ____,
      left: _____,
      unjoined: ______,
      ...then
    } = kept.project
    const left = project.computes.filter((id) => !computes.includes(id))
    const more = withoutNulls({ archiving, stop_at, ttl_deletes, moving, left: copies, unjoined })
    const now = { name, is_open, revision, path, ...more }
    changes.project({ ...then, ...now, restoring: { snapshot_id, way: 'on', left } })
    return { changes, news: () => [], result: undefined, isChecked: true }
  })
  labs.replaced(lab)
}

/** The changes that give a lab the nodes, links and drawings of a snapshot. */
function replacing({ nodes, links, drawings }: LabDocument, kept: Kept): Changes {
  const changes = new Changes()
  for (const node of nodes.keys()) changes.remove('node', node)
  for (const link of links.keys()) changes.remove('link', link)
  for (const drawing of drawings.keys()) changes.remove('drawing', drawing)
  const content = documentOf(kept)
  for (const [key, record] of content.entries()) changes.entries.set(key, record)
  changes.order('node', [...content.nodes.keys()])
  changes.order('link', [...content.links.keys()])
  changes.order('drawing', [...content.drawings.keys()])
  return changes
}

/** Settles what was interrupted: removes a partial snapshot; finishes a restore, or undoes it when a compute refuses its part. */
export async function recoverSnapshots(labs: Labs, lab: Lab, clientFor: ComputeClients): Promise<void> {
  await finishTaking(lab, clientFor).catch(ignore('the next opening of the project tries again'))
  const begun = lab.document.project.restoring
  if (begun === undefined) return
  const { snapshot_id } = begun
  const record = lab.document.snapshots.get(snapshot_id)
  if (begun.way === 'forward') {
    try {
      if (record === undefined) throw conflict('The snapshot was deleted')
      await exchange(labs, lab, record, clientFor)
    } catch (error) {
      if (error instanceof ApiError && error.word === 'compute-unreachable') throw error
      await turnBack(lab)
    }
  }
  const { way, left = [] } = lab.document.project.restoring ?? begun
  if (way === 'back') await undoRestore(lab, record, clientFor)
  if (way !== 'on') return
  const computes = record?.computes ?? lab.document.project.computes
  await stepOnAll(lab, snapshot_id, { step: 'finish', computes, clientFor })
  for (const computeId of left)
    await clientFor(computeId).removeProject(lab.id).catch(ignore('the lab has no nodes on that compute any more'))
  if (Object.keys(record?.ran ?? {}).length === 0) await mark(lab, undefined)
}

/** Exchanges the files back; `runRestored` then starts the nodes that ran. */
async function undoRestore(lab: Lab, record: SnapshotRecord | undefined, clientFor: ComputeClients): Promise<void> {
  const { restoring, computes } = lab.document.project
  if (restoring === undefined) return
  const { snapshot_id, ran = {} } = restoring
  await stepOnAll(lab, snapshot_id, { step: 'undo', computes: record?.computes ?? computes, clientFor })
  await mark(lab, Object.keys(ran).length === 0 ? undefined : { snapshot_id, way: 'undone', ran })
}

/** Notes that a restore is undone. */
const turnBack = (lab: Lab): Promise<void> =>
  setProject(lab, ({ restoring, ...project }) => ({
    ...project,
    ...(restoring && { restoring: { ...restoring, way: 'back' as const } }),
  }))

async function finishTaking(lab: Lab, clientFor: ComputeClients): Promise<void> {
  const { taking, computes } = lab.document.project
  if (taking === undefined) return
  for (const id of computes) await clientFor(id).removeSnapshot(lab.id, taking).catch(ignoreNotFound)
  await setProject(lab, ({ taking: _, ...project }) => project)
}

/** Starts the nodes that ran in the restored snapshot, or before a restore that was undone. */
export async function runRestored(lab: Lab, clientFor: ComputeClients): Promise<void> {
  const { restoring } = lab.document.project
  if (restoring?.way !== 'on' && restoring?.way !== 'undone') return
  const { ran = {} } = (restoring.way === 'on' ? lab.document.snapshots.get(restoring.snapshot_id) : restoring) ?? {}
  await mapLimit(Object.entries(ran), async ([id, status]) => {
    const node = lab.document.nodes.get(id)
    if (node === undefined) return
    const act = async (action: 'start' | 'suspend') => {
      lab.show(await clientFor(node.compute_id).act(nodePathOf(lab, node), action))
      lab.emit({ action: 'node.updated', event: lab.nodeView(node) })
    }
    try {
      await act('start')
      if (status === 'suspended') await act('suspend')
    } catch (error) {
      const message = `${node.name} could not be started again: ${(error as Error).message}`
      lab.emit({ action: 'log.warning', event: { message } })
    }
  })
  await mark(lab, undefined)
}

async function stepOnAll(
  lab: Lab,
  snapshotId: string,
  { step, computes, clientFor }: { step: RestoreStep; computes: readonly string[]; clientFor: ComputeClients },
): Promise<void> {
  for (const computeId of computes) await clientFor(computeId).restoreSnapshot(lab.id, snapshotId, step)
}

const mark = (lab: Lab, restoring: Restoring | undefined): Promise<void> =>
  setProject(lab, ({ restoring: _, ...project }) => ({ ...project, ...(restoring && { restoring }) }))

const setProject = (lab: Lab, change: (project: ProjectRecord) => ProjectRecord): Promise<void> =>
  lab.edit(({ project }) => ({ changes: new Changes().project(change(project)), news: () => [], result: undefined }))

function find(lab: Lab, id: string): SnapshotRecord {
  const found = lab.document.snapshots.get(id.toLowerCase())
  if (found !== undefined) return found
  throw notFound(`snapshot_id: the project ${lab.document.project.name} has no snapshot ${id}`)
}
