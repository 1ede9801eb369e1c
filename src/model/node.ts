import { type Static, Type } from '@sinclair/typebox'
import { maybe, Name, nullable, PortNumber, Uuid } from './common.ts'
import type { Nio } from './nio.ts'

/** The kinds of node this version runs. */
export type NodeKindName = 'pc'
export const nodeKinds: readonly NodeKindName[] = ['pc']

/** NIO types that each kind takes. */
export const nioTypesOf: Readonly<Record<NodeKindName, readonly Nio['type'][]>> = {
  pc: ['nio_udp', 'nio_generic_ethernet', 'nio_ethernet', 'nio_tap'],
}

/** `suspended` exists only for kinds that can be paused. */
export type NodeStatus = Static<typeof NodeStatus>
export const NodeStatus = Type.Union([Type.Literal('started'), Type.Literal('stopped'), Type.Literal('suspended')], {
  description: 'State of the node',
})

/** What every kind of node has. */
export const nodeFields = {
  node_id: Uuid,
  project_id: Uuid,
  name: Name,
  node_directory: Type.String({ description: 'Working directory of the node on the compute' }),
  status: NodeStatus,
  console: nullable(Type.Integer({ ...PortNumber, description: 'Console TCP port; null when console_type is none' })),
  console_type: Type.Union([Type.Literal('telnet'), Type.Literal('none')], { default: 'telnet' }),
  command_line: Type.String({ description: 'Command line of the last start, empty before the first one' }),
  status_reason: nullable(
    Type.String({
      description: 'Why the node is stopped or cannot start (missing program, exit code); null when nothing is wrong',
    }),
  ),
}

/** Engines that can run a pc. */
export const PcEngine = Type.Union([Type.Literal('vpcs'), Type.Literal('embedded')], {
  description: 'vpcs: the VPCS program; embedded: the simulator that is part of Patchbay',
})

/** A simulated PC. */
export type PcNode = Static<typeof PcNode>
export const PcNode = Type.Object(
  {
    ...nodeFields,
    startup_script: nullable(Type.String({ description: 'Content of startup.vpc; null when there is none' })),
    startup_script_path: nullable(
      Type.String({ description: '"startup.vpc", relative to node_directory; null when there is none' }),
    ),
    mac_address: Type.String({ description: 'MAC address of the pc, 00:50:79:66:68:XX, unique in its project' }),
    engine: PcEngine,
  },
  { $id: 'PcNode', description: 'A simulated PC' },
)

const script = Type.String({
  maxLength: 65536,
  description: 'Commands run at start; %h stands for the name of the node',
})
const consolePort = Type.Integer({
  ...PortNumber,
  description: 'Wanted console TCP port; one that cannot be had is replaced by a free one',
})

/** What a new pc may be given. `node_id` may be a legacy integer id, which is replaced by a new UUID. */
export type PcCreate = Static<typeof PcCreate>
export const PcCreate = Type.Object(
  {
    name: Name,
    node_id: Type.Optional(
      Type.Union([Uuid, Type.Integer({ minimum: 0, description: 'Legacy id; replaced by a new UUID' }), Type.Null()]),
    ),
    console: maybe(consolePort),
    console_type: maybe(nodeFields.console_type),
    startup_script: maybe(script),
  },
  { additionalProperties: false },
)

/** Changes of a pc. Null and absent mean "leave as it is". */
export type PcUpdate = Static<typeof PcUpdate>
export const PcUpdate = Type.Object(
  {
    name: maybe(Name),
    console: maybe(consolePort),
    console_type: maybe(nodeFields.console_type),
    startup_script: maybe(script),
  },
  { additionalProperties: false },
)

/** A node of any kind, its create and its update input. Each kind adds its own to these unions. */
export type Node = PcNode
export type NodeCreate = PcCreate
export type NodeUpdate = PcUpdate

/** Where a node is. */
export interface NodeRef {
  readonly project_id: string
  readonly kind: NodeKindName
  readonly node_id: string
}
