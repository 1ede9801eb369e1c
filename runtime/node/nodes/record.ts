import { type Static, type TObject, type TSchema, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import type { PortRef } from '../../../src/host-agent.ts'
import { kindOf, type Node, type NodeKindName, nodeKinds } from '../../../src/kinds/node.ts'
import { Nio } from '../../../src/schema/nio.ts'
import type { Pool } from '../ports/allocator.ts'
import { recordVersion } from '../storage/newer-record.ts'

type ConsoleType = Node['console_type']

/** What the console of a node may be, and what it is unless a client says something else. */
const consoleSchemaOf = (kind: NodeKindName): TSchema => kindOf(kind).node.properties.console_type as TSchema
export const defaultConsole = (kind: NodeKindName): ConsoleType => consoleSchemaOf(kind).default

/** A node on disk: `.patchbay/nodes/{kind}-{node_id}.json` in its project, under another name while it is being deleted. */
export type NodeRecord = Static<typeof NodeRecord>
export const NodeRecord = Type.Object({
  version: Type.Integer({ minimum: 1, maximum: recordVersion }),
  kind: Type.Union(nodeKinds.map((kind) => Type.Literal(kind))),
  node_id: Type.String({ format: 'uuid' }),
  name: Type.String({ minLength: 1 }),
  console: Type.Union([Type.Integer({ minimum: 1, maximum: 65535 }), Type.Null()]),
  /** One of those of its kind. */
  console_type: Type.Unsafe<ConsoleType>(Type.String()),
  command_line: Type.String(),
  /** Why it is not running, when that was not asked for. */
  status_reason: Type.Union([Type.String(), Type.Null()]),
  /** Whether it ran when this was written, so that a service that comes later can tell what it finds ended. */
  running: Type.Boolean(),
  /** What only its kind knows. */
  properties: Type.Record(Type.String(), Type.Unknown()),
  /** By `{adapter}/{port}`: the guest's UDP port of the private pair, and what is attached. */
  ports: Type.Record(
    Type.String(),
    Type.Object({
      guest_port: Type.Union([Type.Integer(), Type.Null()]),
      nio: Type.Union([Nio, Type.Null()]),
      /** What the port had a line for when something was attached, where that may change. */
      line: Type.Optional(Type.Union([Type.Literal('ethernet'), Type.Literal('serial')])),
    }),
  ),
})

export function parseNodeRecord(text: string): NodeRecord {
  const value: unknown = JSON.parse(text)
  if (!Check(NodeRecord, value) || !Check(consoleSchemaOf(value.kind), value.console_type))
    throw new Error('not the record of a node')
  return value
}

/** Properties of which each is that of the record where it fits, else the default: a later version may know other values. */
export function parseOrDefault<T extends TObject>(
  schema: T,
  stored: Readonly<Record<string, unknown>> = {},
): Static<T> {
  const properties = Object.entries(schema.properties).map(([name, it]) => [
    name,
    Check(it, stored[name]) ? stored[name] : structuredClone(it.default),
  ])
  return Object.fromEntries(properties.filter(([, value]) => value !== undefined))
}

/** The properties with what a client changes of the named ones. Null and absent mean "leave as it is". */
export function withChanges<P extends object, N extends keyof P>(
  properties: P,
  changes: { readonly [M in N]?: P[M] | null },
  names: readonly N[],
): P {
  const given = names.filter((name) => changes[name] != null).map((name) => [name, changes[name]])
  return { ...properties, ...Object.fromEntries(given) }
}

/** Where the port of a console comes from; undefined when there is none. Those of type telnet are the keeper's, others the emulator's. */
export function consolePool({ console_type }: NodeRecord): Pool | undefined {
  if (console_type === 'none') return undefined
  return console_type === 'vnc' ? 'vnc' : 'console'
}

/** Whether a guest sees a cable in the port. */
export function hasCarrier({ ports }: NodeRecord, port: PortRef): boolean {
  const nio = ports[`${port.adapter}/${port.port}`]?.nio
  return nio != null && nio.suspend !== true
}
