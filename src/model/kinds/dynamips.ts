import { type Static, Type } from '@sinclair/typebox'
import { oneLine } from '../../lib/text/one-line.ts'
import { closedSchema, nullable, objectSchema, oneOf } from '../schema/fields.ts'
import { ethernetNios } from '../schema/nio.ts'
import { nodeFields } from '../schema/node-fields.ts'
import {
  cardNames,
  chassisNames,
  completed,
  type DynamipsPlatform,
  defaultRam,
  type Hardware,
  portsOfRouter,
  slotFields,
  wicFields,
  wicNames,
} from './dynamips-hardware.ts'
import { inputsOf } from './inputs.ts'
import { action, gns3Kind, kind } from './kind.ts'
import { unicastIssue } from './mac-addresses.ts'
import { v1Of } from './v1.ts'

const platform = Type.Union(
  (Object.keys(defaultRam) as DynamipsPlatform[]).map((name) => Type.Literal(name)),
  { description: 'The router that is emulated' },
)
/** A path or a name, without control characters. */
const image = Type.String({
  minLength: 1,
  maxLength: 4096,
  pattern: oneLine,
  description: 'IOS image: a name in the images directory, or a path',
  expects: 'the name or path of an image, in one line',
  holds: 'image',
})
const ram = Type.Integer({ minimum: 1, maximum: 4096, description: 'Memory, MB. Default: the value of the platform' })
const usage = Type.String({ maxLength: 65536, description: 'Notes on how to use the router' })
const consoleType = oneOf(['telnet', 'none'], { default: 'telnet' })
const value = { description: 'Idle-PC value of the image: the address at which dynamips sleeps while the router waits' }
const idlepc = Type.String({
  ...value,
  pattern: '^(0x[0-9a-fA-F]{1,16})?$',
  expects: 'an address such as 0x60008120, or an empty string for none',
})

const card = oneOf(['', ...cardNames], {
  $id: 'DynamipsCard',
  default: '',
  description: 'The card in a slot; empty: none, or in slot 0 the card of the chassis or C7200-IO-FE',
})
const wic = oneOf(['', ...wicNames], {
  $id: 'DynamipsWic',
  default: '',
  description: 'The card in a WIC slot of slot 0; empty: none',
})
const mac = '^([0-9a-fA-F]{4}\\.){2}[0-9a-fA-F]{4}$'
/** A size for which dynamips has a default. */
const size = (what: string, maximum: number) =>
  Type.Integer({ minimum: 0, maximum, default: 0, description: `${what}; 0: the default of dynamips` })
const config = (what: string) =>
  Type.String({ maxLength: 1 << 18, description: `${what}; %h stands for the name. An empty string changes nothing` })

/** The settings of a router that have the same default on all platforms. */
export const dynamipsSettings = {
  chassis: oneOf(chassisNames, {
    $id: 'DynamipsChassis',
    default: '',
    description: 'Model; empty: the default of the platform',
  }),
  slot0: card,
  slot1: card,
  slot2: card,
  slot3: card,
  slot4: card,
  slot5: card,
  slot6: card,
  wic0: wic,
  wic1: wic,
  wic2: wic,
  npe: oneOf(['npe-100', 'npe-150', 'npe-175', 'npe-200', 'npe-225', 'npe-300', 'npe-400', 'npe-g2'], {
    default: 'npe-400',
    description: 'Processor board of a c7200',
  }),
  nvram: size('NVRAM, KB', 4096),
  iomem: size('Share of the memory for packets, percent; a c7200 has none', 50),
  disk0: size('First PCMCIA disk, MB', 1024),
  disk1: size('Second PCMCIA disk, MB', 1024),
} as const

export type DynamipsNode = Static<typeof DynamipsNode>
export const DynamipsNode = objectSchema('DynamipsNode', 'A router that dynamips emulates', {
  ...nodeFields,
  console_type: consoleType,
  platform,
  image,
  ram,
  idlepc: nullable(Type.String(value)),
  usage,
  ...dynamipsSettings,
  mac_addr: Type.String({ description: 'First of the MAC addresses of the router' }),
})

