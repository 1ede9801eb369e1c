import { type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { notInLine } from '../lib/text/one-line.ts'
import { CaptureStart } from '../model/capture.ts'
import { ContainerFile } from '../model/kinds/container.ts'
import { kinds } from '../model/kinds/index.ts'
import type { KindDescriptor } from '../model/kinds/kind.ts'
import { natSettings } from '../model/kinds/nat.ts'
import { ip4Pattern } from '../model/kinds/nat-subnet.ts'
import { kindOf, type NodeKindName } from '../model/kinds/node.ts'
import { SwitchPort } from '../model/kinds/switch.ts'
import { LabReady } from '../model/lab/node.ts'
import { maxPoints, maxTaskChecks, maxTasks, maxTaskText } from '../model/lab/task-limits.ts'
import { maxChecks } from '../model/lab/topology.ts'
import { Placement } from '../model/placement.ts'
import { WantedCompute } from '../model/project.ts'
import { closedSchema, Name, oneOf } from '../model/schema/fields.ts'
import { LinkVerdict } from '../model/schema/nio.ts'
import { isSegmentKind, type SegmentKind, segmentKinds } from './segment-kinds.ts'
import { shortWords, wordOfKind } from './short-words.ts'
import { quantity, quantityOrZero } from './units.ts'

const nodeKinds = kinds.map(({ name }) => name).filter((name) => !isSegmentKind(name))
/** The words for `kind` of a node. */
export const kindWords: readonly string[] = [...nodeKinds, ...Object.keys(shortWords)]
/** The kind of a word. */
export const kindOfWord = (word: string): NodeKindName | undefined =>
  Object.hasOwn(shortWords, word)
    ? shortWords[word as keyof typeof shortWords]
    : nodeKinds.find((kind) => kind === word)

const text = (description: string, maxLength = 4096) => Type.String({ maxLength, description })
const flag = (description: string) => Type.Boolean({ description })
/** A map whose keys fit the pattern. */
const record = <T extends TSchema>(keyExpects: string, pattern: string, value: T, description: string) =>
  Type.Record(Type.String({ pattern }), value, { keyExpects, description })

const file = Type.String({
  minLength: 1,
  maxLength: 1024,
  expects: 'the path of a file, such as ./r1.cfg',
  description: 'A file, relative to the directory of the lab file',
})
const content = closedSchema('LabFileContent', 'The text itself', { text: text('The text', 1 << 20) })

/** A name of a node. Characters that separate names in ends of links and in commands are not allowed. */
export const NodeName = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: `^[^:/${notInLine}]*$`,
  expects: 'a name of 1 to 255 characters in one line, without : and /',
})
/** The name of a lab. */
export const LabName = Type.String({
  pattern: '^[a-z0-9][a-z0-9-]{0,62}$',
  description: 'Name of the lab',
  expects: 'a name of 1 to 63 small letters, digits and -, such as wan-edge',
})
/** `NODE` or `NODE:PORT`. */
const End = Type.String({
  minLength: 1,
  maxLength: 600,
  expects: 'NODE or NODE:PORT, such as R1:eth0',
  description: 'An end of a link: the name of a node, and a port by its name or as adapter/port. Without a port: 0',
})

