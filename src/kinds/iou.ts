import { type Static, Type } from '@sinclair/typebox'
import type { LineType } from '../model/capture.ts'
import { maybe, nullable, objectSchema, oneOf } from '../schema/fields.ts'
import { ethernetNios } from '../schema/nio.ts'
import { nodeFields } from '../schema/node-fields.ts'
import { inputsOf } from './inputs.ts'
import { action, kind, type PortShape } from './kind.ts'
import { v1Of } from './v1.ts'

const consoleType = oneOf(['telnet', 'none'], { default: 'telnet' })
/** A path or a name; control characters have no place in either. */
const path = Type.String({
  minLength: 1,
  maxLength: 4096,
  pattern: '^[^\\u0000-\\u001f\\u007f]*$',
  description:
    'Image: a name in the images directory or a path; given back relative to that directory when it is in it',
  expects: 'the name or path of an image, in one line',
})
/** No NVRAM has room for more. */
const config = (what: string) =>
  Type.String({ maxLength: 1 << 20, description: `${what}; %h stands for the name. An empty text changes nothing` })
/** What an image is licensed by. It is never shown, and no part of it is ever in a message. */
const iourc = Type.String({
  maxLength: 65536,
  description: 'Content of the licence file, used when the host has no other one; never shown',
})
/** Bays of four ports each; a program has at most 16 in all. */
const bays = (what: string) =>
  Type.Integer({ minimum: 0, maximum: 16, default: 2, description: `${what} adapters, of four ports each` })

/** The ports of a line of bays: each bay has four. */
const bayPorts = (line: LineType, first: number, count: number): PortShape[] =>
  Array.from({ length: count * 4 }, (_, index) => {
    const [adapter, port] = [first + Math.floor(index / 4), index % 4]
    return { adapter, port, line, name: `${line === 'serial' ? 'Serial' : 'Ethernet'}${adapter}/${port}` }
  })

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
    description:
      'Whether memory and NVRAM are those that the image has by default; ram and nvram then tell what they are',
  }),
} as const

/** A node of this kind. */
export type IouNode = Static<typeof IouNode>
export const IouNode = objectSchema('IouNode', 'A router run by an IOU image', {
  ...nodeFields,
  console_type: consoleType,
  path,
  md5sum: nullable(Type.String({ description: 'MD5 of the image; null while it is not known' })),
  application_id: Type.Integer({ minimum: 1, maximum: 511, description: 'Number of the program, unique on the host' }),
  startup_config: nullable(Type.String({ description: '"startup-config.cfg", relative to node_directory, or null' })),
  private_config: nullable(Type.String({ description: '"private-config.cfg", relative to node_directory, or null' })),
  iourc_path: nullable(Type.String({ description: 'Licence file that a start would use; null when there is none' })),
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
/** What a router may be given when it is made, and changes of it. */
export type IouCreate = Static<typeof IouCreate>
export type IouUpdate = Static<typeof IouUpdate>

/** What a start may bring along. Other members, which older clients send, are ignored. */
export type IouStart = Static<typeof IouStart>
export const IouStart = Type.Object({ iourc_content: maybe(iourc), license_check: maybe(Type.Boolean()) })

/** The configurations of a router, as its NVRAM has them, else its files. */
export type IouConfigs = Static<typeof IouConfigs>
export const IouConfigs = objectSchema('IouConfigs', 'The configurations of a router; absent when there is none', {
  startup_config_content: Type.Optional(Type.String()),
  private_config_content: Type.Optional(Type.String()),
})

/** What v1 clients call the startup configuration, and what they send along that is ignored. */
const older = {
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
    ...older,
  },
  update: older,
  input({ initial_config, initial_config_content, startup_config, private_config, ...rest }) {
    const content = rest.startup_config_content ?? initial_config_content
    return { ...rest, ...(content != null && { startup_config_content: content }) }
  },
})

export const iou = kind({
  name: 'iou',
  noun: 'router',
  ...schemas,
  v1: {
    ...v1,
    shown({ startup_config, ...node }) {
      const initial_config = startup_config === null ? null : `project-files/iou/${node.node_id}/${startup_config}`
      return { ...v1.shown({ startup_config, ...node }), initial_config }
    },
  },
  ports: ({ ethernet_adapters, serial_adapters }) => [
    ...bayPorts('ethernet', 0, Number(ethernet_adapters)),
    ...bayPorts('serial', Number(ethernet_adapters), Number(serial_adapters)),
  ],
  nioTypes: ethernetNios,
  consoles: ['text'],
  canBePaused: false,
  start: IouStart,
  conflicts: {
    create: 'no port or application id is left, or the image is missing (its name is then in `image`)',
    update: 'The change is not possible now, or the image is missing (its name is then in `image`)',
    start: 'The router cannot run now: its image, the licence file or a library is missing; the message says what',
  },
  image: { isProgram: true },
  actions: {
    configs: action({
      method: 'GET',
      path: 'configs',
      summary: 'Read what the router has stored, else its configuration files',
      output: IouConfigs,
      answer: { description: 'The configurations' },
      isSlow: true,
      v1Form: {
        path: 'initial_config',
        summary: 'Older form of configs: the startup configuration',
        description: 'The startup configuration; null when there is none',
        schema: Type.Object({ content: Type.Union([Type.String(), Type.Null()]) }),
        shown: ({ startup_config_content = null }) => ({ content: startup_config_content }),
      },
    }),
    saveConfigs: action({
      method: 'POST',
      path: 'configs/save',
      summary: 'Copy what the router has stored into its configuration files',
      answer: { description: 'Done' },
      errors: { 409: 'The router is just writing it, or it is damaged' },
    }),
  },
})
