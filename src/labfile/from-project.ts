import type { TSchema } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import type { KindDescriptor } from '../model/kinds/kind.ts'
import { kindOf } from '../model/kinds/node.ts'
import type { LabLink, LabLinkEnd } from '../model/lab/link.ts'
import { isKnownKind, type LabNode, mapFields } from '../model/lab/node.ts'
import { portsOf } from '../model/lab/ports.ts'
import { isUuid } from '../model/schema/fields.ts'
import type {
  Desired,
  DesiredConfig,
  DesiredEnd,
  DesiredLink,
  DesiredNode,
  DesiredReady,
  DesiredSettings,
  SegmentPort,
} from './desired.ts'
import { Diagnostics } from './diagnostics.ts'
import { digestOf } from './files.ts'
import { nodeIdOf, projectIdOf } from './ids.ts'
import { normalFilters } from './impairment.ts'
import { withManagement } from './management.ts'
import { labName } from './names.ts'
import { defaultOf, portsOfNode } from './nodes.ts'
import type { Position } from './position.ts'
import { requireExpression } from './ready.ts'
import { fieldsOf } from './schema.ts'
import { isSegmentKind } from './segment-kinds.ts'

/** A project as it is. */
export interface ProjectState {
  readonly name: string
  /** With the segments. */
  readonly nodes: readonly LabNode[]
  readonly links: readonly LabLink[]
  /** Texts of the configurations, by the id of the node and the name of the configuration. */
  readonly configs: ReadonlyMap<string, Readonly<Record<string, string>>>
  /** Names of the files of captures that a lab file has started, by the ids of their links. Other captures are not part of a lab. */
  readonly captured?: ReadonlyMap<string, string | undefined>
}

/** A project as a lab file would have it. */
export interface ProjectAsDesired {
  readonly desired: Desired
  /** What a lab file cannot have, as one sentence each. */
  readonly leftOut: readonly string[]
}

/** PC2 before PC10. The order of the document is of no use: concurrent requests make nodes and links in any order. */
const order = new Intl.Collator('en', { numeric: true })

const nowhere: Position = { line: 1, column: 1, path: '' }

/**
 * The normal form of a project. Settings with their defaults are left out, and so are addresses and numbers that a compute gives each
 * node. The ids are those that a lab file gives, and not those of the project.
 */
export async function desiredOfProject(state: ProjectState): Promise<ProjectAsDesired> {
  const leftOut: string[] = []
  const lab = labName(state.name)
  const names = fileNamesOf(state.nodes)
  const computes = new Set(state.nodes.map(({ compute_id }) => compute_id))
  const made = new Map<string, DesiredNode>()
  for (const record of [...state.nodes].sort((a, b) => order.compare(a.name, b.name))) {
    const name = names.get(record.node_id) ?? record.name
    if (name !== record.name)
      leftOut.push(`The node ${record.name} is named ${name} here: its name is not allowed in a lab file.`)
    if (!isKnownKind(record.node_type)) {
      leftOut.push(`The node ${record.name}: there is no kind ${record.node_type}.`)
      continue
    }
    const node = await nodeOf(record, { lab, name, configs: state.configs.get(record.node_id) ?? {}, leftOut })
    made.set(record.node_id, computes.size > 1 ? { ...node, compute_id: record.compute_id } : node)
  }
  const known = new Map([...made.values()].map((node) => [node.name.toLowerCase(), node.name]))
  const all = [...made.values()].map((node) => ({
    ...node,
    after: node.after.flatMap(
      (word) => known.get((names.get(idOfName(state.nodes, word)) ?? word).toLowerCase()) ?? [],
    ),
  }))
  const { links, segments } = linksOf(state, made, leftOut)
  const nodes = all.map((node) => {
    const segment = node.segment && segments.get(node.name)
    return segment === undefined ? node : { ...node, ...segment }
  })
  const isSegment = ({ segment }: DesiredNode) => segment !== undefined
  return {
    desired: withManagement({
      lab,
      project_id: projectIdOf(lab),
      nodes: [...nodes.filter((node) => !isSegment(node)), ...nodes.filter(isSegment)],
      links,
      starting: { give_up: 'stop' },
      checks: [],
      at: nowhere,
    }),
    leftOut,
  }
}

const idOfName = (nodes: readonly LabNode[], word: string): string =>
  nodes.find(({ name }) => name.toLowerCase() === word.toLowerCase())?.node_id ?? ''

/** The names that a lab file has for nodes, by id. */
export function fileNamesOf(nodes: readonly Pick<LabNode, 'node_id' | 'name'>[]): Map<string, string> {
  const taken = new Set(nodes.map(({ name }) => name.toLowerCase()))
  return new Map(
    nodes.map(({ node_id, name }) => {
      if (!/[:/]/.test(name) && !isUuid(name)) return [node_id, name]
      const plain = isUuid(name) ? `node-${name}` : name.replaceAll(/[:/]/g, '-')
      let free = plain
      for (let number = 2; taken.has(free.toLowerCase()); number++) free = `${plain}-${number}`
      taken.add(free.toLowerCase())
      return [node_id, free]
    }),
  )
}

