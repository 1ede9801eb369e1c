import { conflict } from '../../lib/errors/api-error.ts'
import type { Caller } from '../../model/access/caller.ts'
import type { LabClass } from '../../model/lab/class.ts'
import { duplicateLab } from '../archives/duplicate.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import { Changes } from '../lab/document.ts'
import type { Labs } from '../service.ts'
import { restoreSnapshot, takeSnapshot } from '../snapshots/snapshots.ts'

/** The snapshot of a lab of a class, as it was given to the student. */
const startSnapshotName = 'Start of the class'

/**
 * What a class does with one lab. `copy`: makes a copy of it for a student; `keep-start`: takes the snapshot to which `reset` goes back, if
 * there is none yet.
 */
export type StudentLabWork =
  | { readonly action: 'copy'; readonly project_id: string; readonly name: string; readonly class: LabClass }
  | { readonly action: 'keep-start' | 'reset' | 'remove' }

/** For whom that is done. */
export interface WorkFor {
  readonly agentFor: ComputeAgents
  readonly caller: Caller
}

/** Does the work in the process of the lab. 404, and what copies, snapshots and deletions are refused with. */
export async function workOnStudentLab(labs: Labs, id: string, work: StudentLabWork, by: WorkFor): Promise<void> {
  const { agentFor } = by
  switch (work.action) {
    case 'copy': {
      const { action: _, ...input } = work
      await duplicateLab(labs, await labs.find(id), { ...input, reset_mac_addresses: true }, by)
      return
    }
    case 'keep-start':
      return keepStart(labs, id, agentFor)
    case 'reset':
      return reset(labs, id, agentFor)
    case 'remove':
      return labs.lifecycle.remove(id, agentFor)
  }
}

async function keepStart(labs: Labs, id: string, agentFor: ComputeAgents): Promise<void> {
  const lab = await labs.find(id)
  const { class: known } = lab.document.project
  if (known === undefined || known.start_snapshot_id !== undefined) return
  // A service that ended in between has taken it already.
  const taken = [...lab.document.snapshots.values()].find(({ name }) => name === startSnapshotName)
  const { snapshot_id } = taken ?? (await takeSnapshot(labs, lab, startSnapshotName, agentFor))
  const now = await labs.find(id)
  await labs.documents.saveServiceChange(now, (project) =>
    new Changes().project({ ...project, class: { ...known, start_snapshot_id: snapshot_id } }),
  )
}

async function reset(labs: Labs, id: string, agentFor: ComputeAgents): Promise<void> {
  const lab = await labs.find(id)
  const { name, class: known } = lab.document.project
  const snapshotId = known?.start_snapshot_id
  if (snapshotId === undefined || !lab.document.snapshots.has(snapshotId))
    throw conflict(`The project ${name} cannot be reset: it has no snapshot "${startSnapshotName}"`)
  await restoreSnapshot(labs, lab, snapshotId, agentFor)
}
