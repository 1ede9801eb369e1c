import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { newestRevision, newProject } from '../../importers/old-projects.ts'
import { badRequest, conflict } from '../../lib/errors/api-error.ts'
import { omit } from '../../lib/omit.ts'
import type { KindDescriptor } from '../../model/kinds/kind.ts'
import { kindOf } from '../../model/kinds/node.ts'
import { archiveWord, kindOfWord } from '../../model/lab/archive-words.ts'
import { drawingFields } from '../../model/lab/drawing.ts'
import { kept } from '../../model/lab/kept.ts'
import { freeName, nameKey } from '../../model/lab/names.ts'
import { isKnownKind, LabLabel, mapFields } from '../../model/lab/node.ts'
import { labSettings } from '../../model/lab/project.ts'
import { type LabTasksRecord, tasksIn } from '../../model/lab/task.ts'
import { Placement } from '../../model/placement.ts'
import { Name, nullable, Uuid } from '../../model/schema/fields.ts'
import { Filters } from '../../model/schema/filters.ts'
import { validate } from '../../model/validation/validate.ts'
import type { DrawingRecord, LabDocument, LinkRecord, NodeRecord } from '../lab/document.ts'
import { withoutNulls } from '../lab/fields.ts'
import { withoutChecks } from '../tasks/tasks.ts'
import { ArchivedContainers } from './archived-containers.ts'

/** The document of an archive, in the form of GNS3 2.2, and the document with the settings that this form lacks. */
export const documentName = 'project.gns3'
export const moreName = 'patchbay.json'
const revision = 9
const release = '2.2.59'

const open = { additionalProperties: true }
const text = Type.String({ maxLength: 4096 })
const End = Type.Object(
  {
    node_id: Uuid,
    adapter_number: Type.Integer({ minimum: 0, maximum: 100_000 }),
    port_number: Type.Integer({ minimum: 0, maximum: 100_000 }),
    label: Type.Optional(Type.Unknown()),
  },
  open,
)
const Node = Type.Object(
  {
    node_id: Uuid,
    name: Name,
    node_type: Type.String({ minLength: 1, maxLength: 50, pattern: '^[A-Za-z0-9_-]+$' }),
    console_type: Type.Optional(nullable(Type.String({ maxLength: 30 }))),
    template_id: Type.Optional(nullable(Uuid)),
    properties: Type.Optional(Type.Record(Type.String({ maxLength: 100 }), Type.Unknown())),
  },
  open,
)
const Link = Type.Object({ link_id: Uuid, nodes: Type.Array(End, { minItems: 2, maxItems: 2 }) }, open)
const Drawing = Type.Object({ drawing_id: Uuid }, open)
const list = <T extends Parameters<typeof Type.Array>[0]>(item: T) => Type.Array(item, { maxItems: 10_000 })
const Document = Type.Object(
  {
    name: Name,
    revision: Type.Integer(),
    topology: Type.Object({ nodes: list(Node), links: list(Link), drawings: list(Drawing) }, open),
  },
  open,
)
type More = Static<typeof More>
const More = Type.Object(
  {
    /** By their ids: settings of nodes and links that the document lacks. */
    nodes: Type.Record(text, Type.Record(text, Type.Unknown())),
    links: Type.Record(text, Type.Record(text, Type.Unknown())),
    /** Settings of the project that the document lacks. `kept`, also of drawings: members that only other programs know. */
    project: Type.Optional(Type.Object({ kept: Type.Optional(kept), placement: Type.Optional(Placement) })),
    drawings: Type.Optional(Type.Record(text, Type.Object({ kept }))),
    /** See `LabTasksRecord`. */
    tasks: Type.Optional(Type.Unknown()),
    /** SHA-256 of images, by `{directory}/{name}`. */
    images: Type.Record(text, Type.String({ pattern: '^[0-9a-f]{64}$' })),
  },
  open,
)

/** The list of snapshots that GNS3 has since 2.2.58. `created_at`: seconds since 1970. `filename`: in the directory of the list. */
export const SnapshotList = Type.Array(
  Type.Object(
    { name: Name, created_at: Type.Integer({ minimum: 0, maximum: 2 ** 40 }), filename: Type.String() },
    open,
  ),
)

/** Members that only we have: GNS3 2.2 refuses a document with unknown members. */
const [oursOfNode, oursOfLink] = [
  ['after', 'ready', 'labels', 'placement', 'kept'] as const,
  ['filters_ab', 'filters_ba'] as const,
]
const isAddress = (name: string): boolean => name === 'mac_address' || name === 'mac_addr'

/** A node without its MAC addresses, so that a copy gets new ones. */
export const withoutAddresses = (node: NodeRecord): NodeRecord => ({
  ...node,
  custom_adapters: node.custom_adapters.map(({ mac_address: _, ...adapter }) => adapter),
  properties: Object.fromEntries(Object.entries(node.properties).filter(([key]) => !isAddress(key))),
})

