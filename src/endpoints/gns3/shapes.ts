import type { TObject, TSchema } from '@sinclair/typebox'
import type { Gns3Kind, KindDescriptor } from '../../model/kinds/kind.ts'
import type { LabNode } from '../../model/lab/node.ts'
import { portsOf } from '../../model/lab/ports.ts'
import type { Endpoint } from '../../server/http/endpoint.ts'
import { activeFilters, givenFilters, theirFilters } from './filters.ts'
import { isMembers, type Members, pick } from './members.ts'
import { ourKind, ourTemplate, sharedKinds, theirFile, theirKind, theirTemplate, theirUrl } from './names.ts'
import { defaultsIn, templateSchema } from './template-schemas.ts'
import { categories, completedTemplate } from './templates.ts'

/** Converts a resource; undefined for one that GNS3 2.2 lacks. */
type Shape = (value: Members, version: string) => Members | undefined

const only =
  (...names: readonly string[]): Shape =>
  (value) =>
    pick(value, names)

/** Names in GNS3 of our symbols, where they differ. */
const symbols: Readonly<Record<string, string>> = {
  pc: 'vpcs_guest',
  switch: 'ethernet_switch',
  machine: 'qemu_guest',
  unknown: 'computer',
}
const theirSymbol = (symbol: unknown, kind?: KindDescriptor): string => {
  const word = typeof symbol === 'string' && symbol !== '' ? symbol : (kind?.template?.symbol ?? 'computer')
  // Built-in symbols are words; an uploaded file keeps its name.
  return word.startsWith(':/') || word.includes('.') ? word : `:/symbols/${symbols[word] ?? word}.svg`
}

const byName = new Map(sharedKinds.map((it) => [it[0].name, it]))

const directoryOf = ({ node_directory }: Members): Members =>
  typeof node_directory === 'string' ? { node_directory: theirFile(node_directory) } : {}

const same = (given: Members): Members => given

/** A node on a compute. */
const computeNode = ([, gns3]: readonly [KindDescriptor, Gns3Kind], node: Members): Members => {
  const { members, added, toGns3 = same } = gns3
  return {
    ...toGns3(pick({ ...node, ...directoryOf(node) }, ['node_id', 'project_id', 'name', 'status', ...members])),
    ...added?.(node),
  }
}
/** Finds the kind of a node from its members: the first kind whose schema has all of them. */
const kindOfShown = (node: Members) =>
  sharedKinds.find(([kind]) => Object.keys(node).every((name) => name in kind.node.properties))

/** Members of a node on a compute that are not in `properties` of a node of a lab. */
const besideProperties = new Set(['node_directory', 'console', 'console_type', 'command_line'])

/** `kept`: those that only clients of GNS3 know. */
function properties(node_type: string, given: Members, kept: Members): Members {
  const found = byName.get(node_type)
  if (found === undefined) return { ...kept, ...given }
  const { members, settings = [], added, toGns3 = same, keptDefaults } = found[1]
  const own = pick(given, [...members.filter((it) => !besideProperties.has(it)), ...settings])
  return { ...keptDefaults, ...kept, ...toGns3(own), ...added?.(given) }
}

const labNodeMembers = [
  ...['compute_id', 'console', 'console_auto_start', 'console_host', 'console_type', 'custom_adapters', 'command_line'],
  ...['first_port_name', 'height', 'label', 'locked', 'name', 'node_directory', 'node_id', 'port_name_format', 'ports'],
  ...['port_segment_size', 'project_id', 'status', 'width', 'x', 'y', 'z'],
]

/** There a port with a name of its own takes a number as the others do. */
const theirPorts = (node: Members): unknown =>
  Array.isArray(node.custom_adapters) && node.custom_adapters.length > 0 && byName.has(String(node.node_type))
    ? portsOf(node as LabNode, true)
    : node.ports

