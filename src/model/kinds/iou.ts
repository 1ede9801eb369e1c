import { type Static, Type } from '@sinclair/typebox'
import { oneLine } from '../../lib/text/one-line.ts'
import type { LineType } from '../capture.ts'
import { maybe, nullable, objectSchema, oneOf } from '../schema/fields.ts'
import { ethernetNios } from '../schema/nio.ts'
import { nodeFields } from '../schema/node-fields.ts'
import { inputsOf } from './inputs.ts'
import { action, gns3Kind, kind, type PortShape } from './kind.ts'
import { v1Of } from './v1.ts'

const consoleType = oneOf(['telnet', 'none'], { default: 'telnet' })
/** A path or a name, without control characters. */
const path = Type.String({
  minLength: 1,
  maxLength: 4096,
  pattern: oneLine,
  description: 'Image: a name in the images directory, or a path; answers show a path below that directory as a name',
  expects: 'the name or path of an image, in one line',
  holds: 'image',
})
/** The limit is larger than any NVRAM. */
const config = (what: string) =>
  Type.String({ maxLength: 1 << 20, description: `${what}; %h stands for the name. An empty string changes nothing` })
/** A licence. No answer and no message contains any part of it. */
const iourc = Type.String({
  maxLength: 65536,
  description: 'Content of the licence file, used when the host has no other licence; never shown',
})
/** Adapters of four ports each; a router has at most 16 in all. */
const bays = (what: string) =>
  Type.Integer({ minimum: 0, maximum: 16, default: 2, description: `${what} adapters, of four ports each` })

/** The ports of `count` bays, `first` and those after it: each bay has four. */
const bayPorts = (line: LineType, first: number, count: number): PortShape[] =>
  Array.from({ length: count * 4 }, (_, index) => {
    const [adapter, port] = [first + Math.floor(index / 4), index % 4]
    return { adapter, port, line, name: `${line === 'serial' ? 'Serial' : 'Ethernet'}${adapter}/${port}` }
  })

/** Limit of Ethernet and serial adapters together. */
export const maxBays = 16

/** The adapters of a router; each takes a bay. */
export type Bays = { readonly ethernet_adapters: number; readonly serial_adapters: number }

/** What is wrong with the number of adapters. */
export function baysIssue({ ethernet_adapters, serial_adapters }: Bays): string | undefined {
  if (ethernet_adapters + serial_adapters <= maxBays) return undefined
  const fields = 'ethernet_adapters and serial_adapters'
  return `${fields}: expected at most ${maxBays} in all, got ${ethernet_adapters} and ${serial_adapters}`
}

/** The settings of a router, with their defaults. */
export const iouSettings = {
  usage: Type.String({ maxLength: 65536, default: '', description: 'Notes on how to use the router' }),
  ethernet_adapters: bays('Ethernet'),
  serial_adapters: bays('Serial'),
  ram: Type.Integer({ minimum: 1, maximum: 1 << 20, default: 256, description: 'Memory, MB' }),
  nvram: Type.Integer({ minimum: 8, maximum: 1024, default: 128, description: 'NVRAM, KB' }),
  l1_keepalives: Type.Boolean({ default: false, description: 'Whether a line without a peer is shown as down' }),
  use_default_iou_values: Type.Boolean({
    default: true,
    description: 'Whether the image chooses memory and NVRAM; ram and nvram then show its values',
  }),
} as const

export type IouNode = Static<typeof IouNode>
export const IouNode = objectSchema('IouNode', 'A router run by an IOU image', {
  ...nodeFields,
  console_type: consoleType,
  path,
  md5sum: nullable(Type.String({ description: 'MD5 of the image; null until it is computed' })),
  application_id: Type.Integer({ minimum: 1, maximum: 511, description: 'Number of the program, unique on the host' }),
  startup_config: nullable(Type.String({ description: '"startup-config.cfg", relative to node_directory, or null' })),
  private_config: nullable(Type.String({ description: '"private-config.cfg", relative to node_directory, or null' })),
  iourc_path: nullable(Type.String({ description: 'Licence file that a start would use; null without a licence' })),
  ...iouSettings,
})

export const { create: IouCreate, update: IouUpdate } = inputsOf('router', IouNode, {
  required: { path },
  optional: {
    md5sum: Type.String({ maxLength: 64, description: 'Accepted and ignored: it is computed' }),
    application_id: Type.Integer({ description: 'Accepted and ignored: the compute chooses it' }),
    ...iouSettings,
    startup_config_content: config('Startup configuration'),
    private_config_content: config('Private configuration'),
    iourc_content: iourc,
  },
})
export type IouCreate = Static<typeof IouCreate>
export type IouUpdate = Static<typeof IouUpdate>

