import { type Static, Type } from '@sinclair/typebox'
import { maybe, maybes, Name, nullable, Uuid } from '../../schema/fields.ts'
import { Variable, WantedCompute } from '../project.ts'
import { kept } from './kept.ts'

const size = (description: string, value: number) =>
  Type.Integer({ minimum: 0, maximum: 1_000_000, default: value, description })
const flag = (description: string, value = false) => Type.Boolean({ default: value, description })

/** What a person sets of a lab, with the defaults of new ones. */
export const labSettings = {
  auto_open: flag('Opened when the service starts'),
  auto_close: flag('Closed when its last feed has ended, and no job runs and no console is open'),
  auto_start: flag('Its nodes are started when it is opened'),
  scene_width: size('Width of the map', 2000),
  scene_height: size('Height of the map', 1000),
  zoom: size('Zoom of the map, percent', 100),
  show_layers: flag('Whether the map shows layers'),
  snap_to_grid: flag('Whether nodes snap to the grid'),
  show_grid: flag('Whether the map shows the grid'),
  grid_size: size('Grid of the nodes', 75),
  drawing_grid_size: size('Grid of the drawings', 25),
  show_interface_labels: flag('Whether the map shows the names of ports'),
  variables: nullable(Type.Array(Variable, { maxItems: 1000 })),
  supplier: nullable(
    Type.Object({ logo: Type.String({ maxLength: 4096 }), url: Type.Optional(Type.String({ maxLength: 4096 })) }),
  ),
} as const

/** A lab: a project with named nodes and links. */
export type LabProject = Static<typeof LabProject>
export const LabProject = Type.Object(
  {
    project_id: Uuid,
    name: Name,
    status: Type.Union([Type.Literal('opened'), Type.Literal('closed')], { changesByItself: true }),
    ...labSettings,
    path: nullable(
      Type.String({ description: 'Directory of the project on its first compute; null while that is not known' }),
    ),
    filename: Type.String({ description: 'Name of its file when it is exported' }),
    revision: Type.Integer({ minimum: 0, changesByItself: true, description: 'Number of its last edit' }),
    kept: Type.Optional(kept),
  },
  { $id: 'LabProject', description: 'A project: named nodes, links and drawings, open or closed' },
)

const given = { ...maybes(labSettings), kept: maybe(kept) }

/** What a lab is created with. Null and absent mean the default. */
export type LabProjectCreate = Static<typeof LabProjectCreate>
export const LabProjectCreate = Type.Object(
  {
    name: Name,
    project_id: maybe(Uuid),
    path: maybe(Type.String({ minLength: 1, maxLength: 4096, description: 'Directory on its first compute' })),
    compute_id: maybe(WantedCompute),
    ...given,
  },
  { $id: 'LabProjectCreate', additionalProperties: false, description: 'What a project is created with' },
)

/** Changes of a lab. Null and absent mean "leave as it is". */
export type LabProjectUpdate = Static<typeof LabProjectUpdate>
export const LabProjectUpdate = Type.Object(
  { name: maybe(Name), ...given },
  { $id: 'LabProjectUpdate', additionalProperties: false, description: 'Changes of a project' },
)

/** How much a lab has. */
export const LabStats = Type.Object(
  {
    nodes: Type.Integer(),
    links: Type.Integer(),
    drawings: Type.Integer(),
    snapshots: Type.Integer(),
  },
  { $id: 'LabStats', description: 'Numbers of nodes, links, drawings and snapshots of a project' },
)