const labNode: Shape = (node) => {
  const { properties: keptProperties, ...kept } = (node.kept ?? {}) as Members
  const node_type = String(node.node_type)
  const { label, height, template_id } = node
  return {
    ...kept,
    ...pick(node, labNodeMembers),
    ...directoryOf(node),
    node_type: theirKind(node_type),
    template_id: typeof template_id === 'string' ? theirTemplate(template_id) : null,
    symbol: theirSymbol(node.symbol, byName.get(node_type)?.[0]),
    // GNS3 clients replace 0.0.0.0 by the address of the server.
    console_host: node.console_host ?? '0.0.0.0',
    // Centred above the symbol, as in GNS3.
    label: {
      text: node.name,
      style: null,
      x: null,
      y: -Math.round(Number(height) / 2 + 10),
      rotation: 0,
      ...(label as Members),
    },
    ports: theirPorts(node),
    properties: properties(node_type, (node.properties ?? {}) as Members, (keptProperties ?? {}) as Members),
  }
}

const linkMembers = [
  ...['link_id', 'project_id', 'suspend', 'link_style', 'filters', 'capturing', 'capture_file_name'],
  ...['capture_file_path', 'capture_compute_id', 'link_type'],
]
const labLink: Shape = (link) => ({
  ...(link.kept as Members),
  ...pick(link, linkMembers),
  filters: activeFilters((link.filters ?? {}) as Members),
  nodes: ((link.nodes ?? []) as Members[]).map((end) => ({
    ...end,
    label: end.label ?? { text: `${end.adapter_number}/${end.port_number}` },
  })),
})

const projectMembers = [
  ...['name', 'project_id', 'path', 'filename', 'status', 'auto_close', 'auto_open', 'auto_start', 'scene_height'],
  ...['scene_width', 'zoom', 'show_layers', 'snap_to_grid', 'show_grid', 'grid_size', 'drawing_grid_size'],
  ...['show_interface_labels', 'supplier', 'variables'],
]

/** A built-in template, and one of a kind that GNS3 2.2 has no templates of. */
function plainTemplate(template: Members): Members {
  const { template_type, builtin, template_id, symbol, usage, ...rest } = template
  const [kind, gns3] = byName.get(String(template_type)) ?? []
  return {
    ...rest,
    ...(usage !== '' && { usage }),
    template_type: theirKind(String(template_type)),
    builtin,
    template_id: theirTemplate(String(template_id)),
    symbol: theirSymbol(symbol, kind),
    ...(builtin === true && gns3?.template),
  }
}

/** With all members of its type, and no others: GNS3 clients send templates back as they were shown. */
const labTemplate: Shape = (template) => {
  const type = theirKind(String(template.template_type))
  const schema = template.builtin === true ? undefined : templateSchema(type, template.platform)
  if (schema === undefined) return plainTemplate(template)
  const [kind, gns3] = byName.get(String(template.template_type)) ?? []
  const all = {
    ...defaultsIn(schema),
    ...gns3?.added?.(template),
    ...template,
    ...gns3?.toGns3?.(template),
    template_type: type,
    symbol: theirSymbol(template.symbol, kind),
  }
  return pick(all, Object.keys(schema.properties))
}

const capabilities: Shape = ({ platform, node_types }, version) => ({
  version,
  platform,
  node_types: (node_types as string[]).map(theirKind),
})