/** The input of a start. Other members, which older clients send, are ignored. */
export type IouStart = Static<typeof IouStart>
export const IouStart = Type.Object({ iourc_content: maybe(iourc), license_check: maybe(Type.Boolean()) })

export type IouConfigs = Static<typeof IouConfigs>
export const IouConfigs = objectSchema(
  'IouConfigs',
  'The configurations of a router; a member is absent when the router has no such configuration',
  { startup_config_content: Type.Optional(Type.String()), private_config_content: Type.Optional(Type.String()) },
)

/** Members that only v1 has: other names of the startup configuration, and ignored members. */
const v1Members = {
  initial_config: maybe(Type.String({ description: 'Accepted and ignored' })),
  initial_config_content: maybe(
    Type.String({ maxLength: 1 << 20, description: 'Older form of startup_config_content' }),
  ),
  startup_config: maybe(Type.String({ description: 'Accepted and ignored' })),
  private_config: maybe(Type.String({ description: 'Accepted and ignored' })),
}
const { ethernet_adapters, serial_adapters } = iouSettings
const schemas = { node: IouNode, create: IouCreate, update: IouUpdate }
const v1 = v1Of('router', schemas, {
  lacks: ['console_type', 'status'],
  instance: {
    initial_config: nullable(
      Type.String({ description: 'The startup configuration, relative to the directory of the project; null: none' }),
    ),
  },
  // The specification has no null for the adapters.
  create: {
    ethernet_adapters: Type.Optional(ethernet_adapters),
    serial_adapters: Type.Optional(serial_adapters),
    ...v1Members,
  },
  update: v1Members,
  input({ initial_config, initial_config_content, startup_config, private_config, ...rest }) {
    const content = rest.startup_config_content ?? initial_config_content
    return { ...rest, ...(content != null && { startup_config_content: content }) }
  },
})

export const iou = kind({
  name: 'iou',
  noun: 'router',
  title: 'IOU router',
  symbol: 'router',
  formParts: {
    General: ['path', 'ethernet_adapters', 'serial_adapters', 'usage'],
    Advanced: ['use_default_iou_values', 'ram', 'nvram', 'l1_keepalives', 'application_id', 'iourc_content'],
  },
  firstSettings: ['path', 'ethernet_adapters', 'serial_adapters'],
  gns3: gns3Kind({
    nodeType: 'iou',
    hostName: 'ios',
    members: [
      ...['node_directory', 'console', 'console_type', 'command_line', 'usage', 'path', 'md5sum', 'application_id'],
      ...['serial_adapters', 'ethernet_adapters', 'ram', 'nvram', 'l1_keepalives', 'use_default_iou_values'],
    ],
  }),
  ...schemas,
  v1: {
    ...v1,
    toView({ startup_config, ...node }) {
      const initial_config = startup_config === null ? null : `project-files/iou/${node.node_id}/${startup_config}`
      return { ...v1.toView({ startup_config, ...node }), initial_config }
    },
  },
  configs: {
    startup: { field: 'startup_config_content', action: 'configs' },
    private: { field: 'private_config_content', action: 'configs' },
  },
  liveFields: ['usage'],
  ownValues: ({ use_default_iou_values }) => (use_default_iou_values === true ? ['ram', 'nvram'] : []),
  ports: ({ ethernet_adapters, serial_adapters }) => [
    ...bayPorts('ethernet', 0, Number(ethernet_adapters)),
    ...bayPorts('serial', Number(ethernet_adapters), Number(serial_adapters)),
  ],
  settingsIssue: (settings) => baysIssue(settings as Bays),
  nioTypes: ethernetNios,
  consoles: ['text'],
  canBeSuspended: false,
  start: IouStart,
  conflicts: {
    create: 'no port or application id is left, or the image is missing (its name is then in `image`)',
    update: 'The change is not possible now, or the image is missing (its name is then in `image`)',
    start: 'The router cannot run now: its image, the licence file or a library is missing; the message says which',
  },
  image: { field: 'path', isProgram: true, archiveDirectory: 'IOU' },
  actions: {
    configs: action({
      method: 'GET',
      path: 'configs',
      summary: 'Read the configurations in the NVRAM, else the configuration files',
      output: IouConfigs,
      answer: { description: 'The configurations' },
      isSlow: true,
      v1Form: {
        path: 'initial_config',
        summary: 'Read the startup configuration; older form of configs',
        description: 'The startup configuration; null when there is none',
        schema: Type.Object({ content: Type.Union([Type.String(), Type.Null()]) }),
        toView: ({ startup_config_content = null }) => ({ content: startup_config_content }),
      },
    }),
    saveConfigs: action({
      method: 'POST',
      path: 'configs/save',
      summary: 'Copy the configurations in the NVRAM into the configuration files',
      answer: { description: 'Done' },
      errors: { 409: 'The router is writing its NVRAM, or the NVRAM is damaged' },
    }),
  },
})