interface NodeInputs {
  readonly lab: string
  readonly name: string
  readonly configs: Readonly<Record<string, string>>
  readonly leftOut: string[]
}

/** Values that a compute gives each node, older forms of other settings, and settings that are ignored. */
export const ofCompute: ReadonlySet<string> = new Set([
  ...[
    'mac_address',
    'mac_addr',
    'application_id',
    'md5sum',
    'acpi_shutdown',
    'console',
    'console_type',
    'custom_adapters',
  ],
])

async function nodeOf(record: LabNode, { lab, name, configs, leftOut }: NodeInputs): Promise<DesiredNode> {
  const kind = record.node_type as DesiredNode['kind']
  const { configs: access = {}, ownValues, create }: KindDescriptor = kindOf(kind)
  const own = ownValues?.(record.properties) ?? []
  const texts = new Set(Object.values(access).map(({ field }) => field))
  const properties = Object.entries(fieldsOf(kind)).flatMap(([key, schema]) => {
    const value = record.properties[key]
    const isDerived = ofCompute.has(key) || own.includes(key) || texts.has(key) || key.endsWith('_md5sum')
    const isOfPlatform =
      key === 'qemu_path' && typeof record.properties.platform === 'string' && record.properties.platform !== ''
    if (value === undefined || value === null || isDerived || isOfPlatform || isSame(value, defaultOf(schema)))
      return []
    if (Check(schema, value)) return [[key, value] as const]
    leftOut.push(`${key} of the node ${name}: its value is not allowed for a new node.`)
    return []
  })
  const read = await Promise.all(
    Object.entries(access).flatMap(([config, { field }]) => {
      const text = configs[config]
      if (text === undefined || text === '') return []
      if (!Check(create.properties[field] as TSchema, text)) return []
      return [digestOf(text).then((digest): [string, DesiredConfig] => [config, { text, digest, at: nowhere }])]
    }),
  )
  const ready = readyOf(record, name, leftOut)
  return {
    name,
    node_id: nodeIdOf(lab, name),
    kind,
    settings: settingsOf(record, leftOut),
    properties: Object.fromEntries(properties),
    configs: Object.fromEntries(read),
    labels: record.labels,
    ...(Object.keys(record.placement).length > 0 && { placement: record.placement }),
    start: true,
    after: isSegmentKind(kind) ? [] : record.after,
    ...(ready !== undefined && !isSegmentKind(kind) && { ready }),
    ...(isSegmentKind(kind) && { segment: { everyPort: {}, ports: {} } }),
    at: nowhere,
    keys: {},
  }
}

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

function settingsOf(record: LabNode, leftOut: string[]): DesiredSettings {
  const { node_type, x, y, symbol, console_type } = record
  const { create }: KindDescriptor = kindOf(node_type as DesiredNode['kind'])
  const isUsual = isSegmentKind(node_type) || console_type === defaultOf(create.properties.console_type as TSchema)
  return {
    x,
    y,
    ...(symbol !== null && { symbol }),
    ...(!isUsual && { console_type }),
    ...(!isSegmentKind(node_type) && namingOf(record, leftOut)),
  }
}

/** How the ports are named. */
function namingOf(record: LabNode, leftOut: string[]): Pick<DesiredSettings, 'port_name_format' | 'custom_adapters'> {
  const { node_type, port_name_format: format, port_segment_size, first_port_name } = record
  const { create, ports, portNameFormat }: KindDescriptor = kindOf(node_type as DesiredNode['kind'])
  const adapters = record.custom_adapters.map((adapter) =>
    Object.fromEntries(
      Object.entries(adapter).filter(([, value]) => value !== null && value !== undefined && value !== ''),
    ),
  ) as LabNode['custom_adapters']
  const shapes = ports?.(record.properties) ?? []
  const takesAdapters = 'custom_adapters' in create.properties
  const isNamedByKind = shapes.some(({ name }) => name !== undefined)
  const isPlain = port_segment_size === 0 && (first_port_name === null || first_port_name === '')
  const pattern = /^([^{}]*)\{(?:0|port)(\d?)\}([^{}]*)$/.exec(format)
  const defaultFormat = portNameFormat ?? mapFields.port_name_format.default
  const listed = adapters.filter((it) => takesAdapters || it.port_name !== undefined)
  if (isNamedByKind || (isPlain && (format === defaultFormat || pattern !== null))) {
    const [, before = '', from = '', after = ''] = pattern ?? []
    const port_name_format = `${before}{${from === '' || from === '0' ? '0' : `port${from}`}}${after}`
    const isListable = takesAdapters || listed.every((it, index) => it.adapter_number === index)
    if (!isListable) leftOut.push(`Names of ports of the node ${record.name}.`)
    return {
      ...(!isNamedByKind && format !== defaultFormat && !(listed.length > 0 && !takesAdapters) && { port_name_format }),
      ...(isListable && listed.length > 0 && { custom_adapters: listed }),
    }
  }
  // The names follow no pattern of a lab file: each is written.
  const byNumber = new Map(adapters.map((it) => [it.adapter_number, it]))
  const named = portsOf(record).map(({ adapter_number, name: port_name }) => ({
    adapter_number,
    port_name,
    ...(takesAdapters && byNumber.get(adapter_number)),
  }))
  return named.length === 0 ? {} : { custom_adapters: named.map((it) => ({ ...it, port_name: it.port_name })) }
}