/** How GNS3 2.2 shows each resource, by the `$id` of its schema. */
const shapes: Readonly<Record<string, Shape>> = {
  Version: ({ local }, version) => ({ version, ...(!version.startsWith('3.') && { local }) }),
  ComputeEndpoint: ({ endpoint }) => ({ endpoint: theirUrl(String(endpoint)) }),
  Capabilities: capabilities,
  Ports: only('console_port_range', 'console_ports', 'udp_port_range', 'udp_ports'),
  ApplianceVm: (vm) => ({
    ...pick(vm, ['enable', 'when_exit', 'headless', 'engine', 'allocate_vcpus_ram', 'vcpus', 'ram', 'port']),
    vmname: vm.vmname ?? '',
  }),
  Image: only('filename', 'path', 'md5sum', 'filesize'),
  ProjectFile: ({ path, md5sum }) => ({ path: theirFile(String(path)), md5sum }),
  ComputeProject: (project) =>
    project.status === 'closed' ? undefined : pick(project, ['name', 'project_id', 'variables']),
  LabStats: only('nodes', 'links', 'drawings', 'snapshots'),
  CaptureStarted: only('pcap_file_path'),
  Compute: (compute, version) => ({
    ...pick(compute, ['compute_id', 'name', 'host', 'port', 'user', 'connected', 'cpu_usage_percent']),
    ...pick(compute, ['memory_usage_percent', 'last_error']),
    // Computes that joined have another protocol, which GNS3 lacks.
    protocol: compute.protocol === 'https' ? 'https' : 'http',
    capabilities: capabilities((compute.capabilities ?? {}) as Members, version),
  }),
  ...Object.fromEntries(
    sharedKinds.map((kind) => [String(kind[0].node.$id), (node: Members) => computeNode(kind, node)]),
  ),
  LabNode: labNode,
  LabLink: labLink,
  LabProject: (project) => ({ ...(project.kept as Members), ...pick(project, projectMembers) }),
  LabDrawing: ({ kept, ...drawing }) => ({ ...(kept as Members), ...drawing }),
  LabFilter: (filter) => (theirFilters.some((name) => name === filter.type) ? filter : undefined),
  LabSnapshot: ({ snapshot_id, project_id, name, created_at, description = '' }) => ({
    snapshot_id,
    project_id,
    name,
    created_at,
    description,
    filename: `${name}.gns3project`,
  }),
  LabTemplate: labTemplate,
  LabSymbol: ({ symbol_id, filename, builtin, theme }) => ({
    filename,
    builtin,
    theme,
    symbol_id: builtin === true ? theirSymbol(symbol_id) : filename,
  }),
}

/** Converts an answer of a schema to that of GNS3 2.2. `kind`: whose images the path of the request names. */
export function toResponse(schema: TSchema | undefined, value: unknown, version: string, kind?: string): unknown {
  if (schema === undefined) return value
  if (Array.isArray(value)) {
    const items = value.map((item) => toResponse(schema.items as TSchema | undefined, item, version, kind))
    return items.filter((item) => item !== undefined)
  }
  const shape = byName.get(kind ?? '')?.[1].image ?? shapes[String(schema.$id)]
  return shape !== undefined && isMembers(value) ? shape(value, version) : value
}

/** Whether GNS3 2.2 shows answers of a schema in another form. */
export const isReshaped = (schema: TSchema | undefined): boolean =>
  schema !== undefined && (String(schema.$id) in shapes || isReshaped(schema.items as TSchema | undefined))

/** Whether a schema is that of a node on a compute, or of a new one. */
const isNew = (schema: TSchema | undefined): boolean => sharedKinds.some(([{ create }]) => create === schema)
const isComputeNode = (schema: TSchema | undefined): boolean =>
  isNew(schema) || sharedKinds.some(([{ update }]) => update === schema)

/** What only nodes get, see `Gns3Kind.ofNode`; new ones `atCreation`, too. For an unknown kind: of all kinds. */
const ofNode = (given: Members, kind: string | undefined, isNew: boolean): Members =>
  Object.assign(
    {},
    ...sharedKinds
      .filter(([{ name }]) => (kind ?? name) === name)
      .flatMap(([, it]) => [it.ofNode?.(given), isNew ? it.atCreation?.(given) : {}]),
  )

/** Our members in place of those that only GNS3 has. For an unknown kind: of all kinds, without overwriting given members. */
function fromGns3(given: Members, kind: string | undefined): Members {
  if (kind !== undefined) return byName.get(kind)?.[1].fromGns3?.(given) ?? {}
  const all: Members = Object.assign({}, ...sharedKinds.map(([, it]) => it.fromGns3?.(given)))
  return pick(
    all,
    Object.keys(all).filter((name) => !(name in given)),
  )
}

