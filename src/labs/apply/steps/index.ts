import type { PlanTask } from '../../plan/types.ts'
import type { ApplyContext } from '../context.ts'
import { changeLink, deleteLink, endLinkCapture } from './links.ts'
import { changePlannedNode, createPlannedNode, deleteNode, retryNode } from './nodes.ts'
import { renameProject, replaceTasks } from './project.ts'
import { recreateNode } from './recreate-node.ts'
import type { Task } from './task.ts'

/** A task that is run by itself: links are made together, and nodes are started by a job of their own. */
export type SingleTask = Exclude<PlanTask, { readonly type: 'create-link' | 'start-node' }>
type RunTask<T extends SingleTask['type']> = (context: ApplyContext, task: Task<T>) => Promise<unknown>

/**
 * How the tasks are run. What they change in the document is reverted with its undo group; for the rest each adds to `context.revert`.
 */
const tasks: { readonly [T in SingleTask['type']]: RunTask<T> } = {
  project: renameProject,
  tasks: replaceTasks,
  'create-node': createPlannedNode,
  'retry-node': retryNode,
  'change-node': changePlannedNode,
  'recreate-node': recreateNode,
  'delete-node': deleteNode,
  'change-link': changeLink,
  'delete-link': deleteLink,
  'end-capture': endLinkCapture,
}

/** Runs a task. */
export async function runTask(context: ApplyContext, task: SingleTask): Promise<void> {
  await (tasks[task.type] as RunTask<typeof task.type>)(context, task as never)
}
