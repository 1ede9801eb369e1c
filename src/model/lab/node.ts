import { type Static, Type } from '@sinclair/typebox'
import { type NodeKindName, nodeKinds } from '../kinds/node.ts'
import { Placement } from '../placement.ts'
import { changing, maybe, maybes, Name, nullable, objectSchema, PortNumber, Uuid } from '../schema/fields.ts'
import { NodeStatus } from '../schema/node-fields.ts'
import { kept } from './kept.ts'

const coordinate = (description: string) =>
  Type.Integer({ minimum: -1_000_000, maximum: 1_000_000, default: 0, description })
const text = (description: string, maxLength = 4096) => Type.String({ maxLength, description })

/** A text beside a node or a port on the map. */
export type LabLabel = Static<typeof LabLabel>
export const LabLabel = Type.Object(
  {
    text: text('The text'),
    style: Type.Optional(nullable(text('CSS properties of SVG text'))),
    x: Type.Optional(nullable(coordinate('Left edge, relative to the node; null: centred'))),
    y: Type.Optional(nullable(coordinate('Upper edge, relative to the node'))),
    rotation: Type.Optional(Type.Integer({ minimum: -359, maximum: 360, description: 'Degrees' })),
  },
  { $id: 'LabLabel', additionalProperties: false, description: 'A text on the map' },
)

/** Settings of one adapter, in place of those of the node. */
const CustomAdapter = Type.Object(
  {
    adapter_number: Type.Integer({ minimum: 0, maximum: 100_000 }),
    port_name: Type.Optional(text('Name of the port', 100)),
    adapter_type: Type.Optional(text('Model of the adapter', 100)),
    mac_address: Type.Optional(nullable(Type.String({ pattern: '^([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}$' }))),
  },
  { additionalProperties: false },
)

export type LabReady = Static<typeof LabReady>
export const LabReady = Type.Object(
  {
    console: Type.Optional(text('Regular expression that its console must show', 1000)),
    press: Type.Optional(text('Typed on its console until that matches, such as "\\r"', 100)),
    tcp: Type.Optional(
      Type.Integer({ ...PortNumber, description: 'TCP port of the host that must accept connections' }),
    ),
    exec: Type.Optional(text('Command that must succeed in the container; it is tried each second', 1024)),
    seconds: Type.Optional(Type.Number({ minimum: 0, maximum: 3600, description: 'Time after its start' })),
    within_s: Type.Optional(Type.Number({ minimum: 1, maximum: 3600, description: 'Longest wait; default 300' })),
  },
  { $id: 'LabReady', additionalProperties: false, description: 'When a node is ready: all given conditions must hold' },
)

/** The fields that a user sets for nodes of every kind, with the defaults of new nodes. */
export const mapFields = {
  x: coordinate('Left edge on the map'),
  y: coordinate('Upper edge on the map'),
  z: Type.Integer({ minimum: -1000, maximum: 1000, default: 1, description: 'Layer of the map' }),
  locked: Type.Boolean({
    default: false,
    description: 'Whether the map refuses to move it, and the service to delete it',
  }),
  symbol: nullable(text('Name or path of its symbol; null: the symbol of its kind')),
  label: nullable(LabLabel),
  port_name_format: Type.String({
    maxLength: 100,
    default: 'Ethernet{0}',
    description: 'Names of ports: {0} is the number of the port, {1} the number of the segment; {port1} counts from 1',
  }),
  port_segment_size: Type.Integer({ minimum: 0, maximum: 128, default: 0, description: 'Ports of a segment; 0: none' }),
  first_port_name: nullable(text('Name of the first port, where the format does not apply', 100)),
  custom_adapters: Type.Array(CustomAdapter, { maxItems: 1024, default: [] }),
  console_auto_start: Type.Boolean({ default: false, description: 'Whether clients open its console when it starts' }),
  after: Type.Array(Name, {
    maxItems: 100,
    default: [],
    description: 'Names of nodes that must be ready before it starts',
  }),
  ready: nullable(LabReady),
  labels: Type.Record(Type.String({ minLength: 1, maxLength: 100 }), text('The value', 1000), {
    default: {},
    description: 'Texts that users attached to it, by key',
  }),
  placement: Placement,
} as const

