import { because } from './containerlab-nodes.ts'
import { lastNumber } from './draft.ts'
import { type Part, quoted } from './source.ts'

/** One end of a link, as it is read. */
export interface ReadEnd {
  readonly part: Part
  readonly node: string
  readonly port: string
  /** Addresses with prefix lengths that the link gives the port. */
  readonly addresses: readonly string[]
}

/** A link, as it is read. */
export interface ReadLink {
  readonly part: Part
  /** One that is not imported has one, so that the node has the port; or none. */
  readonly ends: readonly ReadEnd[]
}

/** Types of links between two nodes. `veth-stitch` is one by way of the host. */
const pairTypes = ['brief', 'veth', 'veth-stitch']
/** What is outside of the nodes of a topology, by the name that it has as an end of a link. */
const outsides = ['host', 'mgmt-net', 'macvlan'] as const

export function readLink(link: Part): ReadLink {
  const type = (link.get('type').optionalText() ?? 'brief').trim().toLowerCase()
  const endpoints = link.get('endpoints')
  if (pairTypes.includes(type) && !(type === 'veth-stitch' && endpoints.isAbsent)) {
    const ends = endpoints.items().map(readEnd)
    if (ends.length !== 2)
      throw (endpoints.isAbsent ? link : endpoints).error('expected two endpoints, such as ["r1:eth1", "r2:eth1"]')
    link.leaveOutUnread(because)
    return { part: link, ends }
  }
  const device = link.get('host-interface').optionalText() ?? ''
  const own = link.get('endpoint')
  if ((outsides as readonly string[]).includes(type)) {
    const ends = [readEnd(own), { part: link, node: type, port: device, addresses: [] }]
    link.leaveOutUnread(because)
    return { part: link, ends }
  }
  link.leaveOut(`the link is not imported: a lab file has no links of type ${quoted(type)}`)
  return { part: link, ends: own.isAbsent ? [] : [readEnd(own)] }
}

function readEnd(part: Part): ReadEnd {
  if (part.isObject) {
    const [node, port] = [part.get('node').text(), part.get('interface').text()]
    const addresses = ['ipv4', 'ipv6'].map((key) => part.get(key).textOrNone())
    part.leaveOutUnread(because)
    return { part, node, port, addresses: addresses.filter((it) => it !== undefined) }
  }
  const [, node, port] = /^([^:]+):(.+)$/s.exec(part.text()) ?? []
  if (node === undefined || port === undefined)
    throw part.error(`expected an endpoint such as "r1:eth1", got ${quoted(part.value)}`)
  return { part, node, port, addresses: [] }
}

/** By node and port: the end of a link that names the port first. */
export function portsOf(links: readonly ReadLink[]): Map<string, Map<string, ReadEnd>> {
  const ports = new Map<string, Map<string, ReadEnd>>()
  for (const end of links.flatMap(({ ends }) => ends)) {
    const own = ports.get(end.node) ?? new Map<string, ReadEnd>()
    ports.set(end.node, own)
    if (!own.has(end.port)) own.set(end.port, end)
  }
  return ports
}

/** Ports of an IOU router on all its adapters: 16 of four ports. */
const mostIouPorts = 64

/** The ports of an IOU router by their names: `Ethernet1/2` is port 6, as `eth6` is. */
export function iouPorts(ports: ReadonlyMap<string, ReadEnd>): Map<string, number> {
  const numbers = new Map<string, number>()
  const others: string[] = []
  for (const name of ports.keys()) {
    const [, slot, port] = /^(?:e|et|eth|ethernet) ?(\d{1,2})\/([0-3])$/i.exec(name) ?? []
    const number =
      slot === undefined ? (name.includes('/') ? undefined : lastNumber(name)) : Number(slot) * 4 + Number(port)
    if (number !== undefined && number < mostIouPorts) numbers.set(name, number)
    else others.push(name)
  }
  const taken = new Set(numbers.values())
  let next = 1
  for (const name of others) {
    while (taken.has(next)) next += 1
    taken.add(next)
    numbers.set(name, Math.min(next, mostIouPorts - 1))
    ports
      .get(name)
      ?.part.change(
        `${quoted(name)} is not a name of a port of IOL, such as Ethernet0/1: it becomes e${Math.floor(next / 4)}/${next % 4}`,
      )
  }
  return numbers
}
