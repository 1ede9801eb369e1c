import { type Static, Type } from '@sinclair/typebox'
import {
  changing,
  closedSchema,
  maybe,
  Name,
  nullable,
  objectSchema,
  oneOf,
  PortNumber,
  Uuid,
} from './schema/fields.ts'

export type Variable = Static<typeof Variable>
export const Variable = closedSchema('Variable', 'A variable of a project', {
  name: Type.String({ minLength: 1 }),
  value: Type.Optional(Type.String()),
})

/** The projects of a list: the open ones, those that are only on disk, or both. */
export type ProjectStatusFilter = Static<typeof ProjectStatusFilter>
export const ProjectStatusFilter = oneOf(['open', 'closed', 'all'], {
  default: 'open',
  description: 'Which projects: `closed` ones are on disk only, and are opened by a POST with their project_id',
})

export type Project = Static<typeof Project>
export const Project = objectSchema('Project', 'A project: a named working directory with nodes in it', {
  project_id: Uuid,
  name: nullable(Type.String({ description: 'Name; null when none was given' })),
  path: Type.String({ description: 'Directory of the project on the compute' }),
  location: Type.String({ description: 'Directory under which new projects are created' }),
  temporary: Type.Boolean({ description: 'A temporary project is deleted from disk when it is closed' }),
  variables: nullable(Type.Array(Variable)),
  compute_id: Type.Optional(Type.String({ description: 'In the lists of a gateway: the compute of the project' })),
  status: Type.Optional(
    changing(
      oneOf(['open', 'closed'], {
        description: 'closed: the project is on disk only; a POST with its project_id opens it. Absent: open',
      }),
    ),
  ),
})

export const WantedCompute = Type.String({
  minLength: 1,
  maxLength: 100,
  description:
    'The compute on which a gateway places the project; default: the scheduler chooses. A compute ignores it',
})

/** The input of a create in both API versions. Null and absent mean the default. */
export type ProjectCreate = Static<typeof ProjectCreate>
export const ProjectCreate = Type.Object(
  {
    project_id: maybe(Uuid),
    name: maybe(Name),
    path: maybe(
      Type.String({
        minLength: 1,
        maxLength: 4096,
        description: 'Absolute directory; local mode only unless it lies in the projects directory',
      }),
    ),
    temporary: Type.Optional(Type.Boolean({ default: false })),
    variables: maybe(Type.Array(Variable, { maxItems: 1000 })),
    compute_id: maybe(WantedCompute),
  },
  { additionalProperties: false },
)

/** Changes of a project. Null and absent mean "leave as it is". */
export type ProjectUpdate = Static<typeof ProjectUpdate>
export const ProjectUpdate = Type.Object(
  {
    name: maybe(Name),
    path: maybe(
      Type.String({
        minLength: 1,
        maxLength: 4096,
        description: 'New directory; 403 unless the compute is in local mode',
      }),
    ),
    temporary: Type.Optional(nullable(Type.Boolean())),
    variables: maybe(Type.Array(Variable, { maxItems: 1000 })),
  },
  { additionalProperties: false },
)

export type ProjectFile = Static<typeof ProjectFile>
export const ProjectFile = objectSchema('ProjectFile', 'A file of a project', {
  path: Type.String({ description: 'Path relative to the project, separated by /' }),
  md5sum: Type.Optional(Type.String({ description: '32 hexadecimal digits; absent with sums=false' })),
  size: Type.Optional(Type.Integer({ description: 'Bytes; with sums=false' })),
})

export const ConsoleClients = objectSchema('ConsoleClients', 'The number of clients of the consoles of a project', {
  telnet_clients: Type.Integer({ minimum: 0, description: 'Connections to the console ports of its nodes' }),
})

export const UdpPort = objectSchema('UdpPort', 'A UDP port reserved for a link', { udp_port: PortNumber })
