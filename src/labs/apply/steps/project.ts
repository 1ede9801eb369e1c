import { setTasks } from '../../tasks/tasks.ts'
import type { ApplyContext } from '../context.ts'
import type { Task } from './task.ts'

/** Gives the project the name of the lab. */
export async function renameProject(
  { labs, lab, agentFor, undoGroup }: ApplyContext,
  { name }: Task<'project'>,
): Promise<void> {
  if (lab.document.project.name !== name) await labs.settings.set(lab, { name }, agentFor, undoGroup)
}

/** Gives the project other tasks. They are not a part of the history of edits. */
export async function replaceTasks({ labs, lab, by, revert }: ApplyContext, { tasks }: Task<'tasks'>): Promise<void> {
  const before = lab.document.tasks
  revert.add(() => setTasks(labs, lab, before))
  await setTasks(labs, lab, tasks && { by, ...tasks })
}
