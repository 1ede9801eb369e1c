import type { ApplyContext } from '../context.ts'
import type { Task } from './task.ts'

/** Gives the project the name of the lab. */
export async function renameProject(
  { labs, lab, agentFor, undoGroup }: ApplyContext,
  { name }: Task<'project'>,
): Promise<void> {
  if (lab.document.project.name !== name) await labs.settings.set(lab, { name }, agentFor, undoGroup)
}
