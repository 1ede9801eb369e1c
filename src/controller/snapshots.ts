import { ignore } from '../async/ignore.ts'
import { conflict, notFound, unlessGone } from '../errors/api-error.ts'
import type { LabProject } from '../model/lab/project.ts'
import type { LabSnapshot } from '../model/lab/snapshot.ts'
import type { RestoreStep } from '../model/project-snapshot.ts'
import { requireStopped } from './archive.ts'
import { Changes, type ProjectRecord, type SnapshotRecord } from './document.ts'
import type { Lab } from './lab.ts'
import type { AskCompute, Labs } from './labs.ts'
import { nameKey } from './names.ts'

const maxSnapshots = 100

/** The document of a snapshot: entries of a lab by their keys. */
type Kept = Record<string, unknown>
const tables = ['node', 'link', 'drawing'] as const

export const snapshotView = (lab: Lab, { computes: _, ...record }: SnapshotRecord): LabSnapshot => ({
  ...record,
  project_id: lab.id,
})

/** Keeps a lab as it is, whose nodes are stopped, on all its computes. A failure leaves nothing. */
export function takeSnapshot(labs: Labs, lab: Lab, name: string, ask: AskCompute): Promise<LabSnapshot> {
  return labs.exclusively(lab.id, async () => {
    requireStopped(lab, 'kept')
    const { snapshots, project } = lab.document
    if (snapshots.size >= maxSnapshots)
      throw conflict(`The project has ${maxSnapshots} snapshots, the most that are kept: delete one first`)
    if ([...snapshots.values()].some((it) => nameKey(it.name) === nameKey(name)))
      throw conflict(`name: there is a snapshot ${name} already; choose another name`, { word: 'name-taken' })
    const snapshot_id = crypto.randomUUID()
    const undo: (() => Promise<unknown>)[] = []
    try {
      const { nodes, links, drawings } = lab.document
      const kept: Kept = {
        project,
        node: [...nodes.values()],
        link: [...links.values()],
        drawing: [...drawings.values()],
      }
      const sizes = await labs.whileOpen(lab, ask, async () => {
        const taken: number[] = []
        for (const id of project.computes) {
          taken.push((await ask(id).takeSnapshot(lab.id, snapshot_id)).size)
          undo.push(() => ask(id).removeSnapshot(lab.id, snapshot_id))
        }
        return taken
      })
      undo.push(() => labs.keepApart(snapshot_id, undefined))
      await labs.keepApart(snapshot_id, kept)
      const record: SnapshotRecord = {
        ...{ snapshot_id, name, created_at: Math.floor(Date.now() / 1000), computes: project.computes },
        size: sizes.reduce((sum, size) => sum + size, 0),
      }
      await lab.edit(() => ({
        changes: new Changes().put('snapshot', snapshot_id, record),
        news: () => [{ action: 'snapshot.created', event: snapshotView(lab, record) }],
        result: undefined,
      }))
      return snapshotView(lab, record)
    } catch (error) {
      for (const step of undo.reverse()) await step().catch(ignore('why it could not be kept matters more'))
      throw error
    }
  })
}

export function removeSnapshot(labs: Labs, lab: Lab, id: string, ask: AskCompute): Promise<void> {
  return labs.exclusively(lab.id, async () => {
    const record = find(lab, id)
    for (const computeId of record.computes)
      await ask(computeId).removeSnapshot(lab.id, record.snapshot_id).catch(unlessGone)
    await lab.edit(() => ({
      changes: new Changes().remove('snapshot', record.snapshot_id),
      news: () => [{ action: 'snapshot.deleted', event: snapshotView(lab, record) }],
      result: undefined,
    }))
    await labs.keepApart(record.snapshot_id, undefined)
  })
}

/**
 * Makes a lab what it was. All computes copy the files of the snapshot first, then all exchange them; when one cannot, or the
 * document cannot be saved, all take it back, and the lab is what it was before.
 */
export function restoreSnapshot(labs: Labs, lab: Lab, id: string, ask: AskCompute): Promise<LabProject> {
  return labs.exclusively(lab.id, async () => {
    const record = find(lab, id)
    const { snapshot_id } = record
    const kept = (await labs.readApart(snapshot_id)) as Kept | undefined
    if (kept === undefined) throw conflict('The document of this snapshot is missing: delete the snapshot')
    const all = (step: RestoreStep) => stepOnAll(lab, snapshot_id, { step, computes: record.computes, ask })
    try {
      await all('prepare')
    } catch (error) {
      await all('undo').catch(ignore('the next restore removes what is left of it'))
      throw error
    }
    const { computes: before } = lab.document.project
    await mark(lab, { snapshot_id, way: 'back' })
    try {
      await labs.closeOnComputes(lab, ask)
      await all('commit')
      await lab.edit(({ project, nodes, links, drawings }) => {
        const changes = new Changes()
        for (const node of nodes.keys()) changes.remove('node', node)
        for (const link of links.keys()) changes.remove('link', link)
        for (const drawing of drawings.keys()) changes.remove('drawing', drawing)
        for (const table of tables)
          for (const it of kept[table] as Record<string, string>[])
            changes.entries.set(`${table}/${it[`${table}_id`]}`, it)
        const { name, is_open, revision } = project
        const then = kept.project as ProjectRecord
        changes.project({ ...then, name, is_open, revision, restoring: { snapshot_id, way: 'on' } })
        return { changes, news: () => [], result: undefined }
      })
    } catch (error) {
      await settleRestore(lab, ask).catch(ignore('it is taken back when the project is opened'))
      if (lab.isOpen) await labs.reopen(lab, ask).catch(ignore('why it could not be restored matters more'))
      throw error
    }
    labs.replaced(lab)
    await settleRestore(lab, ask).catch(ignore('what was before is removed when the project is opened'))
    for (const computeId of before)
      if (!record.computes.includes(computeId))
        await ask(computeId).removeProject(lab.id).catch(ignore('it is on that compute only, and without nodes here'))
    if (lab.isOpen) await labs.reopen(lab, ask)
    lab.tell({ action: 'snapshot.restored', event: snapshotView(lab, record) })
    return lab.project()
  })
}

/** Ends a restore that was interrupted: all computes take it back, or forget what was before. */
export async function settleRestore(lab: Lab, ask: AskCompute): Promise<void> {
  const { restoring } = lab.document.project
  if (restoring === undefined) return
  const { snapshot_id, way } = restoring
  const computes = lab.document.snapshots.get(snapshot_id)?.computes ?? lab.document.project.computes
  await stepOnAll(lab, snapshot_id, { step: way === 'back' ? 'undo' : 'finish', computes, ask })
  await mark(lab, undefined)
}

async function stepOnAll(
  lab: Lab,
  snapshotId: string,
  { step, computes, ask }: { step: RestoreStep; computes: readonly string[]; ask: AskCompute },
): Promise<void> {
  for (const computeId of computes) await ask(computeId).restoreSnapshot(lab.id, snapshotId, step)
}

const mark = (lab: Lab, restoring: ProjectRecord['restoring']): Promise<void> =>
  lab.edit(({ project: { restoring: _, ...project } }) => ({
    changes: new Changes().project({ ...project, ...(restoring && { restoring }) }),
    news: () => [],
    result: undefined,
  }))

function find(lab: Lab, id: string): SnapshotRecord {
  const found = lab.document.snapshots.get(id.toLowerCase())
  if (found !== undefined) return found
  throw notFound(`snapshot_id: the project ${lab.document.project.name} has no snapshot ${id}`)
}
