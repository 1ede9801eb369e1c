import { type Static, Type } from '@sinclair/typebox'
import { badRequest } from '../../lib/errors/api-error.ts'
import { oneLine } from '../../lib/text/one-line.ts'
import { ConsoleSize, consoleSizePath } from '../schema/console-size.ts'
import { maybe, nullable, objectSchema, oneOf } from '../schema/fields.ts'
import { ethernetNios } from '../schema/nio.ts'
import { nodeFields } from '../schema/node-fields.ts'
import { containerImageName, imageNeeds } from './image-names.ts'
import { inputsOf } from './inputs.ts'
import { action, adaptersOfOnePort, gns3Kind, kind } from './kind.ts'
import { type AddressSettings, addressIssue, macOfAdapter, macText } from './mac-addresses.ts'
import { guestDomain, ip4Pattern } from './nat-subnet.ts'
import { v1Of } from './v1.ts'

const consoleType = oneOf(['telnet', 'none'], { default: 'telnet' })

const image = Type.String({
  minLength: 1,
  maxLength: 4096,
  pattern: oneLine,
  description:
    'Image: an archive of `docker save` or an OCI archive, as a name in the images directory, or a path; or what registries call it (`alpine:3`), if `patchbay images pull` has brought it. Answers have its name in that directory',
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

const address = (description: string, rule: { pattern: string; expects: string }) =>
  Type.String({ maxLength: 18, default: '', description, ...rule })
const plainAddress = { pattern: `^(?:${ip4Pattern})?$`, expects: 'an IPv4 address, or an empty string for none' }

/** What every container may do, within its user namespace: as with Docker, and NET_ADMIN and NET_RAW for its adapters. */
export const baseCapabilities: readonly string[] = [
  ...['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'NET_ADMIN', 'NET_BIND_SERVICE', 'NET_RAW', 'SETFCAP'],
  ...['SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT'],
]

/** Capabilities that a container can have beside those that all have (capabilities(7)). */
const extraCapabilities = 'SYS_ADMIN|SYS_PTRACE|SYS_RESOURCE|SYS_NICE|IPC_LOCK|AUDIT_WRITE|MKNOD'

/** The text of `/etc/hosts`, with further lines. */
export const hostsText = (hostname: string | undefined, lines: readonly string[] = []): string =>
  [
    '127.0.0.1 localhost',
    '::1 localhost',
    ...(hostname === undefined ? [] : [`127.0.1.1 ${hostname}`]),
    ...lines,
    '',
  ].join('\n')

/** Where GNS3 has the configuration of the interfaces of a docker node, in its directory and in the container. */
export const interfacesPath = 'etc/network/interfaces'
/** What GNS3 does with it. A file in which nothing is set needs no such program. */
export const interfacesUp = `if grep -q '^ *iface' /${interfacesPath}; then mkdir -p /run/network && ifup -a; fi`

/** A node with several links forwards: it is on in the containers of Docker, whose host forwards. */
export const forwarding = (links: number): readonly string[] => (links > 1 ? ['net.ipv4.ip_forward=1'] : [])

/** The text of `/etc/resolv.conf`. */
export const resolverText = (resolver: string): string => `search ${guestDomain}\nnameserver ${resolver}\n`

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
const maxAdapters = 64

/** An adapter that differs from the others. */
const ContainerAdapter = Type.Object(
  {
    adapter_number: Type.Integer({ minimum: 0, maximum: maxAdapters - 1 }),
    port_name: maybe(Type.String({ maxLength: 64, description: 'Name of the port, for display' })),
    adapter_type: maybe(
      Type.String({ maxLength: 64, description: 'Without effect: adapters of containers have no models' }),
    ),
    mac_address: maybe(Type.String({ ...macText, description: 'MAC address' })),
  },
  { additionalProperties: false, description: 'An adapter that differs from the others' },
)

/** A further console of a container. */
const ContainerConsole = Type.Object(
  {
    name: Type.String({
      pattern: '^[a-z0-9][a-z0-9-]{0,31}$',
      expects: 'a name of small letters, digits and -, such as shell',
      description: 'Its name, such as shell',
    }),
    exec: Type.String({
      minLength: 1,
      maxLength: 1024,
      pattern: '^[^\\u0000]*$',
      description: 'Its command, such as /bin/sh',
    }),
  },
  {
    $id: 'ContainerConsole',
    additionalProperties: false,
    description: 'A further console, whose command begins when it is opened',
  },
)

/** Ids that a container has: 0 to 65535. */
const id = '(0|[1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5])'

/** The settings of a container, with their defaults: the members of its record. */
export const containerSettings = {
  usage: Type.String({ maxLength: 65536, default: '', description: 'Notes on how to use the container' }),
  command: words('Command'),
  entrypoint: words('Program that runs the command'),
  environment: lines('Variables, one `NAME=value` a line', {
    pattern: '^([^=\\s\\u0000][^=\\n\\u0000]*=[^\\n\\u0000]*(\\n+|$))*$',
    expects: 'lines of the form NAME=value',
  }),
  user: Type.String({
    maxLength: 11,
    pattern: `^(${id}(:${id})?)?$`,
    default: '',
    description: 'Whose its processes are: UID, or UID:GID. Empty: that of the image',
    expects: 'the number of a user, UID or UID:GID',
  }),
  workdir: Type.String({
    maxLength: 4096,
    pattern: '^(/[^\\u0000\\n]*)?$',
    default: '',
    description: 'Directory in which its command begins. Empty: that of the image',
    expects: 'the absolute path of a directory',
  }),
  shm: Type.Integer({ minimum: 1, maximum: 65536, default: 64, description: 'Size of /dev/shm, MB' }),
  adapters: Type.Integer({
    minimum: 0,
    maximum: maxAdapters,
    default: 1,
    description: 'Network adapters: eth0, eth1 and so on',
  }),
  custom_adapters: Type.Array(ContainerAdapter, {
    maxItems: maxAdapters,
    default: [],
    description: 'Adapters with another MAC address than the others',
  }),
  hosts: lines('Names of other hosts in `/etc/hosts`, one `ADDRESS NAME` a line', {
    pattern: '^([0-9a-fA-F:.]+[ \\t]+[^\\s\\u0000][^\\n\\u0000]*(\\n+|$))*$',
    expects: 'lines of the form 10.0.0.1 server',
  }),
  address: address('Address of eth0, with the length of its prefix; empty: none', {
    pattern: `^(?:${ip4Pattern}/(?:[12]?\\d|3[0-2]))?$`,
    expects: 'an IPv4 address such as 10.0.0.2/24, or an empty string for none',
  }),
  gateway: address('Its default gateway, beside an address; empty: none', plainAddress),
  resolver: address('The resolver that /etc/resolv.conf names; empty: the file of the image', plainAddress),
  exec: lines('Commands that run in the container once it has its adapters, one a line', {
    pattern: '^[^\\u0000]*$',
    expects: 'commands, one a line',
  }),
  consoles: Type.Array(ContainerConsole, {
    maxItems: 8,
    default: [{ name: 'shell', exec: '/bin/sh' }],
    description: 'Consoles beside that of its command',
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

const MacAddress = Type.String({
  pattern: `^(${macText.pattern.slice(1, -1)})?$`,
  expects: macText.expects,
  description: 'MAC address of the first adapter; the others follow. Empty: one that is made of the id',
})

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
  note: '. All but the name, the notes and the consoles take effect at the next start; the number of adapters changes only while it is stopped',
})
export type ContainerCreate = Static<typeof ContainerCreate>
export type ContainerUpdate = Static<typeof ContainerUpdate>

const orEmpty = (name: string, value: unknown): object =>
  typeof value === 'string' || value === null ? { [name]: (value ?? '').trim() } : {}

/** The lines of `/etc/hosts`, from those of Docker: `NAME:ADDRESS`. 400. */
function hostsOfDocker(text: string): string {
  const given = text.split('\n').map((line) => line.trim())
  return given
    .filter((line) => line !== '')
    .map((line) => {
      const [, host, address] = dockerHost.exec(line) ?? []
      if (address === undefined) throw badRequest(`extra_hosts: expected NAME:ADDRESS, got ${JSON.stringify(line)}`)
      return `${address} ${host}`
    })
    .join('\n')
}

/** A line of Docker for a host, with a name and an address. */
export const dockerHost = /^([^\s:]+)\s*:\s*([0-9a-fA-F.:]+)$/

const hostsForDocker = (hosts: unknown): string =>
  String(hosts ?? '')
    .split('\n')
    .flatMap((line) => {
      const [address, ...names] = line.trim().split(/\s+/)
      return names.map((name) => `${name}:${address}`)
    })
    .join('\n')

const MakeImage = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: oneLine,
      description: 'Name of the image',
      expects: 'the name of a file, in one line',
    }),
  },
  { $id: 'MakeImage', description: 'An image that is made of a node', additionalProperties: false },
)
const MadeImage = objectSchema('MadeImage', 'The image that was made', {
  path: Type.String({ description: 'Its name in the images directory' }),
  filesize: Type.Integer({ description: 'Bytes' }),
})

