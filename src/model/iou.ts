import { type Static, Type } from '@sinclair/typebox'
import { maybe, Name, nullable } from './common.ts'
import { consolePort, newNodeId, nodeFields } from './node-fields.ts'

const consoleType = Type.Union([Type.Literal('telnet'), Type.Literal('none')], { default: 'telnet' })
/** A path or a name; control characters have no place in either. */
export const iouPath = Type.String({
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
export const IouNode = Type.Object(
  {
    ...nodeFields,
    console_type: consoleType,
    path: iouPath,
    md5sum: nullable(Type.String({ description: 'MD5 of the image; null while it is not known' })),
    application_id: Type.Integer({
      minimum: 1,
      maximum: 511,
      description: 'Number of the program, unique on the host',
    }),
    startup_config: nullable(Type.String({ description: '"startup-config.cfg", relative to node_directory, or null' })),
    private_config: nullable(Type.String({ description: '"private-config.cfg", relative to node_directory, or null' })),
    iourc_path: nullable(Type.String({ description: 'Licence file that a start would use; null when there is none' })),
    ...iouSettings,
  },
  { $id: 'IouNode', description: 'A router run by an IOU image' },
)

/** What a new router may be given, and a change of one, in both faces. */
export const iouInputs = {
  console: maybe(consolePort),
  console_type: maybe(consoleType),
  md5sum: maybe(Type.String({ maxLength: 64, description: 'Accepted and ignored: it is computed' })),
  application_id: maybe(Type.Integer({ description: 'Accepted and ignored: the compute chooses it' })),
  usage: maybe(iouSettings.usage),
  ethernet_adapters: maybe(iouSettings.ethernet_adapters),
  serial_adapters: maybe(iouSettings.serial_adapters),
  ram: maybe(iouSettings.ram),
  nvram: maybe(iouSettings.nvram),
  l1_keepalives: maybe(iouSettings.l1_keepalives),
  use_default_iou_values: maybe(iouSettings.use_default_iou_values),
  startup_config_content: maybe(config('Startup configuration')),
  private_config_content: maybe(config('Private configuration')),
  iourc_content: maybe(iourc),
}

/** What a new router may be given. Null and absent mean the default. */
export type IouCreate = Static<typeof IouCreate>
export const IouCreate = Type.Object(
  { name: Name, path: iouPath, node_id: newNodeId, ...iouInputs },
  { additionalProperties: false },
)

/** Changes of a router. Null and absent mean "leave as it is". */
export type IouUpdate = Static<typeof IouUpdate>
export const IouUpdate = Type.Object(
  { name: maybe(Name), path: maybe(iouPath), ...iouInputs },
  { additionalProperties: false },
)

/** What a start may bring along. Other members, which older clients send, are ignored. */
export type IouStart = Static<typeof IouStart>
export const IouStart = Type.Object({ iourc_content: maybe(iourc), license_check: maybe(Type.Boolean()) })

/** The configurations of a router, as its NVRAM has them, else its files. */
export type IouConfigs = Static<typeof IouConfigs>
export const IouConfigs = Type.Object(
  {
    startup_config_content: Type.Optional(Type.String()),
    private_config_content: Type.Optional(Type.String()),
  },
  { $id: 'IouConfigs', description: 'The configurations of a router; absent when there is none' },
)