/** The two documents of an archive. `withChecks`: also the checks of the tasks. */
export function archiveOf(
  { project, nodes, links, drawings, tasks }: LabDocument,
  {
    resetsAddresses,
    withChecks,
    images,
  }: { resetsAddresses: boolean; withChecks: boolean; images: Readonly<Record<string, string>> },
): { document: unknown; more: unknown } {
  const keptOf = [...drawings.values()].flatMap(({ drawing_id, kept }) => (kept ? [[drawing_id, { kept }]] : []))
  const more: More = {
    nodes: {},
    links: {},
    images: { ...images },
    ...(tasks !== undefined && { tasks: withChecks ? tasks : withoutChecks(tasks) }),
    ...{
      project: withoutNulls({ kept: project.kept, placement: project.placement }),
      drawings: Object.fromEntries(keptOf),
    },
  }
  const { project_id, name } = project
  const settings = Object.fromEntries(
    Object.entries(project).filter(([key]) => key in labSettings && key !== 'placement'),
  )
  const nodeOf = (node: NodeRecord) => {
    const own = omit(resetsAddresses ? withoutAddresses(node) : node, 'creationError', 'lastApplied', 'compute_id')
    const { labels, after, ready, placement, label, kept, ...rest } = own
    const { create, gns3 } = isKnownKind(rest.node_type) ? kindOf(rest.node_type) : ({} as Partial<KindDescriptor>)
    const theirs = new Set([...(gns3?.members ?? []), ...(gns3?.settings ?? [])])
    // GNS3 2.2 does not open a project with a property that it does not know.
    const isTheirs = ([key]: [string, unknown]) =>
      create === undefined || (key in create.properties && (gns3 === undefined || theirs.has(key)))
    const all = Object.entries(rest.properties)
    const settings = Object.fromEntries(all.filter(isTheirs))
    const { toGns3 } = gns3 ?? {}
    const theirSettings = toGns3?.(settings) ?? settings
    // A startup script is in the archive as a file.
    const apart = all.filter((entry) => !isTheirs(entry) && !entry[0].startsWith('startup_script'))
    more.nodes[rest.node_id] = {
      ...withoutNulls({ ready, kept, labels, placement }),
      after,
      ...Object.fromEntries(apart),
    }
    return {
      ...rest,
      compute_id: 'local',
      width: 65,
      height: 65,
      label: { rotation: 0, style: null, x: null, y: -25, ...(label ?? { text: rest.name }) },
      node_type: rest.properties.driver === 'vmware' ? 'vmware' : archiveWord(rest.node_type),
      properties: { ...(kept?.properties as object | undefined), ...theirSettings },
    }
  }
  const linkOf = (link: LinkRecord) => {
    const { link_id, name, nodes: ends, filters, filters_ab, filters_ba, suspend, link_style, kept } = link
    more.links[link_id] = { filters_ab, filters_ba, ...withoutNulls({ name, kept }) }
    return {
      link_id,
      nodes: ends,
      filters,
      suspend,
      ...(Object.keys(link_style).length > 0 && { link_style }),
    }
  }
  const topology = {
    computes: [],
    drawings: [...drawings.values()].map(({ kept: _, ...drawing }) => drawing),
    links: [...links.values()].map(linkOf),
    nodes: [...nodes.values()].map(nodeOf),
  }
  const document = { ...settings, name, project_id, revision, topology, type: 'topology', version: release }
  return { document, more }
}

/** The content of an archive, as records of a lab. */
export interface ArchivedLab {
  readonly name: string
  readonly settings: Record<string, unknown>
  /** Settings of the archive that are not taken over. */
  readonly leftOut: readonly string[]
  /** The new ids, by the ids in the archive. */
  readonly ids: ReadonlyMap<string, string>
  readonly nodes: readonly NodeRecord[]
  readonly links: readonly LinkRecord[]
  readonly drawings: readonly DrawingRecord[]
  readonly tasks: LabTasksRecord | undefined
  readonly images: Readonly<Record<string, string>>
}

/**
 * Reads the documents of an archive. With another `projectId` than that in the archive all ids are new, as the id of a node is unique on
 * a compute. `ids`: new ids that other documents of the archive have already. `interfaces`: see `interfacesIn`. 400 for a malformed document, 409 for one of another version.
 */
