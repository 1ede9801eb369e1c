import type { LabLinkEnd } from '../../model/lab/link.ts'
import type { LinkRecord, NodeRecord } from '../lab/document.ts'

/** The links of a lab, by what they are at. */
export interface LinkIndex {
  /** By the id of a node. */
  readonly ofNode: ReadonlyMap<string, readonly LinkRecord[]>
  /** By the key of a port. */
  readonly atPort: ReadonlyMap<string, LinkRecord>
}

export const portKey = ({
  node_id,
  adapter_number,
  port_number,
}: Pick<LabLinkEnd, 'node_id' | 'adapter_number' | 'port_number'>): string =>
  `${node_id}/${adapter_number}/${port_number}`

export function indexLinks(links: ReadonlyMap<string, LinkRecord>): LinkIndex {
  const ofNode = new Map<string, LinkRecord[]>()
  const atPort = new Map<string, LinkRecord>()
  for (const link of links.values())
    for (const end of link.nodes) {
      atPort.set(portKey(end), link)
      const list = ofNode.get(end.node_id)
      if (list === undefined) ofNode.set(end.node_id, [link])
      else list.push(link)
    }
  return { ofNode, atPort }
}

/** Whether a link was made from the file. */
export const isManagedLink = ({ lastApplied }: LinkRecord): boolean => lastApplied?.managed === true

/** Numbers of the ports of a node that links of others use. */
export const foreignPorts = ({ ofNode }: LinkIndex, node_id: string): number[] =>
  (ofNode.get(node_id) ?? [])
    .filter((link) => !isManagedLink(link))
    .flatMap(({ nodes }) => nodes.filter((end) => end.node_id === node_id).map(({ port_number }) => port_number))

/** The name of a link for people: its own, else its ends. */
export function nameOfLink(
  link: Pick<LinkRecord, 'name' | 'nodes'>,
  nodes: ReadonlyMap<string, Pick<NodeRecord, 'name'>>,
): string {
  if (link.name != null) return link.name
  const ends = link.nodes.map(({ node_id, adapter_number, port_number }) => {
    const name = nodes.get(node_id)?.name ?? node_id
    return `${name}:${adapter_number}/${port_number}`
  })
  return ends.join(' -- ')
}
