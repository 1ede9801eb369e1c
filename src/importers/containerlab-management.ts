import { managementNetwork, nodeSchemas } from '../labfile/schema.ts'
import type { Fields } from '../labfile/text.ts'
import { ip4Pattern, subnetOf } from '../model/kinds/nat-subnet.ts'
import type { ReadEnd } from './containerlab-links.ts'
import type { NodeSettings } from './containerlab-nodes.ts'
import { type Part, quoted } from './source.ts'

/** Settings of a node that say something of the management network. */
export const managementKeys = ['mgmt-ipv4', 'ports'] as const

/** The section `mgmt` as that of a lab file. */
export function networkFields(part: Part): Fields {
  if (part.isAbsent) return { network: managementNetwork }
  const settings = part.asObject()
  const [given] = ['ipv4-subnet', 'ipv4_subnet'].map((key) => settings.get(key)).filter((it) => !it.isAbsent)
  // Names of Docker, of its bridge and of its networks are of no use here.
  for (const key of ['network', 'bridge', 'mtu', 'external-access']) settings.get(key)
  settings.leaveOutUnread(
    () => 'is not imported: the first address is the gateway, and the nat chooses its IPv6 network',
  )
  const network = given?.textOrNone() ?? managementNetwork
  if (subnetOf(network) !== undefined) return { network }
  if (network !== 'auto')
    given?.leaveOut(`is not imported: ${quoted(network)} is not a network of /8 to /28, so it is ${managementNetwork}`)
  return { network: managementNetwork }
}

/** The fields of a node in a lab with a management network, which has one adapter, the first, without a link. */
export function managedFields(node: NodeSettings, fields: Fields, links: ReadonlyMap<string, ReadEnd>): Fields {
  if (!('management' in (nodeSchemas[String(fields.kind)]?.properties ?? {}))) return fields
  if (node.get('network-mode')?.textOrNone() === 'none' || links.has('eth0')) return { ...fields, management: false }
  const address = addressOf(node.get('mgmt-ipv4'))
  const ports = node.all('ports').flatMap((part) => part.itemsOrNone().flatMap((it) => portOf(it) ?? []))
  const management = ports.length > 0 ? { ...(address !== undefined && { address }), ports } : address
  return {
    ...fields,
    ...(typeof fields.adapters === 'number' && { adapters: Math.max(0, fields.adapters - 1) }),
    ...(management !== undefined && { management }),
  }
}

function addressOf(part: Part | undefined): string | undefined {
  const text = part?.textOrNone()?.split('/')[0]
  if (text === undefined || new RegExp(`^${ip4Pattern}$`).test(text)) return text
  part?.leaveOut(`is not imported: ${quoted(text)} is not an IPv4 address`)
  return undefined
}

/** A port as Docker publishes it. */
function portOf(part: Part): string | undefined {
  const text = part.textOrNone()
  if (text === undefined) return undefined
  const plain = text.replace(/\/tcp$/, '')
  if (new RegExp(`^(?:${ip4Pattern}:)?\\d{1,5}:\\d{1,5}(?:/udp)?$`).test(plain)) {
    if (/^\d+:/.test(plain))
      part.change('the port is forwarded from the loopback of the host, not from all its addresses')
    return plain
  }
  part.leaveOut('is not imported: expected HOST:NODE, such as 8080:80, with one port each')
  return undefined
}
