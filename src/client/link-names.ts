import type { LabLink, LabNode } from './patchbay.ts'

/** An end of a link, such as `R1:eth0`. */
export function endText(
  { node_id, adapter_number, port_number }: LabLink['nodes'][number],
  nodes: readonly LabNode[],
): string {
  const node = nodes.find((it) => it.node_id === node_id)
  const port = node?.ports?.find((it) => it.adapter_number === adapter_number && it.port_number === port_number)
  return `${node?.name ?? '?'}:${port?.short_name ?? `${adapter_number}/${port_number}`}`
}

/** The ends of a link, such as `R1:eth0 -- R2:eth0`. */
export const endsText = (link: LabLink, nodes: readonly LabNode[]): string =>
  link.nodes.map((end) => endText(end, nodes)).join(' -- ')

/** A link for people: its ends, after its name when it has one. */
export const linkText = (link: LabLink, nodes: readonly LabNode[]): string =>
  link.name == null ? endsText(link, nodes) : `${link.name} (${endsText(link, nodes)})`

/** The word for what a link does to frames. */
export const linkState = ({ suspend, verdict }: Pick<LabLink, 'suspend' | 'verdict'>): string =>
  suspend ? 'suspended' : (verdict ?? 'unknown')

/** The words of users for the states of nodes. */
export const stateOf = ({ status }: Pick<LabNode, 'status'>): string => (status === 'started' ? 'running' : status)

/** The links that a word names: an end `NODE:PORT`, two ends `NODE--NODE`, a name or an id. */
export function linksNamed(word: string, links: readonly LabLink[], nodes: readonly LabNode[]): LabLink[] {
  const wanted = plain(word)
  return links.filter((link) => textsOf(link, nodes).map(plain).includes(wanted))
}

/** All that a link may be called. */
function textsOf(link: LabLink, nodes: readonly LabNode[]): string[] {
  const ends = endsText(link, nodes).split(' -- ')
  const names = ends.map((end) => end.slice(0, end.lastIndexOf(':')))
  const [a = '', b = ''] = ends
  const [nodeA = '', nodeB = ''] = names
  return [
    link.name ?? '',
    link.link_id,
    ...ends,
    `${a}--${b}`,
    `${b}--${a}`,
    `${nodeA}--${nodeB}`,
    `${nodeB}--${nodeA}`,
  ]
}

const plain = (text: string): string => text.toLowerCase().replaceAll(' ', '')