const config = Type.Union([
  file,
  closedSchema('LabFileConfig', 'A configuration', {
    text: Type.Optional(text('The configuration itself', 1 << 20)),
    file: Type.Optional(file),
    private: Type.Optional(Type.Union([file, content], { description: 'The private configuration of a router' })),
  }),
])
/** A word between the slashes of a path, but `.` and `..`. */
const fileWord = `(?!\\.{1,2}(?:/|$))[^/\\\\${notInLine}]{1,64}`
const day0 = closedSchema('LabFileDay0', 'A CD or a disk for the first boot of the machine', {
  medium: Type.Optional(
    oneOf(['cd', 'disk'], { description: 'A CD, or a disk (FAT) as the second disk hdb. Default: cd' }),
  ),
  label: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9_-]{1,32}$',
      expects: 'a name of 1 to 32 letters, digits, _ and -',
      description: 'Name of the volume: cidata for cloud-init (NoCloud), config-2 for OpenStack',
    }),
  ),
  files: record(
    'the name of a file',
    `^${fileWord}(?:/${fileWord}){0,7}$`,
    Type.Union([file, content], { expects: 'the path of a file, or { text: "..." }' }),
    'Its files by name; a name may have directories',
  ),
})
const { path, mode } = ContainerFile.properties
/** The files of a container, whose texts may be in files beside the lab file. */
const containerFiles = Type.Array(
  closedSchema('LabFileContainerFile', 'A file that a container begins with', {
    path,
    text: Type.Optional(content.properties.text),
    file: Type.Optional(file),
    mode,
  }),
  { maxItems: 64, description: 'Files that the container begins with' },
)
const { console, tcp, exec, within_s, seconds } = LabReady.properties
/** The conditions of `ready`. */
export const Condition = closedSchema('LabFileCondition', 'When a node is ready', {
  console: Type.Optional(Type.String({ ...console, minLength: 1 })),
  press: Type.Optional(text('Typed on the console once a second until `console` matches, such as "\\r"', 100)),
  tcp: Type.Optional(tcp),
  exec: Type.Optional(Type.String({ ...exec, minLength: 1 })),
  after: Type.Optional(quantity('time', String(seconds.description), 's')),
  within: Type.Optional(quantity('time', String(within_s.description), 's')),
})
const labels = record(
  'a key of 1 to 100 characters',
  '^[^\\u0000-\\u001f\\u007f]{1,100}$',
  Type.String({ maxLength: 1000 }),
  'Texts that users attached to it, by key',
)
/** As in the interface, without its name: an editor shows the keys here. */
const { policy, labels: wanted } = Placement.properties
const placement = Type.Object(
  { policy, labels: wanted },
  {
    additionalProperties: false,
    expects: 'a map such as { policy: spread, labels: [kvm] }',
    description: 'How the compute of a node is chosen that names none',
  },
)
const coordinate = Type.Integer({ minimum: -1_000_000, maximum: 1_000_000 })
const both = {
  at: Type.Optional(
    Type.Tuple([coordinate, coordinate], {
      expects: 'two integers: [x, y]',
      description: 'Position on the map: [x, y]',
    }),
  ),
  compute: Type.Optional(Type.String({ ...WantedCompute, description: 'Id or name of its compute' })),
  symbol: Type.Optional(text('Name or path of its symbol')),
  labels: Type.Optional(labels),
  placement: Type.Optional(placement),
  was: Type.Optional(
    Type.String({ ...NodeName, description: 'Its earlier name: it keeps its disk and configuration' }),
  ),
}

/** The keys of a node that every kind has. */
const nodeKeys = {
  is: Type.Optional(text('Name of a template', 255)),
  kind: Type.Optional(oneOf(kindWords, { description: 'Kind of the node' })),
  ...both,
  ports: Type.Optional(
    Type.Union(
      [text('A pattern, such as eth{0} or Gi0/{1-}', 100), Type.Array(text('Name of a port', 100), { maxItems: 1024 })],
      {
        expects: 'a pattern such as eth{0}, or a list of names',
        description: 'Names of the ports: a pattern with {0} (counts from 0) or {1-} (counts from 1), or a list',
      },
    ),
  ),
  start: Type.Optional(flag('Whether `up` starts it; default: true')),
  after: Type.Optional(
    Type.Array(NodeName, { maxItems: 100, description: 'Names of nodes that must be ready before it starts' }),
  ),
  ready: Type.Optional(
    Type.Union([Condition, Type.Array(Condition, { minItems: 1, maxItems: 8 })], {
      expects: 'a condition such as { console: "login:" }, or a list of conditions',
      description: 'When the node is ready; default: when it is started',
    }),
  ),
}
/** Most ports of the host that lead to one node. */
export const maxManagedPorts = 64
const managementAddress = Type.String({
  pattern: `^${ip4Pattern}$`,
  expects: 'an IPv4 address such as 172.20.20.11',
  description: 'Its address in the management network; default: one that follows from its name',
})
/** Keys that only some kinds have. */
const kindKeys = {
  management: Type.Optional(
    Type.Union(
      [
        Type.Boolean({ description: 'Whether it is in the management network; default: true' }),
        managementAddress,
        closedSchema('LabFileNodeManagement', 'How it is in the management network', {
          address: Type.Optional(managementAddress),
          ports: Type.Optional(
            Type.Array(
              Type.String({
                pattern: `^(?:${ip4Pattern}:)?\\d{1,5}:\\d{1,5}(?:/(?:tcp|udp))?$`,
                expects: 'HOST:NODE, such as 8080:80, 8053:53/udp or 127.0.0.2:8080:80',
              }),
              { maxItems: maxManagedPorts, description: 'Ports of the host that lead to ports of the node' },
            ),
          ),
        }),
      ],
      { expects: 'an address such as 172.20.20.11, { address: 172.20.20.11, ports: ["8080:80"] }, or false' },
    ),
  ),
  image: Type.Optional(
    Type.String({
      ...{
        minLength: 1,
        maxLength: 4200,
        expects: 'the name of an image, such as vyos.qcow2 or vyos.qcow2@sha256:HEX',
      },
      description: 'Image from which it boots; with its digest as NAME@sha256:HEX or NAME@md5:HEX',
    }),
  ),
  config: Type.Optional(config),
  day0: Type.Optional(day0),
}
/** Every key that some node may have, without the fields of its kind. */
export const nodeKeyNames: readonly string[] = Object.keys({ ...nodeKeys, ...kindKeys })