export type LabPort = Static<typeof LabPort>
export const LabPort = Type.Object(
  {
    name: Type.String(),
    short_name: Type.String(),
    adapter_number: Type.Integer(),
    port_number: Type.Integer(),
    link_type: Type.Union([Type.Literal('ethernet'), Type.Literal('serial')]),
    data_link_types: Type.Record(Type.String(), Type.String(), {
      description: 'Link types of captures, by their display names',
    }),
    mac_address: Type.Optional(nullable(Type.String())),
    adapter_type: Type.Optional(nullable(Type.String())),
  },
  { $id: 'LabPort', description: 'A port of a node' },
)

const nodeType = Type.String({
  minLength: 1,
  maxLength: 50,
  description: `Kind of the node: ${nodeKinds.join(', ')}; any other value creates a placeholder`,
})
const properties = Type.Record(Type.String({ maxLength: 100 }), Type.Unknown(), {
  description: 'Settings of the kind: the fields of its node on the compute interface',
})
const consoleType = Type.String({
  maxLength: 30,
  description: 'Type of its console, one of the types of its kind',
})

export type LabNode = Static<typeof LabNode>
export const LabNode = Type.Object(
  {
    node_id: Uuid,
    project_id: Uuid,
    compute_id: Type.String({ description: 'The compute that runs it' }),
    node_type: nodeType,
    template_id: nullable(Uuid),
    name: Name,
    status: NodeStatus,
    status_reason: changing(nullable(Type.String({ description: 'Reason of the status; null when nothing is wrong' }))),
    console: nullable(PortNumber),
    console_type: consoleType,
    console_host: changing(nullable(Type.String())),
    command_line: changing(nullable(Type.String())),
    node_directory: changing(nullable(Type.String())),
    ...mapFields,
    width: Type.Integer({ changesByItself: true, description: 'Width of its symbol' }),
    height: Type.Integer({ changesByItself: true, description: 'Height of its symbol' }),
    ports: changing(Type.Array(LabPort)),
    properties,
    kept: Type.Optional(kept),
  },
  { $id: 'LabNode', description: 'A node of a project' },
)

const given = maybes(mapFields)
const both = {
  ...given,
  console: maybe(PortNumber),
  console_type: maybe(consoleType),
  properties: Type.Optional(properties),
  kept: maybe(kept),
}

export type LabNodeCreate = Static<typeof LabNodeCreate>
export const LabNodeCreate = Type.Object(
  {
    name: Name,
    node_type: nodeType,
    node_id: maybe(Uuid),
    compute_id: maybe(
      Type.String({ minLength: 1, maxLength: 100, description: 'Default: a compute with free memory' }),
    ),
    template_id: maybe(Uuid),
    ...both,
  },
  { $id: 'LabNodeCreate', additionalProperties: false, description: 'Input of a new node' },
)

export type LabNodeUpdate = Static<typeof LabNodeUpdate>
export const LabNodeUpdate = Type.Object(
  { name: maybe(Name), ...both },
  {
    $id: 'LabNodeUpdate',
    additionalProperties: false,
    description: 'Changes to a node; null or absent members stay unchanged',
  },
)

/** A node that its compute cannot create now. */
export type LabNodeNotCreated = Static<typeof LabNodeNotCreated>
export const LabNodeNotCreated = objectSchema(
  'LabNodeNotCreated',
  'A node that cannot run: it is a placeholder with its place, ports and links',
  {
    name: Type.String(),
    kind: Type.String({ description: 'Kind of the node' }),
    images: Type.Array(Type.String(), { description: 'Names of the images that are missing, or are other ones' }),
    reason: Type.String(),
  },
)

/** Whether this service has the kind; nodes of other kinds are placeholders. */
export const isKnownKind = (word: string): word is NodeKindName => (nodeKinds as readonly string[]).includes(word)
