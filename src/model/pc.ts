import { type Static, Type } from '@sinclair/typebox'
import { maybe, Name, nullable } from './common.ts'
import { consolePort, newNodeId, nodeFields } from './node-fields.ts'

/** Engines that can run a pc. */
export const PcEngine = Type.Union([Type.Literal('vpcs'), Type.Literal('embedded')], {
  description: 'vpcs: the VPCS program; embedded: the simulator that is part of Patchbay',
})

const consoleType = Type.Union([Type.Literal('telnet'), Type.Literal('none')], { default: 'telnet' })

/** A simulated PC. */
export type PcNode = Static<typeof PcNode>
export const PcNode = Type.Object(
  {
    ...nodeFields,
    console_type: consoleType,
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
/** What a new pc may be given. `node_id` may be a legacy integer id, which is replaced by a new UUID. */
export type PcCreate = Static<typeof PcCreate>
export const PcCreate = Type.Object(
  {
    name: Name,
    node_id: newNodeId,
    console: maybe(consolePort),
    console_type: maybe(consoleType),
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
    console_type: maybe(consoleType),
    startup_script: maybe(script),
  },
  { additionalProperties: false },
)
