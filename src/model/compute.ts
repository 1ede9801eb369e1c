import { type Static, Type } from '@sinclair/typebox'
import { changing, closedSchema, maybe, Name, nullable, objectSchema, oneOf, PortNumber } from '../schema/fields.ts'

/** The service itself. */
export const localId = 'local'
/** The appliance VM, which the service registers while it runs. */
export const applianceId = 'vm'

/** The protocol of computes that have joined: no address leads to them. */
export const tunnelled = 'tunnel'

/** What becomes a segment of a path: bounded, and of characters that mean nothing there. */
export const ComputeId = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^[A-Za-z0-9_][A-Za-z0-9._~-]*$',
  expects: 'a text of 1 to 100 letters, digits, ".", "_", "~" and "-" that begins with a letter, a digit or "_"',
  description: 'Id of the compute, compared without regard to case; made up when absent. `local` and `vm` are reserved',
})
const Protocol = oneOf(['http', 'https'])
const AnyProtocol = Type.Union([...Protocol.anyOf, Type.Literal(tunnelled)], {
  description: '`tunnel`: it has joined by itself, and is reached by the connection that it keeps',
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
  pattern: '^[^:\\u0000-\\u001f\\u007f]*$',
  expects: 'a text of at most 255 characters in one line, without ":"',
  description: 'User of HTTP Basic; empty: the compute is asked without credentials',
})
export const Password = Type.String({
  maxLength: 1024,
  pattern: '^[^\\u0000-\\u001f\\u007f]*$',
  expects: 'a text of at most 1024 characters, in one line',
  description: 'Password of HTTP Basic. It is never given back',
})

const Accepts = Type.Boolean({
  description: 'Whether a gateway gives it new projects; false for one that is to be emptied: what it has stays',
})
const Weight = Type.Number({
  exclusiveMinimum: 0,
  maximum: 1000,
  description: 'How much of the projects it is to have, 1 being usual: its room counts so many times',
})

export type ComputeCapabilities = Static<typeof ComputeCapabilities>
export const ComputeCapabilities = objectSchema('ComputeCapabilities', 'What a compute said that it can do', {
  version: nullable(Type.String({ description: 'null until it was connected' })),
  platform: Type.Optional(Type.String({ description: 'linux, darwin or win32' })),
  node_types: Type.Array(Type.String(), { description: 'Kinds of node that it runs' }),
})

const percent = (what: string) =>
  changing(
    nullable(Type.Number({ minimum: 0, maximum: 100, description: `${what}, as last told; null while not connected` })),
  )

/** A compute as it is shown: everything but its password. */
export type Compute = Static<typeof Compute>
export const Compute = objectSchema('Compute', 'A machine that runs nodes, as the fleet knows it', {
  compute_id: Type.String(),
  name: Type.String(),
  protocol: AnyProtocol,
  host: Type.String({ description: 'Of a compute that has joined: its name' }),
  port: Type.Integer({ description: 'Of a compute that has joined: 0' }),
  user: nullable(Type.String()),
  connected: changing(Type.Boolean()),
  accepts_projects: Accepts,
  weight: Weight,
  cpu_usage_percent: percent('Load of its processors'),
  memory_usage_percent: percent('Memory in use'),
  capabilities: changing(ComputeCapabilities),
  last_error: changing(
    nullable(Type.String({ description: 'Why it is not connected; null when it is, or was not tried yet' })),
  ),
})

export type ComputeCreate = Static<typeof ComputeCreate>
export const ComputeCreate = closedSchema('ComputeCreate', 'Where a compute is, and who may use it', {
  compute_id: maybe(ComputeId),
  name: maybe(Name),
  protocol: Protocol,
  host: Host,
  port: PortNumber,
  user: maybe(User),
  password: maybe(Password),
  accepts_projects: maybe(Accepts),
  weight: maybe(Weight),
})

export type ComputeUpdate = Static<typeof ComputeUpdate>
export const ComputeUpdate = closedSchema(
  'ComputeUpdate',
  'Changes of a compute; absent and null mean "leave". An empty user takes the password away, too',
  {
    compute_id: Type.Optional(Type.Unknown({ description: 'Accepted and ignored' })),
    name: maybe(Name),
    protocol: maybe(AnyProtocol),
    host: maybe(Host),
    port: maybe(Type.Integer({ minimum: 0, maximum: 65535 })),
    user: maybe(User),
    password: maybe(Password),
    accepts_projects: maybe(Accepts),
    weight: maybe(Weight),
  },
)

/** A compute as it is kept: what was asked for, the secret included. */
export type ComputeRecord = Static<typeof ComputeRecord>
export const ComputeRecord = Type.Object({
  compute_id: Type.String({ minLength: 1 }),
  /** Null: made of the address, and changing with it. */
  name: nullable(Type.String()),
  protocol: AnyProtocol,
  host: Type.String({ minLength: 1 }),
  /** 0 where there is none. */
  port: Type.Integer({ minimum: 0, maximum: 65535 }),
  user: nullable(Type.String()),
  password: nullable(Type.String()),
  /** Absent: true, and 1. */
  accepts_projects: Type.Optional(Accepts),
  weight: Type.Optional(Weight),
})
