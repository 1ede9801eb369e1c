import { type Static, Type } from '@sinclair/typebox'
import { ethernetNios } from '../schema/nio.ts'
import { noConsole, nodeFields } from '../schema/node-fields.ts'
import { inputsOf } from './inputs.ts'
import { gns3Kind, kind, type PortShape } from './kind.ts'
import { maxForwards, maxPorts, NatGuest, PortForward } from './nat-guests.ts'
import { defaultSubnet } from './nat-subnet.ts'
import type { PortsFor } from './segment.ts'
import { v1Of } from './v1.ts'

const port_count = Type.Integer({
  minimum: 1,
  maximum: maxPorts,
  default: 1,
  description: 'Number of ports; the guests on them share one network',
})
const subnet = Type.String({
  pattern: '^\\d{1,3}(\\.\\d{1,3}){3}/\\d{1,2}$',
  expects: 'an IPv4 network such as 192.168.122.0/24',
  default: defaultSubnet,
  description:
    'IPv4 network of the guests, /8 to /28; its first address is the gateway, the DHCP server and the resolver',
})
const ipv6_prefix = Type.String({
  pattern: '^([fF][cCdD][0-9a-fA-F:]*::/64)?$',
  expects: 'a unique local IPv6 network such as fd00:1:2:3::/64, or an empty string for none',
  description: 'IPv6 network of the guests, empty for none. Default: a unique local one (RFC 4193)',
})
const port_forwards = Type.Array(PortForward, {
  maxItems: maxForwards,
  default: [],
  description: 'Ports of the host that lead to guests',
})

const guests = Type.Array(NatGuest, {
  maxItems: maxPorts,
  default: [],
  description: 'Guests by their ports: DHCP gives the guest at a port this address, and the resolver knows its name',
})
const management = Type.Boolean({
  default: false,
  description: 'Whether it is the management network of a lab, whose links are not drawn on the map',
})

/** The settings of a nat, with their defaults. */
export const natSettings = { port_count, subnet, ipv6_prefix, port_forwards, guests, management }

/** A nat: its guests reach what the host reaches. */
export type NatNode = Static<typeof NatNode>
export const NatNode = Type.Object(
  { ...nodeFields, console_type: noConsole, ...natSettings },
  { $id: 'NatNode', description: 'A network with DHCP and DNS, whose guests can reach what the host can reach' },
)

export const { create: NatCreate, update: NatUpdate } = inputsOf('nat', NatNode, {
  optional: natSettings,
  note: '. All but the name and the guests can be changed only while it is stopped',
})

export type NatCreate = Static<typeof NatCreate>
export type NatUpdate = Static<typeof NatUpdate>

/** The port of a guest with an address is named after it. */
function portsOf({ port_count, guests }: Readonly<Record<string, unknown>>): readonly PortShape[] {
  const known = Array.isArray(guests) ? (guests as readonly NatGuest[]) : []
  const names = new Map(known.map(({ port_number, address }) => [port_number, address]))
  return Array.from({ length: Number(port_count) }, (_, port) => ({
    ...{ adapter: 0, port, name: names.get(port) ?? `nat${port}` },
  }))
}

/** Ports in steps of eight, as a nat must be stopped to get more; and the guests that links give a name. */
const portsFor: PortsFor = ({ properties, used, foreign, present, isManaged }) => {
  const named = [...used].flatMap(([port_number, { name, address }]) =>
    name === undefined ? [] : [{ port_number, name, address }],
  )
  const guests = named.sort((a, b) => a.port_number - b.port_number)
  const given = guests.length > 0 ? { guests } : {}
  if ('port_count' in properties) return given
  const most = Math.max(0, ...used.keys(), ...foreign)
  const least = isManaged ? 0 : Number(present?.port_count ?? 0)
  return { ...given, port_count: Math.max(least, Math.min(maxPorts, 8 * Math.ceil((most + 1) / 8))) }
}

const schemas = { node: NatNode, create: NatCreate, update: NatUpdate }

export const nat = kind({
  name: 'nat',
  noun: 'nat',
  title: 'NAT',
  gns3: gns3Kind({
    nodeType: 'nat',
    members: ['ports_mapping'],
    added: (node) => ({
      ports_mapping: portsOf(node).map(({ port, name }) => ({
        name,
        port_number: port,
        type: 'ethernet',
        interface: 'virbr0',
      })),
    }),
    runsAlways: true,
    template: { name: 'NAT', symbol: ':/symbols/cloud.svg' },
  }),
  ...schemas,
  v1: v1Of('nat', schemas, { lacks: ['console_type'] }),
  template: { name: 'NAT', category: 'guest', nameFormat: 'NAT{0}', symbol: 'nat' },
  ports: portsOf,
  portsFor,
  liveFields: ['guests', 'management'],
  startWeight: 0,
  nioTypes: ethernetNios,
  consoles: [],
  canBeSuspended: false,
  conflicts: {
    create: 'or a host port is forwarded by another nat',
    update: 'The nat is running, or a host port is forwarded by another nat',
    start: 'The nat cannot run now: libslirp is not installed, or a host port is in use; the message says which',
  },
})
