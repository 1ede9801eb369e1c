import { type Static, type TProperties, Type } from '@sinclair/typebox'
import { FoundLabels } from './compute.ts'
import { kinds } from './kinds/index.ts'
import type { KindDescriptor } from './kinds/kind.ts'
import { nullable, objectSchema, oneOf } from './schema/fields.ts'

export type Version = Static<typeof Version>
export const Version = objectSchema('Version', 'Version of the service', {
  version: Type.String(),
  local: Type.Boolean({ description: 'Whether the compute is in local mode' }),
})

/** The capabilities that kinds add. */
export const ofKinds: TProperties = Object.assign({}, ...kinds.map((it: KindDescriptor) => it.capabilities))

/** What a compute is asked first, and while it is checked. */
export const capabilitiesPath = '/v2/compute/capabilities'

export type Capabilities = Static<typeof Capabilities>
export const Capabilities = objectSchema('Capabilities', 'Capabilities of this compute', {
  version: Type.String(),
  platform: Type.String({ description: 'linux, darwin or win32' }),
  node_types: Type.Array(Type.String(), { description: 'Kinds of node that this compute runs' }),
  packet_path: oneOf(['fast', 'portable'], {
    description:
      'How the switch moves frames. fast: many frames a system call, on Linux; portable: node:dgram, UDP links only',
  }),
  labels: Type.Optional(FoundLabels),
  boot_id: Type.Optional(Type.String({ description: 'Changes with each boot of the host; absent if unknown' })),
  ...ofKinds,
})

export type NetworkInterface = Static<typeof NetworkInterface>
export const NetworkInterface = objectSchema('NetworkInterface', 'A network interface of the host', {
  id: Type.String(),
  name: Type.String(),
  ip_address: Type.String({ description: 'First IPv4 address, empty when there is none' }),
  netmask: Type.String({ description: 'Its netmask, empty when there is none' }),
  mac_address: Type.String(),
  type: oneOf(['ethernet', 'tap']),
  special: Type.Boolean({
    description: 'true for an interface that labs seldom use (loopback, bridges of container engines)',
  }),
})

export type Ports = Static<typeof Ports>
export const Ports = objectSchema('Ports', 'Port ranges and the ports in use', {
  console_port_range: Type.Tuple([Type.Integer(), Type.Integer()]),
  console_ports: Type.Array(Type.Integer(), { description: 'Console ports in use' }),
  vnc_port_range: Type.Tuple([Type.Integer(), Type.Integer()]),
  vnc_ports: Type.Array(Type.Integer(), { description: 'Ports of VNC consoles in use' }),
  udp_port_range: Type.Tuple([Type.Integer(), Type.Integer()]),
  udp_ports: Type.Array(Type.Integer(), { description: 'UDP ports in use' }),
})

export type Load = Static<typeof Load>
export const Load = objectSchema('Load', 'Load of the host', {
  cpu_usage_percent: Type.Number({ minimum: 0, maximum: 100 }),
  memory_usage_percent: Type.Number({ minimum: 0, maximum: 100 }),
})

/** Where nothing runs, and where the load is not known yet. */
export const noLoad: Load = { cpu_usage_percent: 0, memory_usage_percent: 0 }

const bytes = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description: `${description}, bytes` }))

export type HostLoad = Static<typeof HostLoad>
export const HostLoad = objectSchema('HostLoad', 'Load of the host, with the figures that the host knows', {
  ...Load.properties,
  load_average_percent: Type.Optional(
    Type.Array(Type.Number(), { description: 'Load of the last 1, 5 and 15 minutes, in percent of all processors' }),
  ),
  memory_total: bytes('Memory'),
  memory_free: bytes('Memory that programs can still allocate'),
  swap_total: bytes('Swap space'),
  swap_free: bytes('Free swap space'),
  disk_usage_percent: Type.Optional(Type.Number({ description: 'Of the disk with the projects' })),
})

export type DoctorCheck = Static<typeof DoctorCheck>
export const DoctorCheck = objectSchema('Check', 'One finding of the doctor', {
  name: Type.String({ description: 'Name of the check' }),
  status: oneOf(['ok', 'warning', 'error']),
  found: Type.String({ description: 'The finding' }),
  fix: nullable(Type.String({ description: 'The command or the setting that fixes the fault; null without a fault' })),
  prevents: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Kinds of node that cannot run on this machine before that; absent: none',
    }),
  ),
})
export type Diagnosis = Static<typeof Diagnosis>
export const Diagnosis = objectSchema('Diagnosis', 'The checks of this machine for labs', {
  ok: Type.Boolean({ description: 'false when a check ended in error' }),
  checks: Type.Array(DoctorCheck),
})

export type Reloaded = Static<typeof Reloaded>
export const Reloaded = objectSchema('Reloaded', 'The keys that a reload of the configuration changed', {
  changed: Type.Array(Type.String(), { description: 'Keys whose new value is in effect' }),
  needs_restart: Type.Array(Type.String(), {
    description: 'Keys that changed in the file and take effect after a restart',
  }),
})
