import type { DesiredTask } from './desired.ts'

/** A task that counts, after its checks have run. */
export interface ScoredTask {
  readonly name: string
  readonly points: number
  /** How many of its checks hold, and how many it has. */
  readonly holding: number
  readonly checks: number
  readonly isDone: boolean
}

/** What a lab has reached. */
export interface Score {
  readonly points: number
  /** The points of all tasks that count. */
  readonly of: number
}

/** The tasks with checks. `holding`: names of the checks that hold. */
export const scoredTasks = (tasks: readonly DesiredTask[], holding: ReadonlySet<string>): ScoredTask[] =>
  tasks
    .filter(({ checks }) => checks.length > 0)
    .map(({ name, points, checks }) => {
      const count = checks.filter((check) => holding.has(check)).length
      return { name, points, holding: count, checks: checks.length, isDone: count === checks.length }
    })

/** The sum of the tasks. */
export const scoreOf = (tasks: readonly Pick<ScoredTask, 'points' | 'isDone'>[]): Score => ({
  points: tasks.reduce((sum, { points, isDone }) => sum + (isDone ? points : 0), 0),
  of: tasks.reduce((sum, { points }) => sum + points, 0),
})
