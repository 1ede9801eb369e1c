import { omit } from '../lib/omit.ts'
import { compareText } from '../lib/text/compare-text.ts'
import { hostnameOf } from '../lib/text/host-name.ts'
import { forwardsCollide, maxForwards, type NatGuest, type PortForward } from '../model/kinds/nat-guests.ts'
import { defaultSubnet, numberOf4, type Subnet, subnetOf, textOf4 } from '../model/kinds/nat-subnet.ts'
import type { Desired, DesiredLink, DesiredManagement, DesiredNode } from './desired.ts'
import { type Diagnostics, quoted } from './diagnostics.ts'
import { nodeIdOf } from './ids.ts'
import { managedPort, partOf, settingsAt } from './management-fields.ts'
import { keyOf } from './names.ts'
import { type Common, common, type Reading, segmentSettings } from './nodes.ts'
import { type ManagementMap, managementName, managementNetwork, maxManagedPorts } from './schema.ts'
import { managementKind } from './segment-kinds.ts'
import { at, type Value } from './values.ts'

/** The management network of a file: its nat, and the nodes with what follows from their addresses. */
export interface ReadManagement {
  readonly nat: DesiredNode
  readonly nodes: readonly DesiredNode[]
}

/** Makes the management network of nodes that have been read. Undefined when it has a fault. */
export function readManagement(
  given: ManagementMap,
  section: Value,
  nodes: readonly DesiredNode[],
  reading: Reading,
): ReadManagement | undefined {
  const { diagnostics, lab } = reading
  const { network = managementNetwork, name = managementName, ...own } = given
  const subnet = subnetOf(network)
  if (subnet === undefined) {
    const where = at(section, 'network')?.at ?? section.at
    diagnostics.add(where, `${network} is not a network address with a prefix from /8 to /28`)
    return undefined
  }
  const managed = nodes.filter(({ management }) => management !== undefined)
  checkHostNames(managed, diagnostics)
  checkPorts(managed, section, diagnostics)
  const addresses = addressesIn(managed, { network, subnet, section, diagnostics })
  if (addresses === undefined) return undefined
  const joined = nodes.map((node) => {
    const { management, kind, properties, keys, at: position } = node
    const address = addresses.get(node.name)
    if (management === undefined || address === undefined) return node
    const follows = settingsAt(kind, textOf4(address), network)
    const twice = Object.keys(follows).find((key) => properties[key] !== undefined)
    if (twice !== undefined)
      diagnostics.add(
        keys[twice] ?? position,
        `${twice} is that of the management network`,
        'leave it out, or write management: false',
      )
    return {
      ...node,
      properties: { ...properties, ...follows },
      management: { ...management, address: textOf4(address) },
    }
  })
  const forwards = joined.flatMap(({ management }) =>
    (management?.ports ?? []).map((port): PortForward => ({ ...port, guest_address: management?.address ?? '' })),
  )
  return {
    nodes: joined,
    nat: {
      name,
      node_id: nodeIdOf(lab, name),
      ...common(own as Common, managementKind, reading),
      settings: segmentSettings(own as Common),
      properties: { subnet: network, management: true, ...(forwards.length > 0 && { port_forwards: forwards }) },
      configs: {},
      labels: own.labels ?? {},
      start: true,
      after: [],
      segment: { everyPort: {}, ports: {} },
      at: section.at,
      keys: {},
    },
  }
}

function checkHostNames(nodes: readonly DesiredNode[], diagnostics: Diagnostics): void {
  const seen = new Map<string, string>()
  for (const { name, at: position } of nodes) {
    const own = hostnameOf(name)
    const other = seen.get(own.toLowerCase())
    if (other !== undefined)
      diagnostics.add(
        position,
        `${quoted(other)} and ${quoted(name)} would both have the name ${own} in the management network`,
        'rename one of them, or give one of them management: false',
      )
    seen.set(own.toLowerCase(), name)
  }
}

