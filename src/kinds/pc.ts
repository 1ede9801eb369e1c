import { type Static, Type } from '@sinclair/typebox'
import { changing, maybe, Name, nullable } from '../schema/fields.ts'
import { ethernetNios } from '../schema/nio.ts'
import { consolePort, newNodeId, nodeFields } from '../schema/node-fields.ts'
import { kind } from './kind.ts'
import { v1Of } from './v1.ts'

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
  { $id: 'PcNodeCreate', additionalProperties: false, description: 'What a pc is created with' },
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
  {
    $id: 'PcNodeUpdate',
    additionalProperties: false,
    description: 'Changes of a pc; absent and null mean "leave as it is"',
  },
)

const schemas = { node: PcNode, create: PcCreate, update: PcUpdate }

export const pc = kind({
  name: 'pc',
  noun: 'pc',
  aliases: ['vpcs'],
  ...schemas,
  v1: v1Of('pc', schemas, {
    lacks: ['console_type'],
    // Nothing was suspended when v1 was made.
    instance: { status: changing(Type.Union([Type.Literal('started'), Type.Literal('stopped')])) },
    shown: ({ node_id, node_directory, console_type: _, status, ...rest }) => ({
      vm_id: node_id,
      vm_directory: node_directory,
      status: status === 'stopped' ? 'stopped' : 'started',
      ...rest,
    }),
  }),
  nioTypes: ethernetNios,
  consoles: ['text'],
  canBePaused: true,
  canBeReset: false,
  conflicts: {
    create: 'no port or pc id is left',
    update: 'The change is not possible now',
    start: 'The pc cannot run now; the message says why',
  },
  capabilities: {
    pc_engine: Type.String({ default: 'embedded', description: 'Engine of pcs started now: vpcs or embedded' }),
  },
})
