import { type Static, Type } from '@sinclair/typebox'
import { changing, Name, nullable, oneOf, PortNumber, Uuid } from './fields.ts'

/** `suspended` exists only for kinds that can be suspended. */
export type NodeStatus = Static<typeof NodeStatus>
export const NodeStatus = oneOf(['started', 'stopped', 'suspended'], {
  changesByItself: true,
  description: 'State of the node',
})

/** `console_type` of a kind whose nodes have no console. */
export const noConsole = oneOf(['none'], { default: 'none' })

/** The members of every kind of node. */
export const nodeFields = {
  node_id: Uuid,
  project_id: Uuid,
  name: Name,
  node_directory: Type.String({ description: 'Working directory of the node on the compute' }),
  status: NodeStatus,
  console: nullable(Type.Integer({ ...PortNumber, description: 'Console TCP port; null when console_type is none' })),
  console_host: Type.Optional(
    changing(
      nullable(
        Type.String({
          description:
            'Address of the compute at which the console listens, 0.0.0.0 or :: for all of its addresses; null without a console',
        }),
      ),
    ),
  ),
  command_line: Type.String({
    changesByItself: true,
    description: 'Command line of the last start, empty before the first start',
  }),
  status_reason: changing(
    nullable(
      Type.String({
        description: 'Why the node is stopped or cannot start (missing program, exit code); null without a fault',
      }),
    ),
  ),
}

/** The id of a new node. A legacy integer id is replaced by a new UUID. */
export const newNodeId = Type.Optional(
  Type.Union([Uuid, Type.Integer({ minimum: 0, description: 'Legacy id; replaced by a new UUID' }), Type.Null()]),
)

/** The console port that a client asks for. */
export const consolePort = Type.Integer({
  ...PortNumber,
  description: 'Requested TCP port of the console; if it is not available, a free port is used',
})
