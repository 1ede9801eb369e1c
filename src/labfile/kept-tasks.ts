import type { LabCheck, LabTasksRecord } from '../model/lab/task.ts'
import type { Desired } from './desired.ts'

/** What a lab keeps of the tasks of a file, and of their checks. Undefined: the file says that there are no tasks. */
export function keptTasks({ tasks = [], checks }: Desired): Omit<LabTasksRecord, 'by'> | undefined {
  if (tasks.length === 0) return undefined
  return {
    tasks: tasks.map(({ name, text, checks: names, points }) => ({ name, text, points, checks: [...names] })),
    checks: checks.map(({ at: _, ...check }): LabCheck => check),
  }
}