const without = (properties: TProperties, names: readonly string[]): TProperties =>
  Object.fromEntries(Object.entries(properties).filter(([name]) => !names.includes(name)))
const optional = (properties: TProperties): TProperties =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, Type.Optional(schema)]))

/** The fields of a kind that a lab file has, from the schema of a create. */
export const fieldsOf = (kind: NodeKindName): TProperties =>
  without(kindOf(kind).create.properties, ['name', 'node_id', ...(isSegmentKind(kind) ? segmentLacks : [])])
const segmentLacks = ['ports_mapping', 'console', 'console_type']

/** Whether a CD can be made for a node of the kind. */
const takesDay0 = (kind: NodeKindName): boolean => 'cdrom_image' in kindOf(kind).create.properties

const each = <K extends string, T>(names: readonly K[], value: (name: K) => T): Readonly<Record<K, T>> =>
  Object.fromEntries(names.map((name) => [name, value(name)])) as Record<K, T>

/** A node of a kind, with its template taken over. */
export const nodeSchemas: Readonly<Record<string, TObject>> = each(nodeKinds, (kind) => {
  const { configs, image, management }: KindDescriptor = kindOf(kind)
  const lacks = [
    ...(configs === undefined ? ['config'] : []),
    ...(image === undefined ? ['image'] : []),
    ...(takesDay0(kind) ? [] : ['day0']),
    ...(management === undefined ? ['management'] : []),
  ]
  return closedSchema(`LabFile-${kind}`, `A node of kind ${wordOfKind(kind)}`, {
    ...optional(fieldsOf(kind)),
    ...(kind === 'container' && { files: Type.Optional(containerFiles) }),
    ...nodeKeys,
    ...without(kindKeys, lacks),
  })
})

const impairment = {
  delay: Type.Optional(quantityOrZero('time', 'How long each frame is delayed', 'ms')),
  jitter: Type.Optional(quantityOrZero('time', 'How much the delay varies; needs delay', 'ms')),
  loss: Type.Optional(quantityOrZero('share', 'Share of frames that are dropped at random', '%')),
  rate: Type.Optional(quantityOrZero('rate', 'Highest rate of frames; more frames wait', 'mbit')),
  burst: Type.Optional(
    quantityOrZero('size', 'How much may pass at once above the rate; needs rate; default: 16kb', 'kb'),
  ),
  longest_wait: Type.Optional(
    quantityOrZero('time', 'Frames that wait longer for the rate are dropped; needs rate; default: 100ms', 'ms'),
  ),
  corrupt: Type.Optional(quantityOrZero('share', 'Share of frames of which a byte is changed', '%')),
  duplicate: Type.Optional(quantityOrZero('share', 'Share of frames that are sent twice', '%')),
  reorder: Type.Optional(
    quantityOrZero('share', 'Share of frames that are held back, so that later ones overtake them', '%'),
  ),
  held: Type.Optional(quantityOrZero('time', 'How long reorder holds frames back; needs reorder; default: 10ms', 'ms')),
  drop_every: Type.Optional(
    Type.Integer({
      minimum: -1,
      maximum: 32767,
      description: 'Drops every n-th frame; -1: all',
      expects: 'a number of at least 1, or -1 for all',
    }),
  ),
  bpf: Type.Optional(text('Drops frames that match one of these tcpdump expressions, one per line')),
  bpf_link_type: Type.Optional(text('Link type for bpf, such as DLT_PPP_SERIAL', 50)),
}
/** The impairment of one direction. */
export type Impairment = Static<typeof Impairment>
export const Impairment = closedSchema('LabFileImpairment', 'Impairment of one direction', impairment)
export const impairmentKeys = Object.keys(impairment) as readonly (keyof typeof impairment)[]