function checkPorts(nodes: readonly DesiredNode[], section: Value, diagnostics: Diagnostics): void {
  const all = nodes.flatMap(({ name, management, keys, at: position }) =>
    (management?.ports ?? []).map((port) => ({ name, port, where: keys.management ?? position })),
  )
  if (all.length > maxForwards) {
    diagnostics.add(section.at, `the nodes have ${all.length} ports of the host, expected at most ${maxForwards}`)
    return
  }
  for (const [index, { port, where }] of all.entries()) {
    const other = all.slice(0, index).find((it) => forwardsCollide(it.port, port))
    if (other !== undefined)
      diagnostics.add(where, `port ${port.host_port} of the host already leads to ${quoted(other.name)}`)
  }
}

interface AddressInputs {
  readonly network: string
  readonly subnet: Subnet
  readonly section: Value
  readonly diagnostics: Diagnostics
}

/** The addresses that a subnet has for nodes. */
const addressRange = ({ host, broadcast }: Subnet) => ({ lowest: host + 1, highest: broadcast - 1 })

/** The addresses of all nodes, by name. Undefined when the network is too small. */
function addressesIn(
  nodes: readonly DesiredNode[],
  { network, subnet, section, diagnostics }: AddressInputs,
): Map<string, number> | undefined {
  const { lowest, highest } = addressRange(subnet)
  const given = new Map<string, number>()
  const owners = new Map<number, string>()
  for (const { name, management, keys, at: position } of nodes) {
    if (management?.isGiven !== true) continue
    const where = keys.management ?? position
    const address = numberOf4(management.address)
    const other = owners.get(address)
    if (address < lowest || address > highest)
      diagnostics.add(
        where,
        `${management.address} is not an address for a node of the management network ${network}`,
        `addresses are ${textOf4(lowest)} to ${textOf4(highest)}`,
      )
    else if (other !== undefined)
      diagnostics.add(where, `${quoted(other)} already has the address ${management.address}`)
    owners.set(address, name)
    given.set(name, address)
  }
  const room = highest - lowest + 1
  if (nodes.length > room) {
    const where = at(section, 'network')?.at ?? section.at
    diagnostics.add(where, `the management network ${network} has ${room} addresses for ${nodes.length} nodes`)
    return undefined
  }
  return addressesOf(
    nodes.map(({ name }) => name),
    given,
    subnet,
  )
}

/**
 * The addresses of nodes by name: the given ones, and for the others one that follows from the name, so that a node keeps its address when
 * others come and go. Where two would have the same one, the next name gets the next free address. Names that the network has no room for
 * get none.
 */
function addressesOf(
  names: readonly string[],
  given: ReadonlyMap<string, number>,
  subnet: Subnet,
): Map<string, number> {
  const { first, last } = subnet
  const found = new Map(given)
  const taken = new Set(given.values())
  const others = names.filter((name) => !given.has(name)).sort((a, b) => compareText(keyOf(a), keyOf(b)))
  // In a small network also the addresses that DHCP gives nobody.
  const hasRoom = names.length <= last - first + 1 - [...taken].filter((it) => it >= first && it <= last).length
  const { lowest, highest } = hasRoom ? { lowest: first, highest: last } : addressRange(subnet)
  const size = highest - lowest + 1
  for (const name of others) {
    const start = hashOf(keyOf(name)) % size
    for (let step = 0; step < size; step++) {
      const address = lowest + ((start + step) % size)
      if (taken.has(address)) continue
      taken.add(address)
      found.set(name, address)
      break
    }
  }
  return found
}

/** FNV-1a of 32 bits (draft-eastlake-fnv). */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0
  return hash
}

/**
 * A lab with its management network as a file would have it: nodes say how they are in it. A nat that is marked as one, and has what no
 * file with `management` makes, stays a segment.
 */