function readyOf({ ready }: LabNode, name: string, leftOut: string[]): DesiredReady | undefined {
  if (ready === null) return undefined
  const conditions = [ready.console, ready.tcp, ready.exec, ready.seconds]
  if (conditions.every((it) => it === undefined)) return undefined
  const diagnostics = new Diagnostics()
  if (ready.console !== undefined) requireExpression(ready.console, nowhere, diagnostics)
  if (diagnostics.isEmpty) return ready
  leftOut.push(`ready of the node ${name}: ${diagnostics.list()[0]?.message}.`)
  return undefined
}

/** A port of a segment as the project has it. */
interface MappedPort {
  readonly port_number: number
  readonly name?: string
  readonly [key: string]: unknown
}

/** The settings of a port, without those that have their defaults. */
function portSettings(kind: DesiredNode['kind'], { port_number, ...port }: MappedPort): SegmentPort {
  const schemas = (kindOf(kind).node.properties.ports_mapping?.items?.properties ?? {}) as Record<string, TSchema>
  const isUsual = (key: string, value: unknown) =>
    value === null ||
    value === undefined ||
    (key === 'name' ? value === `Ethernet${port_number}` : value === schemas[key]?.default)
  return Object.fromEntries(Object.entries(port).filter(([key, value]) => !isUsual(key, value)))
}

type SegmentParts = Pick<DesiredNode, 'segment' | 'properties'>

/** The links, and what only segments have. */
function linksOf({ nodes, links, captured }: ProjectState, made: ReadonlyMap<string, DesiredNode>, leftOut: string[]) {
  const settings = new Map<string, Map<number, SegmentPort>>()
  for (const { node_id, properties } of nodes) {
    const node = made.get(node_id)
    if (node?.segment === undefined) continue
    const ports = (Array.isArray(properties.ports_mapping) ? properties.ports_mapping : []) as MappedPort[]
    settings.set(node.name, new Map(ports.map((port) => [port.port_number, portSettings(node.kind, port)])))
  }
  const plain: DesiredLink[] = []
  const members = new Map<string, DesiredLink[]>()
  /** Ports of links between two segments: both have a number in the file. */
  const joined = new Map<string, Set<number>>()
  for (const link of links) {
    const [a, b] = link.nodes.map((end) => endIn(end, made))
    if (a === undefined || b === undefined) {
      leftOut.push(
        `A link of ${link.nodes.map(({ node_id }) => nodes.find((node) => node.node_id === node_id)?.name ?? node_id).join(' and ')}.`,
      )
      continue
    }
    const [isA, isB] = [a, b].map(({ node }) => settings.has(node))
    // A member of a segment is written with its own end first.
    const isTurned = isA === true && isB !== true
    const file = captured?.get(link.link_id)
    const found: DesiredLink = {
      ...desiredLink(link, isTurned ? [b, a] : [a, b], isTurned),
      ...(file !== undefined && { capture: { file } }),
    }
    const [, own] = found.ends
    if (!isA && !isB) plain.push(found)
    else members.set(own.node, [...(members.get(own.node) ?? []), { ...found, memberOf: own.node }])
    if (isA && isB)
      for (const { node, port_number } of found.ends)
        joined.set(node, (joined.get(node) ?? new Set()).add(port_number ?? 0))
  }
  const segments = new Map<string, SegmentParts>()
  const all: DesiredLink[] = []
  for (const node of made.values()) {
    if (node.segment === undefined) continue
    const { list, ports } = membersOf(
      node,
      members.get(node.name) ?? [],
      settings.get(node.name) ?? new Map(),
      joined.get(node.name) ?? new Set(),
    )
    all.push(...list)
    const most = Math.max(-1, ...[...(members.get(node.name) ?? [])].map(({ ends: [, own] }) => own.port_number ?? 0))
    segments.set(node.name, { ...ports, properties: propertiesOf(node, most) })
  }
  const textOf = ({ ends }: DesiredLink) =>
    ends.map((end) => `${end.node}:${end.adapter_number}/${end.port_number}`).join(' ')
  plain.sort((a, b) => order.compare(textOf(a), textOf(b)))
  return { links: [...all, ...plain], segments }
}

