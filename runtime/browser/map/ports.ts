import type { LabLink, LabLinkEnd, LabNode } from '../../../src/client/patchbay.ts'

/** A port of a node, as the ends of links name it. */
export type MapPort = Pick<LabLinkEnd, 'adapter_number' | 'port_number'>
export type Port = LabNode['ports'][number]

export const isPort = (port: MapPort, { adapter_number, port_number }: MapPort): boolean =>
  port.adapter_number === adapter_number && port.port_number === port_number

/** The name of the port at an end of a link, from its node; its numbers when the node does not say. */
export function portName(node: LabNode | undefined, end: MapPort): string {
  return node?.ports.find((it) => isPort(it, end))?.name ?? `${end.adapter_number}/${end.port_number}`
}

export const shortPortName = (node: LabNode | undefined, end: MapPort): string =>
  node?.ports.find((port) => isPort(port, end))?.short_name ?? `${end.adapter_number}/${end.port_number}`

/** The links at a node. */
export const linksAt = (links: readonly LabLink[], nodeId: string): LabLink[] =>
  links.filter(({ nodes }) => nodes.some((end) => end.node_id === nodeId))

/** The ports of a node without a link, in its own order. */
export function freePorts(node: LabNode, links: readonly LabLink[]): Port[] {
  const ends = links.flatMap(({ nodes }) => nodes.filter((end) => end.node_id === node.node_id))
  return node.ports.filter((port) => !ends.some((end) => isPort(port, end)))
}

/** The ports that a new link between two nodes can have. */
export interface PortChoice {
  /** Those of the first node for which the other has a free port. */
  readonly from: readonly Port[]
  /** The free ones of the other node. */
  readonly to: readonly Port[]
}

/** The ports for a new link between two nodes; `wanted`: the only one of the first. Or why there are none. */
export function portsBetween(
  a: LabNode,
  b: LabNode,
  links: readonly LabLink[],
  wanted?: Port,
): PortChoice | { readonly reason: string } {
  if (a.node_id === b.node_id) return { reason: 'A link needs two different nodes.' }
  const from = wanted === undefined ? freePorts(a, links) : [wanted]
  const to = freePorts(b, links)
  for (const [node, free] of [[a, from] as const, [b, to] as const])
    if (free.length === 0) return { reason: `${node.name} has no free port: delete one of its links first.` }
  const fitting = from.filter((port) => to.some(({ link_type }) => link_type === port.link_type))
  if (fitting.length === 0) return { reason: `${a.name} and ${b.name} have no free ports of the same line type.` }
  return { from: fitting, to }
}

/** The ports of the same line type as another. */
export const fittingPorts = (port: Port | undefined, ports: readonly Port[]): readonly Port[] =>
  ports.filter(({ link_type }) => link_type === port?.link_type)

/** Whether there is something to choose. */
export const isChoice = ({ from, to }: PortChoice): boolean => from.length > 1 || fittingPorts(from[0], to).length > 1

/** The ends of a new link between two nodes: the first free ports of the same line type. Undefined, with why, when there are none. */
export function endsFor(
  a: LabNode,
  b: LabNode,
  links: readonly LabLink[],
  wanted?: Port,
): { readonly ends: readonly [LabLinkEnd, LabLinkEnd] } | { readonly reason: string } {
  const found = portsBetween(a, b, links, wanted)
  if ('reason' in found) return found
  const [mine] = found.from
  const [theirs] = fittingPorts(mine, found.to)
  // Both are there: what `portsBetween` gives has a partner.
  return { ends: [endOf(a, mine as Port), endOf(b, theirs as Port)] }
}

export const endOf = ({ node_id }: LabNode, { adapter_number, port_number }: MapPort): LabLinkEnd => ({
  node_id,
  adapter_number,
  port_number,
})

/** The end of a link that is not at a node. */
export const otherEnd = ({ nodes }: LabLink, nodeId: string): LabLinkEnd | undefined =>
  nodes.find((end) => end.node_id !== nodeId)

/** The ports into which an end of a link can be plugged: its own, and the free ones of the same line type. */
export function portsFor(node: LabNode, end: MapPort, links: readonly LabLink[]): Port[] {
  const own = node.ports.find((port) => isPort(port, end))
  const free = new Set(freePorts(node, links))
  return node.ports.filter((port) => port === own || (free.has(port) && port.link_type === own?.link_type))
}
