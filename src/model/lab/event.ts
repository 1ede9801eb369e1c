import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { objectSchema, oneOf, Uuid } from '../schema/fields.ts'
import { LabDrawing } from './drawing.ts'
import { LabJob } from './job.ts'
import { LabLink, LabLinkState } from './link.ts'
import { LabNode } from './node.ts'
import { LabPresence } from './presence.ts'
import { LabProject } from './project.ts'
import { LabSnapshot } from './snapshot.ts'
import { LabTemplate } from './template.ts'
import { LabJobStep } from './topology.ts'

// Clients of earlier versions know these actions: they stay as they are, and what is new gets a name of its own. An event that is named
// after a resource has its id: clients count on it, also for actions that they do not know.

/** An event as feeds show it: what happened, and the resource after it; for one that is gone, as it last was. */
const event = <const A extends string, E extends TSchema>(actions: readonly A[], resource: E) =>
  Type.Object({ action: oneOf(actions), event: resource })

const ofProject = event(
  ['project.created', 'project.updated', 'project.opened', 'project.closed', 'project.deleted'],
  LabProject,
)
const ofJob = event(['job.created', 'job.updated', 'job.deleted'], LabJob)

/** A message to people. */
export const LogEvent = event(['log.error', 'log.warning', 'log.info'], Type.Object({ message: Type.String() }))

/** An event of a lab. */
export type LabEvent = Static<typeof LabEvent>
export const LabEvent = Type.Union(
  [
    event(['node.created', 'node.updated', 'node.deleted'], LabNode),
    event(['link.created', 'link.updated', 'link.deleted'], LabLink),
    event(['link.state'], LabLinkState),
    event(['drawing.created', 'drawing.updated', 'drawing.deleted'], LabDrawing),
    event(['snapshot.created', 'snapshot.deleted', 'snapshot.restored'], LabSnapshot),
    ofProject,
    ofJob,
    event(
      ['job.step'],
      objectSchema('LabJobStepEvent', 'A step of a job whose state has changed', {
        job_id: Type.String(),
        project_id: Uuid,
        ...LabJobStep.properties,
      }),
    ),
    event(['presence'], LabPresence),
    LogEvent,
  ],
  { $id: 'LabEvent', description: 'An event of a project' },
)

/** An event of what a service has beside the content of its labs: projects as a whole, templates, and jobs of several labs. */
export type LabListEvent = Static<typeof LabListEvent>
export const LabListEvent = Type.Union(
  [ofProject, event(['template.created', 'template.updated', 'template.deleted'], LabTemplate), ofJob],
  {
    $id: 'LabListEvent',
    description: 'An event of a project as a whole, of a template, or of a job of several projects',
  },
)