const linkKeys = {
  name: Type.Optional(Type.String({ ...Name, description: 'Name of the link' })),
  down: Type.Optional(flag('Whether the link drops all frames; default: false')),
  capture: Type.Optional(
    Type.Union([Type.Boolean(), CaptureStart.properties.capture_file_name], {
      expects: 'true, or the name of a file',
      description: 'A capture of the link into a file of the project',
    }),
  ),
  ...impairment,
  there: Type.Optional(Impairment),
  back: Type.Optional(Impairment),
}
const ends = Type.Tuple([End, End], { expects: 'two ends, such as [R1:eth0, R2:eth0]', description: 'Its two ends' })
/** A link in the form of a map. */
export type LinkMap = Static<typeof LinkMap>
export const LinkMap = closedSchema('LabFileLink', 'A link: its ends, its name and its impairment', {
  ends,
  ...linkKeys,
})
const link = Type.Union([ends, LinkMap], { expects: 'two ends, such as [R1:eth0, R2:eth0], or { ends: [...], ... }' })

const { vlan, ethertype } = SwitchPort.properties
/** The tagging of a port of a switch. */
export type Tagging = Static<TObject<typeof tagging>>
const tagging = {
  vlan: Type.Optional(
    Type.Integer({ ...vlan, description: 'VLAN of the port; with trunk the native one; default: 1' }),
  ),
  trunk: Type.Optional(flag('Whether the port takes all VLANs, tagged (dot1q)')),
  qinq: Type.Optional(Type.Integer({ ...vlan, description: 'Outer VLAN: the port is a trunk inside of it' })),
  ethertype: Type.Optional(
    oneOf(
      ethertype.anyOf.map((it) => String(it.const)),
      { description: String(ethertype.description) },
    ),
  ),
}
export const taggingKeys = Object.keys(tagging) as readonly (keyof typeof tagging)[]
const portNumber = (maximum: number) => Type.Integer({ minimum: 0, maximum, description: 'Number of the port' })
/** A member in the form of a map. */
export type MemberMap = Static<typeof MemberMap>
export const MemberMap = closedSchema('LabFileMember', 'A link to a segment', {
  end: End,
  port: Type.Optional(portNumber(1023)),
  ...tagging,
  ...linkKeys,
})
const members = Type.Optional(
  Type.Array(Type.Union([End, MemberMap], { expects: 'an end such as R1:eth0, or { end: R1:eth0, ... }' }), {
    maxItems: 1024,
    description: 'The links to the segment, each at the lowest free port',
  }),
)

/** The settings of a port in `ports` of a segment: those of `ports_mapping` of its kind, with `tagging` for a switch. */
function portSchemaOf(kind: SegmentKind): TObject | undefined {
  const mapping = kindOf(kind).create.properties.ports_mapping
  if (mapping === undefined) return undefined
  const port = (mapping as unknown as { anyOf: readonly [{ items: TObject }] }).anyOf[0].items
  const fields = without(
    port.properties,
    kind === 'switch' ? ['port_number', 'type', 'vlan', 'ethertype'] : ['port_number'],
  )
  return closedSchema(`LabFile-${kind}-port`, `A port of a ${kind}`, { ...fields, ...(kind === 'switch' && tagging) })
}

/** A segment of a kind. */
export const segmentSchemas: Readonly<Record<SegmentKind, TObject>> = each(segmentKinds, (kind) => {
  const port = portSchemaOf(kind)
  return closedSchema(`LabFile-${kind}`, `A segment of kind ${kind}`, {
    ...optional(fieldsOf(kind)),
    kind: Type.Literal(kind),
    ...both,
    ...(kind === 'cloud' && { device: Type.Optional(text('Device of the host at its ports', 15)) }),
    ...(port !== undefined && {
      ports: Type.Optional(record('the number of a port', '^(?:0|[1-9]\\d{0,3})$', port, 'Settings of single ports')),
    }),
    members,
  })
})

