import { type Static, Type } from '@sinclair/typebox'
import { oneLine } from '../../lib/text/one-line.ts'
import { nullable, objectSchema, oneOf } from '../schema/fields.ts'
import { ethernetNios } from '../schema/nio.ts'
import { nodeFields } from '../schema/node-fields.ts'
import { inputsOf } from './inputs.ts'
import { adaptersOfOnePort, kind } from './kind.ts'
import { type AddressSettings, addressIssue, macOfAdapter, macText } from './mac-addresses.ts'
import { v1Of } from './v1.ts'

const consoleType = oneOf(['telnet', 'none'], { default: 'telnet' })

const image = Type.String({
  minLength: 1,
  maxLength: 4096,
  pattern: oneLine,
  description:
    'Image: an archive of `docker save` or an OCI archive, as a name in the images directory, or a path; answers show a path below that directory as a name',
  expects: 'the name or path of an image, in one line',
  holds: 'image',
})

const words = (description: string) =>
  Type.String({
    maxLength: 4096,
    pattern: '^[^\\u0000]*$',
    default: '',
    description: `${description}, in words as a shell splits them. Empty: that of the image`,
    expects: 'a string of at most 4096 characters',
  })

const lines = (description: string, rule: { pattern: string; expects: string }) =>
  Type.String({ maxLength: 65536, default: '', description, ...rule })