/**
 * Converts the body of a GNS3 client to that of an endpoint. Read-only members are dropped. Unknown members go to `kept`, where the
 * resource has it.
 */
export function withoutDefaults({ body: schema, viewSchema }: Endpoint, sent: Members): Members {
  const id = String(schema?.$id)
  const body = id === 'LabTemplateCreate' ? completedTemplate(sent) : sent
  const { node_type, template_id, template_type, category, properties } = body
  const type = node_type ?? template_type
  const kind =
    typeof type === 'string'
      ? ourKind(type)
      : sharedKinds.find(([{ create, update }]) => create === schema || update === schema)?.[0].name
  const ours: Record<string, unknown> = {
    ...body,
    ...(typeof node_type === 'string' && { node_type: ourKind(node_type) }),
    ...(typeof template_type === 'string' && { template_type: ourKind(template_type) }),
    ...(typeof template_id === 'string' && { template_id: ourTemplate(template_id) }),
    ...(typeof category === 'number' && { category: categories[category] ?? 'guest' }),
    ...(isMembers(properties) &&
      !id.startsWith('LabTemplate') && {
        properties: {
          ...properties,
          ...fromGns3(properties, kind),
          ...ofNode(properties, kind, id === 'LabNodeCreate'),
        },
      }),
    ...('filters' in body && { filters: givenFilters(body.filters) }),
    ...fromGns3(body, kind),
    ...(isComputeNode(schema) && ofNode(body, kind, isNew(schema))),
  }
  // GNS3 shows an empty name when there is none.
  if (id === 'ApplianceVmUpdate' && body.vmname === '') Object.assign(ours, { vmname: null })
  const { properties: known, additionalProperties } = (schema ?? {}) as Partial<TObject>
  if (known === undefined || additionalProperties !== false) return ours
  const others = Object.keys(body).filter((name) => !(name in known) && !(name in (viewSchema?.properties ?? {})))
  return { ...pick(ours, Object.keys(known)), ...('kept' in known && { kept: pick(body, others) }) }
}

export type FeedName = 'compute' | 'controller' | 'project'

/** The events of each feed in GNS3 2.2; its web client fails on others. */
const feedEvents: Readonly<Record<FeedName, RegExp>> = {
  compute: /^(ping|node\.updated|log\..+)$/,
  controller: /^(ping|(project|template|compute)\..+|log\..+)$/,
  project:
    /^(ping|(node|link|drawing)\.(created|updated|deleted)|project\.(updated|closed)|snapshot\.restored|log\..+)$/,
}
const ofActions: Readonly<Record<string, string>> = {
  node: 'LabNode',
  link: 'LabLink',
  drawing: 'LabDrawing',
  project: 'LabProject',
  template: 'LabTemplate',
  snapshot: 'LabSnapshot',
  compute: 'Compute',
}

export const isFeedEvent = (feed: FeedName, action: string): boolean => feedEvents[feed].test(action)

/** Converts an event of a feed to that of GNS3 2.2; undefined for an event that it lacks. */
export function line(
  { action, event, project_id, seq }: Members,
  feed: FeedName,
  version: string,
): Members | undefined {
  if (typeof action !== 'string' || !isFeedEvent(feed, action)) return undefined
  // An event with `seq` is of a project on a compute, which is another resource than a lab.
  if (feed === 'controller' && seq !== undefined && action.startsWith('project.')) return undefined
  if (!isMembers(event)) return { action, event }
  if (action === 'ping') {
    // GNS3 3 ends its feed when `disk_usage_percent` is missing.
    return { action, event: version.startsWith('3.') ? { disk_usage_percent: 0, ...event } : event }
  }
  if (feed === 'compute') {
    const kind = action.startsWith('node.') ? kindOfShown(event) : undefined
    return { action, event: kind === undefined ? event : computeNode(kind, event), project_id }
  }
  const shape = shapes[ofActions[action.split('.')[0] ?? ''] ?? '']
  return { action, event: shape === undefined ? event : shape(event, version) }
}