export function archivedLab(
  document: unknown,
  more: unknown,
  projectId: string,
  ids = new Map<string, string>(),
  interfaces: ReadonlyMap<string, string> = new Map(),
): ArchivedLab {
  const { revision: theirs } = (document ?? {}) as { revision?: unknown }
  if (typeof theirs === 'number' && theirs > newestRevision)
    throw conflict(
      `The archive has revision ${theirs}, and this service reads revisions up to ${newestRevision}: export it with GNS3 3.0`,
    )
  const isObject = typeof document === 'object' && document !== null && !Array.isArray(document)
  const known = isObject ? newProject(document, () => crypto.randomUUID()) : document
  const { name, topology, ...settings } = validate(Document, known, documentName)
  const extra: More = Check(More, more) ? more : { nodes: {}, links: {}, images: {} }
  const names = new Set<string>()
  const keepsIds = String((document as { project_id?: unknown }).project_id).toLowerCase() === projectId.toLowerCase()
  const seen = new Set<string>()
  const idOf = (id: string): string => {
    const there = id.toLowerCase()
    if (seen.has(there)) throw badRequest(`${documentName}: ${id} occurs twice`)
    seen.add(there)
    const own = ids.get(there) ?? (keepsIds ? there : crypto.randomUUID())
    ids.set(there, own)
    return own
  }
  const containers = new ArchivedContainers(topology.links, interfaces)
  const nodes = topology.nodes.map((node): NodeRecord => {
    const beside = extra.nodes[node.node_id] ?? {}
    const own = freeName(node.name, (key) => names.has(key))
    names.add(nameKey(own))
    const node_type = kindOfWord(node.node_type)
    // GNS3 gives switches and clouds consoles.
    const hasConsole = !isKnownKind(node_type) || kindOf(node_type).consoles.length > 0
    const apart = Object.entries(beside).filter(([key]) => !(oursOfNode as readonly string[]).includes(key))
    return {
      node_id: idOf(node.node_id),
      compute_id: '',
      node_type,
      name: own,
      template_id: node.template_id ?? null,
      console: null,
      console_type: (hasConsole ? node.console_type : undefined) ?? 'none',
      ...fitting(mapFields, { ...node, ...beside }),
      ...(Check(kept, beside.kept) && { kept: beside.kept }),
      properties: {
        ...node.properties,
        ...(node.node_type === 'vmware' && { driver: 'vmware' }),
        ...Object.fromEntries(apart),
      },
      ...containers.membersOf(node, Object.fromEntries(apart)),
    }
  })
  const nodeIds = new Map([...ids].filter(([id]) => seen.has(id)))
  /** The link at each port. */
  const linked = new Map<string, string>()
  const links = topology.links.map((link): LinkRecord => {
    const beside = extra.links[link.link_id] ?? {}
    const filters = (value: unknown) => (Check(Filters, value) ? value : {})
    const { suspend, link_style: style, filters: both } = link as Record<string, unknown>
    for (const { node_id } of link.nodes)
      if (!nodeIds.has(node_id.toLowerCase()))
        throw badRequest(`${documentName}: the link ${link.link_id} names ${node_id}, which is not among its nodes`)
    for (const { node_id, adapter_number, port_number } of link.nodes) {
      const port = `${node_id.toLowerCase()} ${adapter_number}/${port_number}`
      const other = linked.get(port)
      if (other !== undefined)
        throw badRequest(
          `${documentName}: the link ${link.link_id} is to the port ${adapter_number}/${port_number} of the node ${node_id}, ` +
            `to which ${other === link.link_id ? 'its other end is linked' : `${other} is linked`}`,
        )
      linked.set(port, link.link_id)
    }
    return {
      ...{
        link_id: idOf(link.link_id),
        link_type: (link as { link_type?: unknown }).link_type === 'serial' ? 'serial' : 'ethernet',
      },
      nodes: link.nodes.map(({ node_id, adapter_number, port_number, label }) => ({
        node_id: nodeIds.get(node_id.toLowerCase()),
        adapter_number,
        port_number,
        ...(Check(LabLabel, label) && { label }),
      })),
      name: Check(Name, beside.name) ? beside.name : null,
      filters: filters(both),
      ...Object.fromEntries(oursOfLink.map((key) => [key, filters(beside[key])])),
      suspend: suspend === true,
      link_style: isRecord(style) ? style : {},
      ...(Check(kept, beside.kept) && { kept: beside.kept }),
      wiring: { type: 'none' },
      capture: null,
    } as LinkRecord
  })
  const drawings = topology.drawings.map(
    (drawing): DrawingRecord => ({
      drawing_id: idOf(drawing.drawing_id),
      ...fitting(drawingFields, drawing),
      ...extra.drawings?.[drawing.drawing_id],
    }),
  )
  return {
    name,
    settings: { ...fitting(labSettings, settings), ...extra.project, ...ownStart },
    leftOut: [
      ...Object.keys(ownStart).filter((key) => (settings as Record<string, unknown>)[key] === true),
      ...containers.leftOut,
    ],
    ids,
    nodes,
    links,
    drawings,
    tasks: tasksIn(extra.tasks),
    images: extra.images,
  }
}

/** An archive never decides that its lab is opened and started when the service starts. */
const ownStart = { auto_open: false, auto_start: false }

const isRecord = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** The members that match their schemas, and the defaults of all others. */
function fitting<T extends Record<string, Parameters<typeof Check>[0]>>(
  fields: T,
  input: Readonly<Record<string, unknown>>,
): { [K in keyof T]: Static<T[K]> } {
  const each = Object.entries(fields).map(([name, schema]) => [
    name,
    Check(schema, input[name]) ? input[name] : structuredClone(schema.default ?? null),
  ])
  return Object.fromEntries(each)
}
