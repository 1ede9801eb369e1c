import { isSegmentKind } from '../../labfile/segment-kinds.ts'
import { hostnameOf } from '../../lib/text/host-name.ts'
import { defaultHostAddress, type NatGuest, type PortForward } from '../../model/kinds/nat-guests.ts'
import { ip4Pattern } from '../../model/kinds/nat-subnet.ts'
import type { InventoryHost, LabInventory } from '../../model/lab/inventory.ts'
import type { LabLink } from '../../model/lab/link.ts'
import type { LabNode } from '../../model/lab/node.ts'

/** What of a lab an inventory is made of. */
export interface InventoryInput {
  readonly name: string
  readonly nodes: readonly LabNode[]
  readonly links: readonly LabLink[]
}

/** Texts of nodes and labels are of strangers: what is no address, and no plain word, is in no inventory. */
const isAddress = (text: unknown): text is string =>
  typeof text === 'string' && (new RegExp(`^${ip4Pattern}$`).test(text) || /^(?=.*:)[0-9a-f:]{2,45}$/i.test(text))
/** The name of a group, which is a variable of Python in Ansible. */
const groupOf = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9_]+/g, '_')
    .replace(/^(?=\d)/, '_')
    .slice(0, 100)
/** Groups that Ansible makes itself: all nodes are in the one, and none in the other, as a node is in the group of its kind. */
const ownGroups = ['all', 'ungrouped']

/** The inventory of a lab: its nodes without the segments, in the order of their names. */
export function inventoryOf({ name, nodes, links }: InventoryInput): LabInventory {
  const guests = guestsOf(nodes, links)
  const names = new Set<string>()
  const free = (wanted: string) => {
    let found = wanted
    for (let number = 2; names.has(found.toLowerCase()); number++) found = `${wanted.slice(0, 58)}-${number}`
    names.add(found.toLowerCase())
    return found
  }
  const order = new Intl.Collator('en', { numeric: true })
  const hosts = nodes
    .filter(({ node_type }) => !isSegmentKind(node_type))
    .sort((a, b) => order.compare(a.name, b.name))
    .map((node): InventoryHost => {
      const { node_id, node_type: kind, console, console_host, console_type, labels } = node
      const guest = guests.get(node_id)
      const hasConsole = console !== null && isAddress(console_host) && console_type !== 'none'
      return {
        name: node.name,
        host_name: free(hostnameOf(node.name)),
        node_id,
        kind,
        groups: [...new Set([kind, labels.group ?? ''].map(groupOf))].filter(
          (group) => /[a-z0-9]/.test(group) && !ownGroups.includes(group),
        ),
        address: guest?.address ?? null,
        forwards: guest?.forwards ?? [],
        console: hasConsole ? { type: console_type, host: console_host, port: console } : null,
      }
    })
  return { lab: name, hosts }
}

interface Guest {
  readonly address: string
  readonly forwards: InventoryHost['forwards']
}

/** The nodes at ports of nats that know their addresses, by id. A management network goes before other nats. */
function guestsOf(nodes: readonly LabNode[], links: readonly LabLink[]): Map<string, Guest> {
  const found = new Map<string, Guest>()
  const nats = nodes.filter(({ properties }) => Array.isArray(properties.guests) && properties.guests.length > 0)
  const isManagement = ({ properties }: LabNode) => (properties.management === true ? 1 : 0)
  for (const { node_id, properties } of nats.sort((a, b) => isManagement(b) - isManagement(a))) {
    const { guests, port_forwards = [] } = properties as { guests: NatGuest[]; port_forwards?: PortForward[] }
    const byPort = new Map(guests.map((guest) => [guest.port_number, guest.address]))
    for (const { nodes: ends } of links) {
      const own = ends.find((end) => end.node_id === node_id)
      const other = ends.find((end) => end.node_id !== node_id)
      const address = byPort.get(own?.port_number ?? -1)
      if (other === undefined || !isAddress(address) || found.has(other.node_id)) continue
      const forwards = port_forwards
        .filter((it) => it.guest_address === address && isAddress(it.host_address ?? defaultHostAddress))
        .map(({ protocol, host_address = defaultHostAddress, host_port, guest_port }) => ({
          ...{ protocol, host_address, host_port, guest_port },
        }))
      found.set(other.node_id, { address, forwards })
    }
  }
  return found
}