const schemas = { node: ContainerNode, create: ContainerCreate, update: ContainerUpdate }

export const container = kind({
  name: 'container',
  noun: 'container',
  title: 'Container',
  aliases: ['docker'],
  symbol: 'server',
  gns3: gns3Kind({
    nodeType: 'docker',
    hostName: 'rfc1123',
    members: [
      ...['node_directory', 'console', 'console_type', 'usage', 'image', 'adapters', 'mac_address', 'command'],
      ...['environment', 'hosts', 'ram', 'cpus'],
    ],
    toGns3: ({ image, command, hosts, ram, ...same }) => ({
      ...same,
      image: containerImageName(String(image ?? '')),
      start_command: command ?? '',
      extra_hosts: hostsForDocker(hosts),
      memory: ram ?? 0,
      aux: null,
    }),
    keptDefaults: {
      ...{ extra_volumes: [], console_resolution: '1024x768', console_http_port: 80, console_http_path: '/' },
    },
    atCreation: ({ image, adapters, capabilities, sysctls }) => ({
      capabilities: capabilities ?? [...imageNeeds(String(image)).capabilities],
      sysctls: sysctls ?? forwarding(Number(adapters ?? 1)).join('\n'),
    }),
    image: ({ path }) => ({ image: containerImageName(String(path)) }),
    fromGns3: ({ start_command, extra_hosts, memory }) => ({
      ...(typeof memory === 'number' && { ram: memory }),
      ...orEmpty('command', start_command),
      ...(typeof extra_hosts === 'string' || extra_hosts === null ? { hosts: hostsOfDocker(extra_hosts ?? '') } : {}),
    }),
  }),
  formParts: {
    General: ['image', 'adapters', 'usage'],
    Network: ['address', 'gateway', 'resolver'],
    Start: ['command', 'entrypoint', 'environment', 'user', 'workdir', 'exec', 'consoles'],
    Advanced: ['mac_address', 'hosts', 'files', 'sysctls', 'capabilities', 'ram', 'cpus', 'shm', 'processes'],
  },
  firstSettings: ['image', 'adapters', 'command'],
  ...schemas,
  v1: v1Of('container', schemas),
  liveFields: ['usage', 'consoles'],
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
  actions: {
    makeImage: action({
      method: 'POST',
      path: 'image',
      labPath: 'image',
      summary: 'Make an image of a container: its image, and a layer with what it has written',
      description:
        'An OCI archive in the images directory of the compute of the node, which may run meanwhile. Its environment, command and other ' +
        'settings are not in it. Those may do this who may add such an image.',
      versions: ['v2'],
      input: MakeImage,
      output: MadeImage,
      answer: { status: 201, description: 'Made' },
      errors: {
        403: 'Outside local mode only an administrator may add an image',
        409: 'An image of this name exists, or the image cannot be made; the message says why',
        507: 'The disk is nearly full',
      },
    }),
    resizeConsole: action({
      method: 'POST',
      path: consoleSizePath,
      labPath: consoleSizePath,
      summary: 'Resize the terminal of a console',
      description:
        'A console of which nobody has said a size has 80 columns and 24 rows. The first one has the size that came last.',
      versions: ['v2'],
      input: ConsoleSize,
      answer: { status: 201, description: 'Resized' },
      errors: { 409: 'The container is not running, or has no such terminal' },
    }),
  },
  hasFiles: true,
  tellsReady: true,
  management: {
    settings: ({ address, prefix, gateway }) => ({ address: `${address}/${prefix}`, gateway, resolver: gateway }),
  },
})
