import { type Static, type TProperties, Type } from '@sinclair/typebox'
import { kinds } from '../kinds/index.ts'
import type { KindDescriptor } from '../kinds/kind.ts'
import { nullable } from '../schema/fields.ts'

export type Version = Static<typeof Version>
export const Version = Type.Object(
  { version: Type.String(), local: Type.Boolean({ description: 'Whether the compute is in local mode' }) },
  { $id: 'Version', description: 'Version of the service' },
)

/** What kinds say of a compute. */
export const ofKinds: TProperties = Object.assign({}, ...kinds.map((it: KindDescriptor) => it.capabilities))

export type Capabilities = Static<typeof Capabilities>
export const Capabilities = Type.Object(
  {
    version: Type.String(),
    platform: Type.String({ description: 'linux, darwin or win32' }),
    node_types: Type.Array(Type.String(), { description: 'Kinds of node that labs are made of here' }),
    packet_path: Type.Union([Type.Literal('fast'), Type.Literal('portable')], {
      description:
        'How the switch moves frames. fast: many frames a system call, on Linux; portable: node:dgram, UDP links only',
    }),
    ...ofKinds,
  },
  { $id: 'Capabilities', description: 'What this compute can do' },
)

export type NetworkInterface = Static<typeof NetworkInterface>
export const NetworkInterface = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    ip_address: Type.String({ description: 'First IPv4 address, empty when there is none' }),
    netmask: Type.String({ description: 'Its netmask, empty when there is none' }),
    mac_address: Type.String(),
    type: Type.Union([Type.Literal('ethernet'), Type.Literal('tap')]),
    special: Type.Boolean({
      description: 'true for an interface that is seldom what a lab wants (loopback, bridges of container engines)',
    }),
  },
  { $id: 'NetworkInterface', description: 'A network interface of the host' },
)

export type Ports = Static<typeof Ports>
export const Ports = Type.Object(
  {
    console_port_range: Type.Tuple([Type.Integer(), Type.Integer()]),
    console_ports: Type.Array(Type.Integer(), { description: 'Console ports in use' }),
    vnc_port_range: Type.Tuple([Type.Integer(), Type.Integer()]),
    vnc_ports: Type.Array(Type.Integer(), { description: 'Ports of VNC consoles in use' }),
    udp_port_range: Type.Tuple([Type.Integer(), Type.Integer()]),
    udp_ports: Type.Array(Type.Integer(), { description: 'UDP ports in use' }),
  },
  { $id: 'Ports', description: 'Port ranges and the ports in use' },
)

/** Load of the host. The first CPU figure after start may be 0. */
export type Load = Static<typeof Load>
export const Load = Type.Object(
  {
    cpu_usage_percent: Type.Number({ minimum: 0, maximum: 100 }),
    memory_usage_percent: Type.Number({ minimum: 0, maximum: 100 }),
  },
  { $id: 'Load', description: 'Load of the host' },
)

export type Check = Static<typeof Check>
export const Check = Type.Object(
  {
    name: Type.String({ description: 'What was looked at' }),
    status: Type.Union([Type.Literal('ok'), Type.Literal('warning'), Type.Literal('error')]),
    found: Type.String({ description: 'What was found' }),
    fix: nullable(
      Type.String({ description: 'The command or the setting that mends it; null when nothing needs mending' }),
    ),
  },
  { $id: 'Check', description: 'One finding of the doctor' },
)
export type Diagnosis = Static<typeof Diagnosis>
export const Diagnosis = Type.Object(
  { ok: Type.Boolean({ description: 'false when a check ended in error' }), checks: Type.Array(Check) },
  { $id: 'Diagnosis', description: 'What a lab needs on this machine, and what was found' },
)

export type Reloaded = Static<typeof Reloaded>
export const Reloaded = Type.Object(
  {
    changed: Type.Array(Type.String(), { description: 'Keys in force with their new value' }),
    needs_restart: Type.Array(Type.String(), { description: 'Keys that changed in the file but wait for a restart' }),
  },
  { $id: 'Reloaded', description: 'What a reload of the configuration changed' },
)