/** A segment gets as many ports as an apply gives it, unless it has another number. */
function propertiesOf({ kind, properties }: DesiredNode, most: number): DesiredNode['properties'] {
  if (most < 0) return properties
  const { port_count, ...others } = properties
  const segment = { properties: others, everyPort: {}, ports: {}, foreign: [], present: undefined, isManaged: true }
  const usual = kindOf(kind).portsFor?.({ ...segment, used: new Map([[most, {}]]) }).port_count
  return usual !== undefined && (port_count ?? 1) === usual ? others : properties
}

function endIn(
  { node_id, adapter_number, port_number }: LabLinkEnd,
  made: ReadonlyMap<string, DesiredNode>,
): DesiredEnd | undefined {
  const node = made.get(node_id)
  if (node === undefined) return undefined
  const isThere =
    node.segment !== undefined ||
    portsOfNode(node).some((it) => it.adapter_number === adapter_number && it.port_number === port_number)
  return isThere ? { node: node.name, adapter_number, port_number, at: nowhere } : undefined
}

function desiredLink(link: LabLink, ends: readonly [DesiredEnd, DesiredEnd], isTurned: boolean): DesiredLink {
  const ways = [
    normalFilters({ ...link.filters, ...link.filters_ab }),
    normalFilters({ ...link.filters, ...link.filters_ba }),
  ] as const
  const [filters_ab, filters_ba] = isTurned ? [ways[1], ways[0]] : ways
  return {
    ...(link.name !== null && link.name !== undefined && { name: link.name }),
    ends,
    link_type: link.link_type,
    filters_ab,
    filters_ba,
    suspend: link.suspend,
    at: nowhere,
    keys: {},
  }
}

/** The members of a segment in the order of their ports. Their numbers are left out where the order alone gives them. */
function membersOf(
  node: DesiredNode,
  links: readonly DesiredLink[],
  settings: ReadonlyMap<number, SegmentPort>,
  joined: ReadonlySet<number>,
): { list: DesiredLink[]; ports: Pick<DesiredNode, 'segment'> } {
  const sorted = [...links].sort((a, b) => (a.ends[1].port_number ?? 0) - (b.ends[1].port_number ?? 0))
  const ofNodes = sorted.filter(({ ends: [, own] }) => !joined.has(own.port_number ?? 0))
  const others = new Map(settings)
  const devices = new Set([...settings.values()].map((port) => (port.type === undefined ? port.interface : undefined)))
  const [device] = devices.size === 1 ? [...devices] : []
  const { hasVlans = false, hasHostPorts = false } = kindOf(node.kind)
  const everyPort = hasHostPorts && typeof device === 'string' ? { type: 'ethernet', interface: device } : {}
  const isUniform =
    hasHostPorts && typeof device === 'string' && [...settings.values()].every((port) => Object.keys(port).length === 1)
  // Settings other than tagging are written under `ports`, by the number of the port: such a port is not simple.
  const isSimple = (number: number) =>
    isUniform ||
    (hasVlans ? !('name' in (settings.get(number) ?? {})) : Object.keys(settings.get(number) ?? {}).length === 0)
  const lowest = (count: number): number[] => {
    const found: number[] = []
    for (let number = 0; found.length < count; number++) if (!joined.has(number)) found.push(number)
    return found
  }
  const expected = lowest(ofNodes.length)
  // Guests of the management network are known by their ports.
  const isInOrder =
    node.properties.management !== true &&
    ofNodes.every(({ ends: [, own] }, index) => own.port_number === expected[index] && isSimple(own.port_number ?? 0))
  const list = sorted.map((link): DesiredLink => {
    const [other, own] = link.ends
    const number = own.port_number ?? 0
    if (joined.has(number)) return link
    const tagging = settings.get(number) ?? {}
    const isTagged = hasVlans && isSimple(number)
    if (isTagged || isUniform) others.delete(number)
    return {
      ...link,
      ends: [
        other,
        {
          ...own,
          port_number: isInOrder ? undefined : number,
          ...(isTagged && Object.keys(tagging).length > 0 && { port: tagging }),
        },
      ],
    }
  })
  // Such a segment without ports would be refused, so all of its ports are written.
  const isWritten = ([, port]: [number, SegmentPort]) => hasHostPorts || Object.keys(port).length > 0
  if (hasHostPorts && settings.size === 0) others.set(0, {})
  const ports = isUniform ? [] : [...others].filter(isWritten)
  return { list, ports: { segment: { everyPort: isUniform ? everyPort : {}, ports: Object.fromEntries(ports) } } }
}