/** What every container may do, within its user namespace: as with Docker, and NET_ADMIN and NET_RAW for its adapters. */
export const baseCapabilities: readonly string[] = [
  ...['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'NET_ADMIN', 'NET_BIND_SERVICE', 'NET_RAW', 'SETFCAP'],
  ...['SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT'],
]

/** Capabilities that a container can have beside those that all have (capabilities(7)). */
const extraCapabilities = 'SYS_ADMIN|SYS_PTRACE|SYS_RESOURCE|SYS_NICE|IPC_LOCK|AUDIT_WRITE|MKNOD'

/** The name of a node as the name of a host (RFC 1123). */
export const hostnameOf = (name: string): string =>
  name
    .replace(/[^A-Za-z0-9-]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 63) || 'container'

/** The text of `/etc/hosts`, with further lines. */
export const hostsText = (hostname: string | undefined, lines: readonly string[] = []): string =>
  [
    '127.0.0.1 localhost',
    '::1 localhost',
    ...(hostname === undefined ? [] : [`127.0.1.1 ${hostname}`]),
    ...lines,
    '',
  ].join('\n')

/** A file that a container begins with. */
export type ContainerFile = Static<typeof ContainerFile>
export const ContainerFile = Type.Object(
  {
    path: Type.String({
      maxLength: 4096,
      pattern: '^/(?!\\.{1,2}(/|$))[^\\u0000\\n]*[^/\\u0000\\n]$',
      expects: 'the absolute path of a file',
      description: 'Path in the container',
    }),
    text: Type.String({ maxLength: 1 << 20, description: 'Its content, at the first start and after a change of it' }),
    mode: Type.Optional(
      Type.String({ pattern: '^0?[0-7]{3}$', expects: 'an octal mode such as 0644', description: 'Default: 0644' }),
    ),
  },
  { additionalProperties: false, description: 'A file that a container begins with' },
)

/** Less memory would not do for the programs that make a container, MB. */
export const leastRam = 16

/** The settings of a container, with their defaults: the members of its record. */
export const containerSettings = {
  usage: Type.String({ maxLength: 65536, default: '', description: 'Notes on how to use the container' }),
  command: words('Command'),
  entrypoint: words('Program that runs the command'),
  environment: lines('Variables, one `NAME=value` a line', {
    pattern: '^([^=\\s\\u0000][^=\\n\\u0000]*=[^\\n\\u0000]*(\\n+|$))*$',
    expects: 'lines of the form NAME=value',
  }),
  adapters: Type.Integer({
    minimum: 0,
    maximum: 64,
    default: 1,
    description: 'Network adapters: eth0, eth1 and so on',
  }),
  exec: lines('Commands that run in the container once it has its adapters, one a line', {
    pattern: '^[^\\u0000]*$',
    expects: 'commands, one a line',
  }),
  files: Type.Array(ContainerFile, { maxItems: 64, default: [], description: 'Files that the container begins with' }),
  sysctls: lines('Kernel parameters of its network, one `net.name=value` a line', {
    pattern: '^(net(\\.[A-Za-z0-9_-]+)+=[^\\n\\u0000]*(\\n+|$))*$',
    expects: 'lines of the form net.ipv4.ip_forward=1',
  }),
  capabilities: Type.Array(
    Type.String({ pattern: `^(${extraCapabilities})$`, expects: `one of ${extraCapabilities.replaceAll('|', ', ')}` }),
    {
      maxItems: 16,
      default: [],
      description: 'Capabilities beside those that every container has, within its own user namespace',
    },
  ),
  ram: Type.Integer({
    minimum: 0,
    maximum: 1 << 24,
    default: 0,
    description: `Limit of memory, MB, with that of files in /run and /dev/shm, at least ${leastRam}; 0: that of the host`,
  }),
  cpus: Type.Number({
    minimum: 0,
    maximum: 255,
    default: 0,
    description: 'Limit of processor time, in processors: 0.5 is half of one; 0: all of the host',
  }),
  processes: Type.Integer({ minimum: 8, maximum: 65536, default: 1024, description: 'Limit of processes and threads' }),
} as const

const MacAddress = Type.String({ ...macText, description: 'MAC address of the first adapter; the others follow' })

export type ContainerNode = Static<typeof ContainerNode>
export const ContainerNode = objectSchema('ContainerNode', 'A container, with namespaces of its own', {
  ...nodeFields,
  console_type: consoleType,
  image,
  image_md5sum: nullable(Type.String({ description: 'MD5 of the image; null until it is computed' })),
  mac_address: MacAddress,
  ...containerSettings,
})

export const { create: ContainerCreate, update: ContainerUpdate } = inputsOf('container', ContainerNode, {
  required: { image },
  optional: { mac_address: MacAddress, ...containerSettings },
  note: '. All but the name and the notes take effect at the next start; the number of adapters changes only while it is stopped',
})
export type ContainerCreate = Static<typeof ContainerCreate>
export type ContainerUpdate = Static<typeof ContainerUpdate>

const schemas = { node: ContainerNode, create: ContainerCreate, update: ContainerUpdate }

export const container = kind({
  name: 'container',
  noun: 'container',
  title: 'Container',
  aliases: ['docker'],
  symbol: 'server',
  formParts: {
    General: ['image', 'adapters', 'usage'],
    Start: ['command', 'entrypoint', 'environment', 'exec'],
    Advanced: ['mac_address', 'files', 'sysctls', 'capabilities', 'ram', 'cpus', 'processes'],
  },
  firstSettings: ['image', 'adapters', 'command'],
  ...schemas,
  v1: v1Of('container', schemas),
  liveFields: ['usage'],
  portNameFormat: 'eth{0}',
  ports: ({ adapters, mac_address }) =>
    adaptersOfOnePort(adapters).map((shape) => ({
      ...shape,
      name: `eth${shape.adapter}`,
      mac_address: macOfAdapter(mac_address, shape.adapter),
    })),
  addressIssue: (settings) => addressIssue(settings as AddressSettings),
  nioTypes: ethernetNios,
  consoles: ['text'],
  canBeSuspended: false,
  startWeight: 1,
  conflicts: {
    create: 'no port is left, or the image is missing (its name is then in `image`)',
    update: 'The change is not possible now, or the image is missing (its name is then in `image`)',
    start:
      'The container cannot run now: crun, sub-ids or another part is missing, or its image is; the message says which',
  },
  image: { field: 'image', isProgram: true, isOfRegistry: true },
  hasFiles: true,
})