export function withManagement(desired: Desired): Desired {
  const [net, another] = desired.nodes.filter(
    ({ kind, properties }) => kind === managementKind && properties.management === true,
  )
  if (net === undefined || another !== undefined) return desired
  const { subnet: network = defaultSubnet, guests = [], port_forwards = [] } = net.properties as NatSettings
  const subnet = subnetOf(network)
  if (subnet === undefined) return desired
  const byPort = new Map(guests.map((guest) => [guest.port_number, guest]))
  const managed = new Map<string, DesiredManagement>()
  const byName = new Map(desired.nodes.map((node) => [node.name, node]))
  const links = desired.links.map((link): DesiredLink => {
    if (link.memberOf !== net.name) return link
    const [end, own] = link.ends
    const node = byName.get(end.node)
    const guest = byPort.get(own.port_number ?? -1)
    if (node === undefined || guest === undefined || !isPlain(link)) return link
    const ports = port_forwards.filter(({ guest_address }) => guest_address === guest.address)
    const management = {
      address: guest.address,
      isGiven: false,
      ports: ports.map((port) => omit(port, 'guest_address')),
    }
    const follows = Object.entries(settingsAt(node.kind, guest.address, network))
    // The name may be the former one of a node that was renamed: the nat gets the new one by the next apply.
    const isOfNode =
      partOf(node.kind) !== undefined &&
      end.adapter_number === 0 &&
      ports.length <= maxManagedPorts &&
      follows.every(([key, value]) => node.properties[key] === value)
    if (!isOfNode) return link
    managed.set(node.name, management)
    const { port: _, ...plain } = own
    const port = managedPort({ name: node.name, management })
    return { ...link, ends: [end, { ...plain, port_number: undefined, port }], isManagement: true }
  })
  // A guest without a link is one whose node was deleted, or taken out of the network.
  const linked = new Set(
    desired.links.flatMap(({ memberOf, ends: [, own] }) => (memberOf === net.name ? (own.port_number ?? []) : [])),
  )
  const left = new Set(guests.filter(({ port_number }) => !linked.has(port_number)).map(({ address }) => address))
  const forwards = port_forwards.filter(({ guest_address = '' }) => !left.has(guest_address))
  const all = [...managed.values()]
  const { lowest, highest } = addressRange(subnet)
  const addresses = new Set(all.map(({ address }) => numberOf4(address)))
  const isWhole =
    addresses.size === all.length &&
    [...addresses].every((address) => address >= lowest && address <= highest) &&
    all.length === guests.length - left.size &&
    all.reduce((sum, { ports }) => sum + ports.length, 0) === forwards.length &&
    new Set([...managed.keys()].map((name) => hostnameOf(name).toLowerCase())).size === managed.size
  if (!isWhole) return desired
  const nodes = desired.nodes.map((node) => {
    const management = managed.get(node.name)
    if (management !== undefined) return { ...node, management }
    return node === net ? { ...net, properties: omit(net.properties, 'guests', 'ipv6_prefix', 'port_count') } : node
  })
  return {
    ...desired,
    management: net.name,
    nodes: withGivenAddresses(nodes, network),
    // What else is at the nat is an entry of `links`.
    links: links.map((link) => {
      if (link.memberOf !== net.name || link.isManagement === true) return link
      const { memberOf: _, ...others } = link
      return others
    }),
  }
}

interface NatSettings {
  readonly subnet?: string
  readonly guests?: readonly NatGuest[]
  readonly port_forwards?: readonly PortForward[]
}

const isPlain = ({ name, suspend, capture, filters_ab, filters_ba }: DesiredLink): boolean =>
  name === undefined && !suspend && capture === undefined && Object.keys({ ...filters_ab, ...filters_ba }).length === 0

/** Nodes of a management network; those whose addresses do not follow from the names of all say so. */
export function withGivenAddresses(nodes: readonly DesiredNode[], network: string): readonly DesiredNode[] {
  const subnet = subnetOf(network)
  if (subnet === undefined) return nodes
  const managed = nodes.flatMap(({ name, management }) => (management === undefined ? [] : [{ name, ...management }]))
  const given = new Map(
    managed.flatMap(({ name, address, isGiven }) => (isGiven ? [[name, numberOf4(address)] as const] : [])),
  )
  const names = managed.map(({ name }) => name)
  for (;;) {
    const chosen = addressesOf(names, given, subnet)
    const others = managed.filter(({ name, address }) => chosen.get(name) !== numberOf4(address))
    if (others.length === 0) break
    for (const { name, address } of others) given.set(name, numberOf4(address))
  }
  return nodes.map((node) =>
    node.management !== undefined && given.has(node.name)
      ? { ...node, management: { ...node.management, isGiven: true } }
      : node,
  )
}
