import { type Static, Type } from '@sinclair/typebox'
import { closedSchema, nullable, objectSchema } from '../schema/fields.ts'
import { consolePort, nodeFields } from '../schema/node-fields.ts'
import { inputsOf } from './inputs.ts'
import { action, incumbent, kind } from './kind.ts'
import { v1Of } from './v1.ts'

/** The routers that dynamips emulates, and their default memory, MB. */
export const defaultRam = {
  c1700: 160,
  c2600: 160,
  c2691: 192,
  c3600: 192,
  c3725: 128,
  c3745: 256,
  c7200: 512,
} as const

export type DynamipsPlatform = keyof typeof defaultRam

const platform = Type.Union(
  (Object.keys(defaultRam) as DynamipsPlatform[]).map((name) => Type.Literal(name)),
  { description: 'The router that is emulated' },
)
/** A path or a name, without control characters. */
const image = Type.String({
  minLength: 1,
  maxLength: 4096,
  pattern: '^[^\\u0000-\\u001f\\u007f]*$',
  description: 'IOS image: a name in the images directory, or a path',
  expects: 'the name or path of an image, in one line',
})
const ram = Type.Integer({ minimum: 1, maximum: 4096, description: 'Memory, MB. Default: that of the platform' })
const usage = Type.String({ maxLength: 65536, description: 'Notes on how to use the router' })
const consoleType = Type.Literal('none', { default: 'none' })
const value = { description: 'Idle-PC value of the image: the address at which dynamips sleeps while the router waits' }
const idlepc = Type.String({
  ...value,
  pattern: '^(0x[0-9a-fA-F]{1,16})?$',
  expects: 'an address such as 0x60008120, or an empty text for none',
})

export type DynamipsNode = Static<typeof DynamipsNode>
export const DynamipsNode = objectSchema(
  'DynamipsNode',
  'A router that dynamips emulates to find idle-PC values; it has no ports',
  { ...nodeFields, console_type: consoleType, platform, image, ram, idlepc: nullable(Type.String(value)), usage },
)

export const { create: DynamipsCreate, update: DynamipsUpdate } = inputsOf('router', DynamipsNode, {
  required: { platform, image },
  optional: {
    console: Type.Integer({ ...consolePort, description: 'Accepted and ignored: the router has no console' }),
    ...{ ram, idlepc, usage },
  },
})
export type DynamipsCreate = Static<typeof DynamipsCreate>
export type DynamipsUpdate = Static<typeof DynamipsUpdate>

/** Values that may be the idle PC of a router. */
const IdlePcProposals = Type.Array(
  Type.String({ description: 'As `0x60008120 [47]`: the value, and how many of 1000 samples found the router there' }),
  { $id: 'IdlePcProposals', description: 'Values that may be the idle PC of the image' },
)

export type IdlePc = Static<typeof IdlePc>
export const IdlePc = objectSchema('IdlePc', 'The idle PC that was found', {
  idlepc: Type.String({ description: 'The value, as `0x60008120`' }),
})

const IdlePcQuestion = closedSchema('IdlePcQuestion', 'The image of a search for an idle PC', { platform, image, ram })

/** The errors of a measurement. */
const measurementErrors = {
  408: 'It took longer than four minutes',
  409: 'No value helps, another measurement runs, or the router cannot run or was stopped; the message says which',
}
const measurement = {
  method: 'GET',
  role: 'operate',
  description:
    'Takes minutes, and ends with the request. A stopped router is started for the measurement, and stopped again; a running router keeps running. A host measures one router at a time.',
  errors: measurementErrors,
  isSlow: true,
} as const

const schemas = { node: DynamipsNode, create: DynamipsCreate, update: DynamipsUpdate }

export const dynamips = kind({
  name: 'dynamips',
  noun: 'router',
  aliases: ['ios'],
  incumbent: incumbent({
    nodeType: 'dynamips',
    members: ['node_directory', 'usage', 'platform', 'image', 'ram', 'idlepc', 'console', 'console_type'],
    // Its numbers are those of the processes of one compute; nothing here depends on them.
    added: () => ({ dynamips_id: 1 }),
  }),
  ...schemas,
  v1: v1Of('router', schemas, { lacks: ['console_type'] }),
  nioTypes: [],
  consoles: [],
  canBePaused: true,
  conflicts: {
    create: 'the image is missing (its name is then in `image`) or is no IOS image',
    update: 'The router is being measured, or the image is missing (its name is then in `image`) or is no IOS image',
    start: 'The router cannot run now, and the message says why; or its image is missing (its name is then in `image`)',
  },
  image: {},
  actions: {
    idlePcProposals: action({
      ...measurement,
      path: 'idlepc_proposals',
      summary: 'Values that may be the idle PC of a router',
      output: IdlePcProposals,
      answer: { description: 'The values' },
    }),
    autoIdlePc: action({
      ...measurement,
      path: 'auto_idlepc',
      summary: 'The first of the proposals that brings the load of the host down',
      output: IdlePc,
      answer: { description: 'The value' },
    }),
  },
  imageActions: {
    autoIdlePc: {
      path: 'auto_idlepc',
      summary: 'Find the idle PC of an image',
      description: 'Takes minutes, and ends with the request.',
      projectName: 'AUTOIDLEPC',
      input: IdlePcQuestion,
      output: IdlePc,
      answer: { description: 'The value' },
      errors: {
        ...measurementErrors,
        409: `${measurementErrors[409]}; or the image is missing (its name is then in \`image\`)`,
      },
    },
  },
})
