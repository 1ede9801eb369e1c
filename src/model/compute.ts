import { type Static, Type } from '@sinclair/typebox'
import { notInLine } from '../lib/text/one-line.ts'
import { OwnLabels } from './placement.ts'
import { changing, closedSchema, maybes, Name, nullable, objectSchema, oneOf, PortNumber } from './schema/fields.ts'

/**
 * Most computes of a fleet. All are in the memory of one process or Durable Object, lists show all of them, and some requests ask each of
 * them. Up to this number it was measured (docs/performance.md).
 */
export const maxComputes = 1000

/** The id of the service itself as a compute. */
export const localId = 'local'
/** The id of the appliance VM, which the service registers while the VM runs. */
export const applianceId = 'vm'

/** The protocol of computes that have joined: they have no reachable address. */
export const tunnelled = 'tunnel'

/** The id is a segment of a path: its characters have no meaning there. */
export const ComputeId = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^[A-Za-z0-9_][A-Za-z0-9._~-]*$',
  expects: 'a string of 1 to 100 letters, digits, ".", "_", "~" and "-" that begins with a letter, a digit or "_"',
  description:
    'Id of the compute, compared without regard to case; generated when absent. `local` and `vm` are reserved',
})
const Protocol = oneOf(['http', 'https'])
const AnyProtocol = Type.Union([...Protocol.anyOf, Type.Literal(tunnelled)], {
  description: '`tunnel`: the compute has joined, and is reached through the websocket that it keeps open',
})
export const Host = Type.String({
  minLength: 1,
  maxLength: 253,
  pattern: '^([A-Za-z0-9_][A-Za-z0-9._-]*|\\[?[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*\\]?)$',
  expects: 'a host name, an IPv4 or an IPv6 address',
  description: 'Host name or address; not a link-local one',
})
export const User = Type.String({
  maxLength: 255,
  pattern: `^[^:${notInLine}]*$`,
  expects: 'a string of at most 255 characters in one line, without ":"',
  description: 'User of HTTP Basic; empty: requests to the compute have no credentials',
})
export const Password = Type.String({
  maxLength: 1024,
  pattern: '^[^\\u0000-\\u001f\\u007f]*$',
  expects: 'a string of at most 1024 characters, in one line',
  description: 'Password of HTTP Basic; never shown',
})

const Accepts = Type.Boolean({
  description: 'Whether a gateway places new projects there; with false, its current projects stay',
})
const Weight = Type.Number({
  exclusiveMinimum: 0,
  maximum: 1000,
  description: 'Share of the new projects: the scheduler multiplies the free capacity by it. Default: 1',
})

/** What a compute reports about itself for placement. */
export const FoundLabels = Type.Array(Type.String(), {
  description: 'Labels that it detects: `kvm` if machines run fast, `arch=x86_64`, `platform=linux`',
})

export type ComputeCapabilities = Static<typeof ComputeCapabilities>
export const ComputeCapabilities = objectSchema('ComputeCapabilities', 'The capabilities that a compute reported', {
  version: nullable(Type.String({ description: 'null until the first connection' })),
  platform: Type.Optional(Type.String({ description: 'linux, darwin or win32' })),
  node_types: Type.Array(Type.String(), { description: 'Kinds of node that it runs' }),
  labels: Type.Optional(FoundLabels),
})

const percent = (what: string) =>
  changing(
    nullable(
      Type.Number({ minimum: 0, maximum: 100, description: `${what}, as last reported; null while not connected` }),
    ),
  )

export type Compute = Static<typeof Compute>
export const Compute = objectSchema('Compute', 'A machine that runs nodes, in the fleet', {
  compute_id: Type.String(),
  name: Type.String(),
  protocol: AnyProtocol,
  host: Type.String({ description: 'For a compute that has joined: its name' }),
  port: Type.Integer({ description: 'For a compute that has joined: 0' }),
  user: nullable(Type.String()),
  connected: changing(Type.Boolean()),
  accepts_projects: Accepts,
  weight: Weight,
  labels: OwnLabels,
  cpu_usage_percent: percent('Load of its processors'),
  memory_usage_percent: percent('Memory in use'),
  capabilities: changing(ComputeCapabilities),
  disconnected_since: Type.Optional(
    changing(
      Type.String({
        description:
          'Since when the compute has not been connected, as far as the service knows (UTC, RFC 3339); absent while connected',
      }),
    ),
  ),
  last_error: changing(
    nullable(
      Type.String({
        description: 'Why the compute is not connected; null if it is connected, or no connection was tried yet',
      }),
    ),
  ),
})

const optional = { user: User, password: Password, accepts_projects: Accepts, weight: Weight, labels: OwnLabels }

export type ComputeCreate = Static<typeof ComputeCreate>
export const ComputeCreate = closedSchema('ComputeCreate', 'The address of a compute, and its credentials', {
  protocol: Protocol,
  host: Host,
  port: PortNumber,
  ...maybes({ compute_id: ComputeId, name: Name, ...optional }),
})

export type ComputeUpdate = Static<typeof ComputeUpdate>
export const ComputeUpdate = closedSchema(
  'ComputeUpdate',
  'Changes to a compute; absent or null members stay unchanged. An empty user also removes the password',
  {
    compute_id: Type.Optional(Type.Unknown({ description: 'Accepted and ignored' })),
    ...maybes({ name: Name, protocol: AnyProtocol, host: Host, port: Type.Integer({ minimum: 0, maximum: 65535 }) }),
    ...maybes(optional),
  },
)

/** The stored record of a compute, with its password. */
export type ComputeRecord = Static<typeof ComputeRecord>
export const ComputeRecord = Type.Object({
  compute_id: Type.String({ minLength: 1 }),
  /** Null: the name is derived from the address. */
  name: nullable(Type.String()),
  protocol: AnyProtocol,
  host: Type.String({ minLength: 1 }),
  /** 0: the compute has joined, and has no port. */
  port: Type.Integer({ minimum: 0, maximum: 65535 }),
  user: nullable(Type.String()),
  password: nullable(Type.String()),
  /** Absent: true, 1, and none. */
  accepts_projects: Type.Optional(Accepts),
  weight: Type.Optional(Weight),
  labels: Type.Optional(OwnLabels),
})
