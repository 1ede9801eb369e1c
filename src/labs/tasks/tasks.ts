import { ignore } from '../../lib/async/ignore.ts'
import { omit } from '../../lib/omit.ts'
import type { Identity } from '../../model/access/identity.ts'
import { ownsLabs } from '../../model/access/identity.ts'
import type { LabScore, LabTaskResults, LabTasks, LabTasksRecord } from '../../model/lab/task.ts'
import { Changes, type LabDocument } from '../lab/document.ts'
import type { Lab } from '../lab/lab.ts'
import { same } from '../plan/json-equal.ts'
import type { Labs } from '../service.ts'

/** The changes that give a lab these tasks. What was done of others before is forgotten. */
export function tasksChanges({ project, tasks: before }: LabDocument, tasks: LabTasksRecord | undefined): Changes {
  const changes = new Changes()
  if (same(before, tasks)) return changes
  const plain = omit(project, 'score')
  return changes
    .tasks(tasks)
    .taskResults(undefined)
    .project(tasks === undefined ? plain : { ...plain, score: scoreOf(tasks, undefined) })
}

/** Gives a lab these tasks, and tells its readers. */
export async function setTasks(labs: Labs, lab: Lab, tasks: LabTasksRecord | undefined): Promise<void> {
  await lab.edit((document) => ({ changes: tasksChanges(document, tasks), news: () => [], result: undefined }))
  await tellOfScore(labs, lab)
}

/** Saves what a check of the tasks has found. */
export async function saveResults(labs: Labs, lab: Lab, results: LabTaskResults): Promise<void> {
  await labs.documents.saveServiceChange(lab, (project) => {
    const { tasks } = lab.document
    const changes = new Changes()
    if (tasks === undefined) return changes.project(project)
    return changes.taskResults(results).project({ ...project, score: scoreOf(tasks, results) })
  })
}

async function tellOfScore({ registry, documents }: Labs, lab: Lab): Promise<void> {
  await registry.put(lab.id, lab.document.project).catch(ignore('the next change of the project is listed'))
  documents.publish(lab, 'project.updated')
}

/** The sum of tasks. */
export function scoreOf({ tasks }: LabTasksRecord, results: LabTaskResults | undefined): LabScore {
  const counted = tasks.filter(({ checks }) => checks.length > 0)
  const done = counted.filter(({ name }) => results?.tasks[name]?.state === 'done')
  const sum = (list: typeof tasks) => list.reduce((total, { points }) => total + points, 0)
  return {
    tasks: tasks.length,
    points: sum(done),
    of: sum(counted),
    ...(results !== undefined && { checked_at: results.checked_at }),
  }
}

/** The tasks of a lab without their checks, for everybody who sees it. */
export function tasksView({ document: { tasks, taskResults } }: Lab): LabTasks {
  if (tasks === undefined) return { tasks: [], points: 0, of: 0 }
  return {
    ...scoreOf(tasks, taskResults),
    tasks: tasks.tasks.map(({ name, text, points, checks }) => {
      const result = taskResults?.tasks[name]
      const state = checks.length === 0 ? 'text' : (result?.state ?? 'unchecked')
      return { name, text, points, state, reason: checks.length === 0 ? null : (result?.reason ?? null) }
    }),
  }
}

/** Tasks for somebody who must not know how they are checked. */
export const withoutChecks = ({ by, tasks }: LabTasksRecord): LabTasksRecord => ({
  by,
  tasks: tasks.map((task) => ({ ...task, checks: [] })),
  checks: [],
})

/** Whether a client may give a lab other tasks: those of another stay as they are for one that does not own the lab. */
export const mayChangeTasks = (identity: Identity, tasks: LabTasksRecord | undefined): boolean =>
  tasks === undefined || tasks.by === identity.name || ownsLabs(identity)