const within = Type.Optional(quantity('time', 'Longest wait; default: 30s, inside of `not` 5s', 's'))
const checkKeys = {
  name: Type.Optional(text('Name of the check', 255)),
  within,
  from: Type.Optional(NodeName),
  ping: Type.Optional(Type.String({ ...Name, description: 'Name of a pc with an address, or an address' })),
  on: Type.Optional(NodeName),
  type: Type.Optional(text('Line that is typed on the console of the node', 1000)),
  expect: Type.Optional(Type.String({ ...console, minLength: 1, description: 'Regular expression for the output' })),
  link: Type.Optional(Type.String({ ...Name, description: 'Name of a link' })),
  verdict: Type.Optional(LinkVerdict),
}
/** A check: `from` and `ping`, `on`, `type` and `expect`, `link` and `verdict`, or `not`. */
export type CheckMap = Static<typeof CheckMap>
export const CheckMap = closedSchema('LabFileCheck', 'A check of the lab', {
  ...checkKeys,
  not: Type.Optional(closedSchema('LabFileInnerCheck', 'A check that must not pass', checkKeys)),
})

/** A task: what somebody is to do in the lab, and the checks that say whether it is done. */
const TaskMap = closedSchema('LabFileTask', 'A task of the lab', {
  name: Type.String({ ...Name, description: 'Name of the task, which no other task has' }),
  text: Type.Optional(text('What is to be done, in Markdown', maxTaskText)),
  checks: Type.Optional(
    Type.Array(text('Name of a check', 600), {
      maxItems: maxTaskChecks,
      description: 'Names of checks: the task is done when all of them hold. A task without checks is only read',
    }),
  ),
  points: Type.Optional(
    Type.Integer({ minimum: 0, maximum: maxPoints, default: 1, description: 'What it counts in the score' }),
  ),
})

const Starting = closedSchema('LabFileStarting', 'How the nodes are started', {
  at_once: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 10_000, description: 'How many nodes may start at the same time' }),
  ),
  load_below: Type.Optional(quantity('share', 'Load of the processors above which no further node is started', '%')),
  give_up: Type.Optional(
    oneOf(['stop', 'go-on'], {
      description:
        'When a node is not ready in time: stop starts nothing further (default), go-on leaves out only the nodes after it',
    }),
  ),
})

/** The name of the management network, where the file gives none. */
export const managementName = 'management'
/** The network of the management network, where the file gives none: that of containerlab. */
export const managementNetwork = '172.20.20.0/24'
/** The management network: a nat with a link to every node that can have one. */
export type ManagementMap = Static<typeof ManagementMap>
const ManagementMap = closedSchema('LabFileManagement', 'The management network of the lab', {
  network: Type.Optional(
    Type.String({
      ...natSettings.subnet,
      default: managementNetwork,
      description: 'Its IPv4 network; its first address is the gateway, the DHCP server and the resolver',
    }),
  ),
  name: Type.Optional(Type.String({ ...NodeName, default: managementName, description: 'Name of its nat' })),
  ...both,
})

/** The value of a variable. */
const Variable = Type.Union([Type.String({ maxLength: 4096 }), Type.Number(), Type.Boolean()], {
  expects: 'a string, a number, true or false',
})

/** The sections of a lab file. Nodes, templates and segments are of a schema of their kind (`nodeSchemas`, `segmentSchemas`). */
export const sections = {
  lab: LabName,
  version: Type.Optional(Type.Literal(1, { description: 'Version of the format' })),
  about: Type.Optional(text('What the lab is for')),
  compute: Type.Optional(
    Type.String({ ...WantedCompute, description: 'Id or name of the compute of all nodes that name none' }),
  ),
  placement: Type.Optional(placement),
  vars: Type.Optional(
    record(
      'a name of letters, digits, _ and -',
      '^[A-Za-z_][A-Za-z0-9_-]{0,62}$',
      Variable,
      'Variables by their names: a value may have such a name in braces after a dollar sign',
    ),
  ),
  links: Type.Optional(Type.Array(link, { maxItems: 100_000, description: 'The links' })),
  management: Type.Optional(ManagementMap),
  starting: Type.Optional(Starting),
  checks: Type.Optional(
    Type.Array(CheckMap, { maxItems: maxChecks, description: 'The checks of `patchbay test`, in their order' }),
  ),
  tasks: Type.Optional(
    Type.Array(TaskMap, { maxItems: maxTasks, description: 'The tasks beside the map, in their order' }),
  ),
}
export const sectionNames: readonly string[] = [
  ...[
    'lab',
    'version',
    'about',
    'compute',
    'placement',
    'vars',
    'templates',
    'nodes',
    'segments',
    'management',
    'links',
    'starting',
    'checks',
    'tasks',
  ],
]
