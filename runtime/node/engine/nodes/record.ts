import { type Static, type TObject, type TSchema, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import type { PortRef } from '../../../../src/host-agent.ts'
import { kindOf, type Node, type NodeKindName, nodeKinds } from '../../../../src/model/kinds/node.ts'
import { LinkNio, Nio } from '../../../../src/model/schema/nio.ts'
import type { Pool } from '../ports/allocator.ts'
import { recordVersion } from '../storage/newer-record.ts'

type ConsoleType = Node['console_type']

/** The console types of a kind, with the default. */
const consoleSchemaOf = (kind: NodeKindName): TSchema => kindOf(kind).node.properties.console_type as TSchema
export const defaultConsole = (kind: NodeKindName): ConsoleType => consoleSchemaOf(kind).default

/** A node on disk: `.patchbay/nodes/{kind}-{node_id}.json` in its project. The name differs while the node is being deleted. */
export type EngineNodeRecord = Static<typeof EngineNodeRecord>
export const EngineNodeRecord = Type.Object({
  version: Type.Integer({ minimum: 1, maximum: recordVersion }),
  kind: Type.Union(nodeKinds.map((kind) => Type.Literal(kind))),
  node_id: Type.String({ format: 'uuid' }),
  name: Type.String({ minLength: 1 }),
  console: Type.Union([Type.Integer({ minimum: 1, maximum: 65535 }), Type.Null()]),
  /** One of the console types of its kind. */
  console_type: Type.Unsafe<ConsoleType>(Type.String()),
  command_line: Type.String(),
  /** Why the node does not run, if that was not requested. */
  status_reason: Type.Union([Type.String(), Type.Null()]),
  /**
   * Whether the next opening of its project expects it to run: it ran at the time of the write, or its project was closed and it is always
   * on. The opening compares this with the keeper.
   */
  running: Type.Boolean(),
  /** The properties of its kind. */
  properties: Type.Record(Type.String(), Type.Unknown()),
  /** By `{adapter}/{port}`: the guest's UDP port of the private pair, and the NIO. */
  ports: Type.Record(
    Type.String(),
    Type.Object({
      guest_port: Type.Union([Type.Integer(), Type.Null()]),
      /** A direct link is not written here: the record of the project has it. */
      nio: Type.Union([Nio, LinkNio, Type.Null()]),
      /** The line type at the time of the attach, for ports that can change it. */
      line: Type.Optional(Type.Union([Type.Literal('ethernet'), Type.Literal('serial')])),
      /** The NIO belongs to a link that this service or its gateway has made. */
      is_own_link: Type.Optional(Type.Literal(true)),
    }),
  ),
})

export function parseNodeRecord(text: string): EngineNodeRecord {
  const value: unknown = JSON.parse(text)
  if (!Check(EngineNodeRecord, value) || !Check(consoleSchemaOf(value.kind), value.console_type))
    throw new Error('not the record of a node')
  return value
}

/** Each property from the record if it is valid, otherwise its default: a later version may write other values. */
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

/** The properties with a client's changes of the named ones. Null and absent mean "no change". */
export function withChanges<P extends object, N extends keyof P>(
  properties: P,
  changes: { readonly [M in N]?: P[M] | null },
  names: readonly N[],
): P {
  const given = names.filter((name) => changes[name] != null).map((name) => [name, changes[name]])
  return { ...properties, ...Object.fromEntries(given) }
}

/** The pool of the console port; undefined for no console. The keeper serves telnet consoles, the emulator all others. */
export function consolePool({ console_type }: EngineNodeRecord): Pool | undefined {
  if (console_type === 'none') return undefined
  return console_type === 'vnc' ? 'vnc' : 'console'
}

/** The record as it is written, without what the record of the project says. */
export const storedRecord = (record: EngineNodeRecord): EngineNodeRecord => ({
  ...record,
  version: recordVersion,
  ports: Object.fromEntries(
    Object.entries(record.ports).map(([name, slot]) => [
      name,
      slot.nio?.type === 'nio_link' ? { ...slot, nio: null } : slot,
    ]),
  ),
})

/** Whether the guest sees a connected cable (carrier). */
export function hasCarrier({ ports }: EngineNodeRecord, port: PortRef): boolean {
  const nio = ports[`${port.adapter}/${port.port}`]?.nio
  return nio != null && nio.suspend !== true
}
