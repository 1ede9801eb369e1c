import { type Static, Type } from '@sinclair/typebox'
import { closedSchema, Name, nullable, objectSchema, oneOf, Uuid } from '../schema/fields.ts'
import { LabTaskResult } from './task.ts'
import { LabCheckResult, LabJobStep } from './topology.ts'

const nodeActions = ['start', 'stop', 'suspend', 'resume', 'reload'] as const

/** A node of a job. */
export type LabJobNode = Static<typeof LabJobNode>
export const LabJobNode = objectSchema('LabJobNode', 'A node of a job', {
  node_id: Uuid,
  name: Name,
  state: oneOf(['waiting', 'asked', 'unready', 'done', 'failed', 'skipped', 'cancelled'], {
    description: 'unready: started, but not ready yet; skipped: a node that had to be ready before it has failed',
  }),
  reason: nullable(Type.String({ description: 'What the node waits for, or why it was not done' })),
  image: Type.Optional(
    Type.String({ description: 'The image that its compute lacks: upload it, then try again; absent: it lacks none' }),
  ),
})

/** A project of a drain, or of a job on a class. */
export type LabJobProject = Static<typeof LabJobProject>
export const LabJobProject = objectSchema('LabJobProject', 'A project of a drain, or of a job on a class', {
  project_id: Uuid,
  name: Name,
  state: oneOf(['waiting', 'moving', 'working', 'done', 'failed', 'skipped', 'cancelled'], {
    description: 'moving: of a drain; working: of a class; skipped: it stays as it is, as `reason` says',
  }),
  reason: nullable(Type.String({ description: 'What is being done, or why the project stays as it is' })),
  compute_id: nullable(Type.String({ description: 'Of a drain: the compute that has it now; null: it was not moved' })),
})

/** Work on a project. It goes on when its client disconnects. */
export type LabJob = Static<typeof LabJob>
export const LabJob = objectSchema('LabJob', 'Work on a project, or on the projects of a compute or of a class', {
  job_id: Uuid,
  project_id: nullable(Uuid),
  action: oneOf([...nodeActions, 'apply', 'check', 'drain', 'class-create', 'class-reset', 'class-delete'], {
    description:
      'apply: applies a lab file; check: runs the checks of one, or of the tasks of the project; drain: moves the projects of a compute to others; ' +
      'class-create, class-reset, class-delete: copies, resets or deletes the projects of the students of a class',
  }),
  compute_id: Type.Optional(Type.String({ description: 'Of a drain: the compute' })),
  class: Type.Optional(Type.String({ description: 'Of a job on a class: its name' })),
  status: oneOf(['running', 'done', 'failed', 'cancelled'], {
    description: 'failed: at least one node, step or check has failed, or a task could not be checked',
  }),
  reason: nullable(Type.String({ description: 'Why the first of them failed, or the job was cancelled' })),
  started_at: Type.String({ description: 'Time in UTC (RFC 3339)' }),
  ended_at: nullable(Type.String()),
  total: Type.Integer({ description: 'Number of nodes, steps, checks, tasks or projects of the job' }),
  done: Type.Integer(),
  failed: Type.Integer(),
  skipped: Type.Integer(),
  nodes: Type.Array(LabJobNode, { description: 'Nodes that are not done: the failed ones first, at most 100' }),
  steps: Type.Optional(
    Type.Array(LabJobStep, { description: 'Of an apply: steps that are not done, the failed ones first, at most 100' }),
  ),
  by: Type.Optional(Type.String({ description: 'Of a check: name of the token or user that started it' })),
  checks: Type.Optional(
    Type.Array(LabCheckResult, {
      description: 'Only for who started the job, and for who may change all projects; never in events',
    }),
  ),
  tasks: Type.Optional(Type.Array(LabTaskResult, { description: 'Of a check of the tasks of the project' })),
  projects: Type.Optional(
    Type.Array(LabJobProject, {
      description:
        'Of a drain or a job on a class: the projects that have failed, stayed or wait first, then those that are done; at most 100',
    }),
  ),
  start_job_id: Type.Optional(Type.String({ ...Uuid, description: 'Of an apply: the job that starts the nodes' })),
})

export type LabJobCreate = Static<typeof LabJobCreate>
export const LabJobCreate = closedSchema('LabJobCreate', 'Work on nodes of a project', {
  action: oneOf(nodeActions),
  nodes: Type.Optional(
    Type.Array(Name, { minItems: 1, maxItems: 10_000, description: 'Ids or names; absent: all nodes' }),
  ),
  at_once: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 10_000, description: 'How many nodes may start at the same time' }),
  ),
  load_below: Type.Optional(
    Type.Number({
      minimum: 1,
      maximum: 100,
      description: 'CPU load of a compute, percent, above which starts wait; default 75',
    }),
  ),
  give_up: Type.Optional(
    oneOf(['stop', 'go-on'], {
      default: 'go-on',
      description: 'When a node fails: start no further nodes, or skip only the nodes that come after it',
    }),
  ),
})
