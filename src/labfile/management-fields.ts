import { omit } from '../lib/omit.ts'
import { hostnameOf } from '../lib/text/host-name.ts'
import type { KindDescriptor } from '../model/kinds/kind.ts'
import { subnetOf, textOf4 } from '../model/kinds/nat-subnet.ts'
import { kindOf, type NodeKindName } from '../model/kinds/node.ts'
import type { DesiredManagement, DesiredNode } from './desired.ts'
import { type Diagnostics, quoted } from './diagnostics.ts'
import type { Reading, ValuePositions } from './nodes.ts'
import type { Position } from './position.ts'
import { managementNetwork } from './schema.ts'
import { at, type MapValue } from './values.ts'

/** The value of `management` of a node. */
export type GivenManagement = boolean | string | { address?: string; ports?: string[] }

/** The kind's part in a management network; undefined: its nodes cannot be in one. */
export const partOf = (kind: NodeKindName): KindDescriptor['management'] => (kindOf(kind) as KindDescriptor).management

interface NodeInputs {
  readonly kind: NodeKindName
  readonly fields: Record<string, unknown>
  readonly map: MapValue
  readonly keys: ValuePositions
  readonly reading: Reading
}

/** How a node is in the management network, for which it gets one more adapter, the first one. Undefined: it is not. */
export function readNodeManagement(
  given: GivenManagement | undefined,
  { kind, fields, map, keys, reading: { hasManagement, diagnostics } }: NodeInputs,
): DesiredManagement | undefined {
  if (partOf(kind) === undefined || given === false) return undefined
  if (!hasManagement) {
    if (given !== undefined)
      diagnostics.add(
        keys.of('management'),
        'the lab has no management network',
        `write management: { network: ${managementNetwork} } beside nodes`,
      )
    return undefined
  }
  const { usual, maximum } = adaptersOf(kind)
  const count = Number(fields.adapters ?? usual) + 1
  if (count > maximum)
    diagnostics.add(
      keys.of('adapters'),
      `a node has at most ${maximum} adapters, and the management network needs one of them`,
    )
  fields.adapters = count
  const { address, ports = [] } = typeof given === 'object' ? given : { address: given === true ? undefined : given }
  const list = at(at(map, 'management'), 'ports')
  const positionOf = (index: number) =>
    (list?.type === 'list' ? list.items[index]?.at : undefined) ?? keys.of('management')
  return {
    address: address ?? '',
    isGiven: address !== undefined,
    ports: ports.flatMap((text, index) => portIn(text, positionOf(index), diagnostics) ?? []),
  }
}

/** The number of adapters that nodes of a kind have by default, and at most. */
function adaptersOf(kind: NodeKindName): { usual: number; maximum: number } {
  const { adapters } = kindOf(kind).create.properties as unknown as Record<string, AdaptersSchema>
  const { default: usual = 1, maximum = 1 } = adapters?.anyOf[0] ?? {}
  return { usual, maximum }
}

interface AdaptersSchema {
  readonly anyOf: readonly { readonly default?: number; readonly maximum?: number }[]
}

type ManagedPort = DesiredManagement['ports'][number]

/** `8080:80`, `8053:53/udp`, `127.0.0.2:8080:80`. */
function portIn(text: string, where: Position, diagnostics: Diagnostics): ManagedPort | undefined {
  const [, host_address, host, guest, protocol] = /^(?:([\d.]+):)?(\d+):(\d+)(?:\/(\w+))?$/.exec(text) ?? []
  const [host_port, guest_port] = [Number(host), Number(guest)]
  const wrong = [host_port, guest_port].find((port) => !(port >= 1 && port <= 65_535))
  if (wrong !== undefined) {
    diagnostics.add(where, `${quoted(text)}: there is no port ${wrong}`, 'ports are 1 to 65535')
    return undefined
  }
  return {
    protocol: protocol === 'udp' ? 'udp' : 'tcp',
    host_port,
    ...(host_address !== undefined && { host_address }),
    guest_port,
  }
}

/** The port, as a lab file has it. */
export const portText = ({ protocol, host_port, host_address, guest_port }: ManagedPort): string =>
  `${host_address === undefined ? '' : `${host_address}:`}${host_port}:${guest_port}${protocol === 'udp' ? '/udp' : ''}`

/** The settings that give a node of a kind its address. */
export const settingsAt = (kind: NodeKindName, address: string, network: string): Readonly<Record<string, unknown>> => {
  const { gateway = 0 } = subnetOf(network) ?? {}
  return partOf(kind)?.settings?.({ address, prefix: network.split('/')[1] ?? '', gateway: textOf4(gateway) }) ?? {}
}

/** The settings of the port of the nat at which a node is. */
export const managedPort = ({ name, management }: Pick<DesiredNode, 'name' | 'management'>) => ({
  name: hostnameOf(name),
  address: management?.address ?? '',
})

/** The settings of a node without those that follow from the management network. */
export function ownProperties(
  { kind, properties, management }: DesiredNode,
  network: string,
): Readonly<Record<string, unknown>> {
  if (management === undefined) return properties
  const follows = Object.keys(settingsAt(kind, management.address, network))
  const { adapters, ...own }: Readonly<Record<string, unknown>> = omit(properties, ...follows)
  const { usual } = adaptersOf(kind)
  const count = Number(adapters ?? usual) - 1
  return { ...(count !== usual && { adapters: count }), ...own }
}

/** The key `management` of a node, if its lab has such a network. */
export function managementField({ kind, management }: DesiredNode): { management?: unknown } {
  if (partOf(kind) === undefined) return {}
  if (management === undefined) return { management: false }
  const { address, isGiven, ports } = management
  if (ports.length === 0) return isGiven ? { management: address } : {}
  return { management: { ...(isGiven && { address }), ports: ports.map(portText) } }
}
