import { type Static, Type } from '@sinclair/typebox'
import { closedSchema, Name, nullable, objectSchema, oneOf, Uuid } from '../schema/fields.ts'
import { LabLink } from './link.ts'
import { LabNode, LabNodeNotCreated } from './node.ts'
import { ttl_deletes, ttl_s } from './project.ts'

/** The nodes and links of a project. Segments are nodes of the kinds switch, hub, nat and cloud. */
export type LabTopology = Static<typeof LabTopology>
export const LabTopology = objectSchema('LabTopology', 'The nodes and links of a project', {
  revision: Type.Integer({ minimum: 0, description: 'Number of the last edit of the project' }),
  nodes: Type.Array(LabNode, { description: 'The nodes that are not segments' }),
  links: Type.Array(LabLink),
  segments: Type.Array(LabNode, { description: 'The nodes of the kinds switch, hub, nat and cloud' }),
})

const what = oneOf(['node', 'link', 'segment', 'project'])
const how = oneOf(['live', 'restart', 'recreate'], {
  description:
    'live: nothing else is disturbed; restart: the node is stopped and started again; recreate: its disk is lost',
})
const step = {
  do: oneOf(['create', 'update', 'delete', 'start']),
  what,
  name: Type.String({ description: 'Name of the object; of a link without a name its two ends' }),
  how,
  because: Type.Optional(Type.String({ description: 'What differs, or why the step is needed' })),
}

/** A step of a plan. */
export type LabPlanStep = Static<typeof LabPlanStep>
export const LabPlanStep = objectSchema(
  'LabPlanStep',
  'A step from the project as it is to what its lab file says',
  step,
)

/** A step of a job. */
export const LabJobStep = objectSchema('LabJobStep', 'A step of a job that applies a lab file', {
  ...step,
  state: oneOf(['waiting', 'running', 'done', 'failed', 'undone', 'cancelled'], {
    description: 'undone: it was done, and then reverted because another step failed',
  }),
  reason: nullable(Type.String({ description: 'Why it has failed' })),
})
export type LabJobStep = Static<typeof LabJobStep>

/** A step that is not taken. */
export type LabWithheldStep = Static<typeof LabWithheldStep>
export const LabWithheldStep = objectSchema('LabWithheldStep', 'A step that is run only with an option', {
  ...step,
  flag: oneOf(['restart', 'recreate', 'delete_extra', 'config_from_file'], { description: 'The option' }),
})

/** What an apply of a lab file does or did. */
export type LabPlan = Static<typeof LabPlan>
export const LabPlan = objectSchema('LabPlan', 'What a lab file changes in a project', {
  project_id: Uuid,
  lab: Name,
  revision: Type.Integer({ minimum: 0, description: 'The revision of the project that was compared; 0: a new one' }),
  steps: Type.Array(LabPlanStep, { description: 'In the order in which they are run' }),
  withheld: Type.Array(LabWithheldStep),
  extra: Type.Array(
    Type.Object({
      what: oneOf(['node', 'segment', 'link', 'config']),
      name: Type.String(),
      because: Type.Optional(Type.String()),
    }),
    { description: 'Objects that are not in the file, and stay' },
  ),
  cannot_run: Type.Optional(
    Type.Array(LabNodeNotCreated, {
      description: 'With `partial`: the nodes that are placeholders, and are not started',
    }),
  ),
  interrupted: Type.Optional(
    Type.Literal(true, {
      description: 'The service ended in the middle of an earlier apply: this one does the rest',
    }),
  ),
  stop_at: Type.Optional(Type.String({ description: 'When the service stops the nodes (UTC, RFC 3339)' })),
  job_id: Type.Optional(Type.String({ ...Uuid, description: 'The job that runs the steps' })),
})

const flag = (description: string) => Type.Optional(Type.Boolean({ default: false, description }))

/** The options of an apply. */
export const applyOptions = {
  restart: flag('Restart running nodes for changes that need it'),
  recreate: flag('Recreate nodes for changes that need it; their disks are lost'),
  delete_extra: flag('Delete nodes that were removed from the file, and other links at ports that the file links'),
  config_from_file: flag('If a configuration was changed both in the file and on the node, the one in the file wins'),
  take_over: flag('Use a project that another user created, or that was not created from a lab file'),
  trust: flag(
    'Trust the file: let it run programs and open files of the host; only for local clients and administrators',
  ),
  partial: flag('Create a node whose image is missing as a placeholder, and start only the others'),
  start: flag('Start the nodes afterwards, in the order that the file says'),
}

const source = {
  document: Type.String({ maxLength: 1 << 20, description: 'The lab file: YAML 1.2 or JSON' }),
  files: Type.Optional(
    Type.Record(Type.String({ minLength: 1, maxLength: 4096 }), Type.String({ maxLength: 1 << 20 }), {
      description: 'Contents by path, with the paths as written in the lab file; the service does not open these files',
    }),
  ),
  vars: Type.Optional(
    Type.Record(Type.String({ minLength: 1, maxLength: 100 }), Type.String({ maxLength: 4096 }), {
      description: 'Values that replace those in `vars` of the lab file',
    }),
  ),
}

/** A lab file with the content of the files that it names, and options. */
export type LabApply = Static<typeof LabApply>
export const LabApply = closedSchema('LabApply', 'A lab file, with the files that it names', {
  ...source,
  ...applyOptions,
  ttl_s: Type.Optional(ttl_s),
  ttl_deletes: Type.Optional(ttl_deletes),
})

/** Most checks of a lab file. */
export const maxChecks = 1000

/** Input of a run of the checks of a lab file. */
export const LabCheckRun = closedSchema('LabCheckRun', 'A lab file whose checks are run', {
  ...source,
  only: Type.Optional(
    Type.Array(Type.String({ maxLength: 10_000 }), {
      minItems: 1,
      maxItems: maxChecks,
      description: 'Names of checks; the others are not run',
    }),
  ),
})

/** The result of a check. */
export type LabCheckResult = Static<typeof LabCheckResult>
export const LabCheckResult = objectSchema('LabCheckResult', 'The result of a check', {
  name: Type.String(),
  state: oneOf(['waiting', 'running', 'ok', 'failed', 'cancelled']),
  seconds: Type.Number({ description: 'How long it took' }),
  saw: nullable(Type.String({ description: 'What was there instead, or why it failed' })),
})