export const { create: DynamipsCreate, update: DynamipsUpdate } = inputsOf('router', DynamipsNode, {
  required: { platform, image },
  optional: {
    ram,
    idlepc,
    usage,
    ...dynamipsSettings,
    mac_addr: Type.String({
      pattern: `^$|${mac}`,
      expects: 'a MAC address such as ca01.1234.0000, or nothing',
      description: 'First of the MAC addresses of the router; generated from its id when empty',
    }),
    startup_config_content: config('Startup configuration'),
    private_config_content: config('Private configuration'),
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
  409: 'No value helps, another measurement is running, or the router cannot run or was stopped; the message says which',
}
const measurement = {
  method: 'GET',
  role: 'operate',
  description:
    'Takes minutes, and ends with the request. A stopped router is started for the measurement, and stopped again; a running router keeps running. A host measures one router at a time.',
  errors: measurementErrors,
  isSlow: true,
} as const

export type DynamipsConfigs = Static<typeof DynamipsConfigs>
export const DynamipsConfigs = objectSchema(
  'DynamipsConfigs',
  'The configurations of a router; a member is absent when the router has no such configuration',
  { startup_config_content: Type.Optional(Type.String()), private_config_content: Type.Optional(Type.String()) },
)

const schemas = { node: DynamipsNode, create: DynamipsCreate, update: DynamipsUpdate }

export const dynamips = kind({
  name: 'dynamips',
  noun: 'router',
  title: 'Dynamips router',
  symbol: 'router',
  typeDefaults: ({ platform }) => (platform == null ? { platform: 'c7200' } : {}),
  formParts: {
    General: ['image', 'platform', 'ram', 'chassis', 'idlepc', 'usage'],
    Cards: [...slotFields, ...wicFields],
    Advanced: ['npe', 'nvram', 'iomem', 'disk0', 'disk1', 'mac_addr'],
  },
  firstSettings: ['image', 'platform', 'ram'],
  aliases: ['ios'],
  gns3: gns3Kind({
    nodeType: 'dynamips',
    hostName: 'ios',
    members: [
      ...['node_directory', 'usage', 'platform', 'image', 'ram', 'idlepc', 'console', 'console_type', 'chassis', 'npe'],
      ...['nvram', 'iomem', 'disk0', 'disk1', 'mac_addr', ...slotFields, ...wicFields],
    ],
    settings: ['startup_config_content', 'private_config_content'],
    // GNS3 numbers the routers of a compute. Its clients need the member, but nothing depends on the number.
    added: () => ({ dynamips_id: 1 }),
    // GNS3 shows the WIC slots of a c1700 as a card in slot 1.
    fromGns3: ({ slot1 }) => (slot1 === 'C1700-MB-WIC1' ? { slot1: '' } : {}),
  }),
  ...schemas,
  v1: v1Of('router', schemas, { lacks: ['console_type'] }),
  configs: {
    startup: { field: 'startup_config_content', action: 'configs' },
    private: { field: 'private_config_content', action: 'configs' },
  },
  liveFields: ['usage'],
  ports(node) {
    const hardware = completed(node as Hardware)
    return portsOfRouter(typeof hardware === 'string' ? (node as Hardware) : hardware)
  },
  settingsIssue(settings) {
    const hardware = completed(settings as Hardware)
    return typeof hardware === 'string' ? hardware : undefined
  },
  addressIssue({ mac_addr }) {
    const issue = typeof mac_addr === 'string' && mac_addr !== '' ? unicastIssue(mac_addr) : undefined
    return issue && `mac_addr: ${issue}`
  },
  nioTypes: ethernetNios,
  consoles: ['text'],
  canBeSuspended: true,
  conflicts: {
    create: 'no port is left, or the image is missing (its name is then in `image`) or is not an IOS image',
    update:
      'The router is running and its cards would change, or is being measured, or the image is missing (its name is then in `image`) or is not an IOS image',
    start: 'The router cannot run now, and the message says why; or its image is missing (its name is then in `image`)',
  },
  image: { field: 'image', archiveDirectory: 'IOS' },
  actions: {
    configs: action({
      method: 'GET',
      path: 'configs',
      summary: 'Read the configurations of a router: of its NVRAM while it runs, else of its files',
      output: DynamipsConfigs,
      answer: { description: 'The configurations' },
      isSlow: true,
    }),
    idlePcProposals: action({
      ...measurement,
      path: 'idlepc_proposals',
      labPath: 'dynamips/idlepc_proposals',
      summary: 'List values that may be the idle PC of a router',
      output: IdlePcProposals,
      answer: { description: 'The values' },
    }),
    autoIdlePc: action({
      ...measurement,
      path: 'auto_idlepc',
      labPath: 'dynamips/auto_idlepc',
      summary: 'Find the first of the proposals that lowers the load of the host',
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
