import { type Static, Type } from '@sinclair/typebox'
import { DirectLinkVerdict } from '../direct-link.ts'
import { Placement } from '../placement.ts'
import { Variable, WantedCompute } from '../project.ts'
import { changing, maybe, maybes, Name, nullable, objectSchema, Uuid } from '../schema/fields.ts'
import { LabClass } from './class.ts'
import { kept } from './kept.ts'
import { LabNodeNotCreated } from './node.ts'
import { LabScore } from './task.ts'

const size = (description: string, value: number) =>
  Type.Integer({ minimum: 0, maximum: 1_000_000, default: value, description })
const flag = (description: string, value = false) => Type.Boolean({ default: value, description })

/** The settings of a lab, with the defaults of new labs. */
export const labSettings = {
  auto_open: flag('Whether the start of the service opens it'),
  auto_close: flag('Whether it is closed when its last feed has ended, no job runs and no console is open'),
  auto_start: flag('Whether its nodes are started when it is opened'),
  scene_width: size('Width of the map', 2000),
  scene_height: size('Height of the map', 1000),
  zoom: size('Zoom of the map, percent', 100),
  show_layers: flag('Whether the map shows layers'),
  snap_to_grid: flag('Whether nodes snap to the grid'),
  show_grid: flag('Whether the map shows the grid'),
  grid_size: size('Grid of the nodes', 75),
  drawing_grid_size: size('Grid of the drawings', 25),
  show_interface_labels: flag('Whether the map shows the names of ports'),
  placement: Placement,
  variables: nullable(
    Type.Array(Variable, {
      maxItems: 1000,
      description: 'With `supplier` and `kept` at most 65,536 characters of JSON',
    }),
  ),
  supplier: nullable(
    Type.Object({ logo: Type.String({ maxLength: 4096 }), url: Type.Optional(Type.String({ maxLength: 4096 })) }),
  ),
} as const

/** Longest time after which a lab is stopped, s: a year. */
const maxTtlS = 366 * 86_400
/** Input: when the nodes of a lab are stopped. */
export const ttl_s = Type.Integer({
  minimum: 0,
  maximum: maxTtlS,
  description:
    'Time after which the service stops its nodes, s; 0: never. Stopping all nodes or closing the project cancels it',
})

/** Input: what happens at that time. */
export const ttl_deletes = Type.Boolean({
  description:
    'With ttl_s: the service then deletes the project with its disks. Default: the current value, else false',
})

const sizes = {
  nodes: Type.Integer({ description: 'Number of nodes, segments included' }),
  segments: Type.Integer({ description: 'Switches, hubs, nats and clouds' }),
  links: Type.Integer(),
}
const running = Type.Integer({ description: 'Running nodes, not counting segments' })

/** How many nodes and links a lab has. */
export type LabSizes = Static<typeof LabSizes>
const LabSizes = Type.Object(sizes)

export type LabCounts = Static<typeof LabCounts>
export const LabCounts = Type.Object(
  {
    ...sizes,
    running: Type.Optional(running),
    worst_verdict: Type.Optional({
      ...DirectLinkVerdict,
      description: `The worst verdict of its links. ${DirectLinkVerdict.description}`,
    } as typeof DirectLinkVerdict),
    links_passing: Type.Optional(
      Type.Integer({ description: 'Number of links that pass frames, present with `worst_verdict`' }),
    ),
  },
  { $id: 'LabCounts', description: 'How many nodes and links a project has; absent members are unknown' },
)

export type LabProject = Static<typeof LabProject>
export const LabProject = Type.Object(
  {
    project_id: Uuid,
    name: Name,
    status: Type.Union([Type.Literal('opened'), Type.Literal('closed')], { changesByItself: true }),
    ...labSettings,
    path: nullable(
      Type.String({ description: 'Directory of the project on its first compute; null while it is unknown' }),
    ),
    filename: Type.String({ description: 'Name of its file in an export' }),
    revision: Type.Integer({ minimum: 0, changesByItself: true, description: 'Number of the last edit' }),
    changed_at: Type.Optional(
      changing(
        Type.String({
          description:
            'Time of the last change (UTC, RFC 3339). Opening, closing, moving and archiving do not change it. Absent: unknown',
        }),
      ),
    ),
    compute_ids: Type.Optional(
      changing(Type.Array(Type.String(), { description: 'Ids of its computes; absent: unknown' })),
    ),
    counts: Type.Optional(changing(LabCounts)),
    status_reason: Type.Optional(
      Type.String({
        changesByItself: true,
        description:
          'What is wrong with it, such as a compute that is not connected, or an archive that could not be created; absent: no known problem',
      }),
    ),
    archived: Type.Optional(
      Type.Literal(true, {
        changesByItself: true,
        description:
          'The gateway has an archive of its current state: if its compute is lost, a drain restores it on another one; absent: no archive, or not yet',
      }),
    ),
    stop_at: Type.Optional(
      Type.String({
        changesByItself: true,
        description: 'When the service stops its nodes (UTC, RFC 3339); absent: never',
      }),
    ),
    ttl_deletes: Type.Optional(
      Type.Literal(true, { changesByItself: true, description: 'At stop_at the service deletes the project' }),
    ),
    score: Type.Optional(changing(LabScore)),
    class: Type.Optional(changing(LabClass)),
    present: Type.Optional(
      changing(
        Type.Array(Type.String(), {
          description: 'Names of the clients that have it open in a page; absent: nobody has, or it is closed',
        }),
      ),
    ),
    kept: Type.Optional(kept),
  },
  { $id: 'LabProject', description: 'A project: named nodes, links and drawings, open or closed' },
)

/** The answer to an import of an archive. */
export const LabImported = objectSchema('LabImported', 'A project created from an archive', {
  ...LabProject.properties,
  left_out: Type.Array(Type.String(), { description: 'Settings of the archive that were left out' }),
  cannot_run: Type.Array(LabNodeNotCreated, { description: 'The nodes that are placeholders' }),
})

const given = { ...maybes(labSettings), kept: maybe(kept) }

export type LabProjectCreate = Static<typeof LabProjectCreate>
export const LabProjectCreate = Type.Object(
  {
    name: Name,
    project_id: maybe(Uuid),
    path: maybe(Type.String({ minLength: 1, maxLength: 4096, description: 'Directory on its first compute' })),
    compute_id: maybe(WantedCompute),
    ...given,
  },
  {
    $id: 'LabProjectCreate',
    additionalProperties: false,
    description: 'Input of a new project; null or absent: default',
  },
)

export const LabProjectLoad = Type.Object(
  {
    path: Type.String({
      minLength: 1,
      maxLength: 4096,
      description: 'Path of the file *.gns3 on the host of the service',
    }),
  },
  { $id: 'LabProjectLoad', additionalProperties: false, description: 'Location of a GNS3 project' },
)

export type LabProjectUpdate = Static<typeof LabProjectUpdate>
export const LabProjectUpdate = Type.Object(
  { name: maybe(Name), ttl_s: maybe(ttl_s), ttl_deletes: maybe(ttl_deletes), ...given },
  {
    $id: 'LabProjectUpdate',
    additionalProperties: false,
    description: 'Changes to a project; null or absent members stay unchanged',
  },
)

export const LabStats = Type.Object(
  {
    ...sizes,
    running,
    drawings: Type.Integer(),
    snapshots: Type.Integer(),
  },
  { $id: 'LabStats', description: 'Numbers of nodes, links, drawings and snapshots of a project' },
)
