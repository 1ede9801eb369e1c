import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { Name, nullable, objectSchema, oneOf } from '../schema/fields.ts'
import { LinkVerdict } from '../schema/nio.ts'
import { nameKey } from './names.ts'
import { maxPoints, maxTaskChecks, maxTasks, maxTaskText, maxTaskTexts } from './task-limits.ts'

const line = Type.String({ minLength: 1, maxLength: 1000 })
const all = {
  /** Given, or derived: `PC1 pings PC3`. */
  name: line,
  /** Longest wait, s. */
  within_s: Type.Number({ minimum: 0, maximum: 3600 }),
}
const Ping = Type.Object({
  ...all,
  check: Type.Literal('ping'),
  /** Name of a pc. */
  from: Name,
  /** The name of a pc, or an address. */
  to: Name,
  /** An IPv4 or IPv6 address: `to`, or the first one in the startup script of that pc. */
  address: line,
})
const ConsoleLine = Type.Object({
  ...all,
  check: Type.Literal('console'),
  /** Name of a node with a text console. */
  on: Name,
  /** Typed with a CR. */
  type: Type.String({ maxLength: 1000 }),
  /** Regular expression. */
  expect: Type.String({ maxLength: 1000 }),
})
const OfLink = Type.Object({ ...all, check: Type.Literal('link'), link: Name, verdict: LinkVerdict })

/** A check that is not the opposite of another. */
export type PlainCheck = Static<typeof PlainCheck>
const PlainCheck = Type.Union([Ping, ConsoleLine, OfLink])

/** A check of a lab file, or of the tasks of a lab. */
export type LabCheck = Static<typeof LabCheck>
const LabCheck = Type.Union([
  Ping,
  ConsoleLine,
  OfLink,
  Type.Object({ ...all, check: Type.Literal('not'), of: PlainCheck }),
])

const Points = Type.Integer({ minimum: 0, maximum: maxPoints, description: 'What it counts in the score' })

/** The tasks of a lab as it keeps them: with the checks that say whether they are done. */
export type LabTasksRecord = Static<typeof LabTasksRecord>
export const LabTasksRecord = Type.Object({
  /** Name of the token or user that gave the tasks. */
  by: Type.String(),
  tasks: Type.Array(
    Type.Object({
      name: Name,
      text: Type.String({ maxLength: maxTaskText }),
      /** Names of checks. Empty: the task is only read. */
      checks: Type.Array(line, { maxItems: maxTaskChecks }),
      points: Points,
    }),
    { minItems: 1, maxItems: maxTasks },
  ),
  checks: Type.Array(LabCheck, { maxItems: 1000 }),
})

/** The tasks in a record that others have written, as in an archive. Undefined for one that no lab file gives. */
export function tasksIn(value: unknown): LabTasksRecord | undefined {
  if (!Check(LabTasksRecord, value)) return undefined
  const { tasks, checks } = value
  const names = new Set(checks.map(({ name }) => name))
  const isGood =
    new Set(tasks.map(({ name }) => nameKey(name))).size === tasks.length &&
    tasks.reduce((sum, { text }) => sum + text.length, 0) <= maxTaskTexts &&
    tasks.every((task) => task.checks.every((check) => names.has(check)))
  return isGood ? value : undefined
}

/** What the last check of tasks has found. */
export interface LabTaskResults {
  /** Time in UTC (RFC 3339). */
  readonly checked_at: string
  /** By the names of tasks. */
  readonly tasks: Readonly<Record<string, { readonly state: 'done' | 'open'; readonly reason: string | null }>>
}

/** The sum of the tasks of a lab, for lists of labs. */
export type LabScore = Static<typeof LabScore>
export const LabScore = objectSchema('LabScore', 'The tasks of a project, and what of them is done', {
  tasks: Type.Integer({ description: 'Number of tasks' }),
  points: Type.Integer({ description: 'Points of the tasks that were done when they were checked last' }),
  of: Type.Integer({ description: 'Points of all tasks' }),
  checked_at: Type.Optional(
    Type.String({ description: 'When they were checked last (UTC, RFC 3339); absent: they were not yet' }),
  ),
})

const reason = nullable(
  Type.String({
    description: 'Why it is not done, or was not checked, in a sentence that does not give its solution away',
  }),
)

/** A task as everybody sees it: without its checks. */
const LabTask = objectSchema('LabTask', 'A task of a project', {
  name: Name,
  text: Type.String({ description: 'What is to be done, in Markdown' }),
  points: Type.Integer({ description: 'What it counts in the score' }),
  state: oneOf(['done', 'open', 'unchecked', 'text'], {
    description: 'As it was checked last; text: it has no checks, is only read, and has no part in the score',
  }),
  reason,
})

/** The tasks of a lab, as everybody sees them. */
export type LabTasks = Static<typeof LabTasks>
export const LabTasks = objectSchema(
  'LabTasks',
  'The tasks of a project, and what was done when they were checked last',
  {
    ...LabScore.properties,
    tasks: Type.Array(LabTask),
  },
)

/** A task of a running check. */
export type LabTaskResult = Static<typeof LabTaskResult>
export const LabTaskResult = objectSchema('LabTaskResult', 'A task of a job that checks tasks', {
  name: Name,
  points: Type.Integer(),
  state: oneOf(['waiting', 'running', 'done', 'open', 'unknown', 'cancelled'], {
    description: 'unknown: it could not be checked, as its compute is away; its last result stays',
  }),
  reason,
})
