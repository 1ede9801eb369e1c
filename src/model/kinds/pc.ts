import { type Static, Type } from '@sinclair/typebox'
import { changing, nullable, objectSchema, oneOf } from '../schema/fields.ts'
import { ethernetNios } from '../schema/nio.ts'
import { nodeFields } from '../schema/node-fields.ts'
import { pcHostAccess, unsafePcLines } from './host-access.ts'
import { inputsOf } from './inputs.ts'
import { adaptersOfOnePort, gns3Kind, kind } from './kind.ts'
import { v1Of } from './v1.ts'

/** Engines that can run a pc. */
export const PcEngine = oneOf(['vpcs', 'embedded'], {
  description: 'vpcs: the VPCS program; embedded: the simulator that is part of Patchbay',
})

/** MAC addresses are 00:50:79:66:68:00, the id added, to 00:50:79:66:ff:ff. */
export const pcIds = (0x100 - 0x68) * 0x100
export const macOfPc = (id: number): string => `00:50:79:66:${(0x6800 + id).toString(16).replace(/(?=..$)/, ':')}`
export const idOfMac = (mac: string): number => Number.parseInt(mac.slice(-5).replace(':', ''), 16) - 0x6800
/** VPCS takes the last byte of the MAC address up to 254 (`-m`). */
export const noPcId = 255

const consoleType = oneOf(['telnet', 'none'], { default: 'telnet' })

export type PcNode = Static<typeof PcNode>
export const PcNode = objectSchema('PcNode', 'A simulated PC', {
  ...nodeFields,
  console_type: consoleType,
  startup_script: nullable(Type.String({ description: 'Content of startup.vpc; null when there is none' })),
  startup_script_path: nullable(
    Type.String({ description: '"startup.vpc", relative to node_directory; null when there is none' }),
  ),
  mac_address: Type.String({ description: 'MAC address of the pc, 00:50:79:66:68:XX, unique in its project' }),
  engine: PcEngine,
})

const script = Type.String({
  maxLength: 65536,
  description: 'Commands run at start; %h stands for the name of the node',
})
const mac = Type.String({
  pattern: '^00:50:79:66:(6[89a-f]|[7-9a-f][0-9a-f]):[0-9a-f]{2}$',
  expects: 'an address from 00:50:79:66:68:00 to 00:50:79:66:ff:ff, in lower case',
  description: 'MAC address. When it is absent, or another pc of the project has it, the compute chooses a free one',
})
export const { create: PcCreate, update: PcUpdate } = inputsOf('pc', PcNode, {
  atCreation: { mac_address: mac },
  optional: { startup_script: script },
})
export type PcCreate = Static<typeof PcCreate>
export type PcUpdate = Static<typeof PcUpdate>

const schemas = { node: PcNode, create: PcCreate, update: PcUpdate }

/** The name of the script that every new pc of GNS3 gets. */
const baseScript = 'vpcs_base_config.txt'

export const pc = kind({
  name: 'pc',
  noun: 'pc',
  title: 'PC',
  aliases: ['vpcs'],
  gns3: gns3Kind({
    nodeType: 'vpcs',
    members: ['node_directory', 'console', 'console_type', 'command_line'],
    template: {
      name: 'VPCS',
      symbol: ':/symbols/vpcs_guest.svg',
      properties: { base_script_file: baseScript },
    },
    atCreation({ base_script_file }) {
      if (typeof base_script_file !== 'string') return {}
      const isBase = base_script_file.split(/[/\\]/).at(-1) === baseScript
      return { base_script_file: undefined, ...(isBase && { startup_script: 'set pcname %h\n' }) }
    },
  }),
  ...schemas,
  v1: v1Of('pc', schemas, {
    lacks: ['console_type'],
    // v1 has no status `suspended`.
    instance: { status: changing(oneOf(['started', 'stopped'])) },
    toView: ({ node_id, node_directory, console_type: _, status, ...rest }) => ({
      vm_id: node_id,
      vm_directory: node_directory,
      status: status === 'stopped' ? 'stopped' : 'started',
      ...rest,
    }),
  }),
  template: { name: 'PC', category: 'guest', nameFormat: 'PC{0}', symbol: 'pc' },
  freeMac(taken) {
    let id = 0
    while (id === noPcId || (taken.has(macOfPc(id)) && id < pcIds - 1)) id += 1
    return macOfPc(id)
  },
  configs: { startup: { field: 'startup_script', keepsEmpty: true } },
  ports: () => adaptersOfOnePort(1),
  nioTypes: ethernetNios,
  consoles: ['text'],
  canBeSuspended: true,
  canBeReset: false,
  hostAccess: pcHostAccess,
  typedHostAccess: unsafePcLines,
  canPing: true,
  startWeight: 1,
  startsWithoutWeight: (command_line) => command_line?.startsWith('embedded ') === true,
  isShownFirst: true,
  conflicts: {
    create: 'or no port or pc id is left',
    update: 'The change is not possible in the current state',
    start: 'The pc cannot run now; the message says why',
  },
  capabilities: {
    pc_engine: Type.String({
      default: 'embedded',
      description: 'Engine of the pcs that are started from now on: vpcs or embedded',
    }),
  },
})
