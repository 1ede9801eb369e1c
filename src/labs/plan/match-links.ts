import type { DesiredEnd, DesiredLink } from '../../labfile/desired.ts'
import type { LabLinkEnd } from '../../model/lab/link.ts'
import { nameKey } from '../../model/lab/names.ts'
import type { LinkRecord } from '../lab/document.ts'
import { type LinkIndex, portKey } from './actual-links.ts'
import type { NodeMatches } from './match-nodes.ts'
import type { Actual } from './types.ts'

/** A link of the file, and the link of the lab that it describes, if there is one. */
export interface LinkMatch {
  readonly want: DesiredLink
  readonly have: LinkRecord | undefined
  /** The ports of the link that is there, in the order of the wanted ends. */
  readonly ports: readonly [number, number] | undefined
}

/**
 * Finds the links of the file: by name, then by their ends. First those with both ports given, so that they are not taken for
 * others.
 */
export function matchLinks(
  wants: readonly DesiredLink[],
  { links }: Pick<Actual, 'links'>,
  nodes: NodeMatches,
  index: LinkIndex,
): LinkMatch[] {
  const byName = new Map<string, LinkRecord>()
  for (const link of links.values()) if (link.name != null) byName.set(nameKey(link.name), link)
  const numbered = new Set(
    wants.flatMap(({ ends }) =>
      ends.flatMap(({ node, port_number }) => (port_number === undefined ? [] : [`${nameKey(node)}/${port_number}`])),
    ),
  )
  /** Whether another link asks for an open port by its number. */
  const isAskedFor = ({ ends }: DesiredLink, ports: readonly [number, number]) =>
    ends.some(
      ({ node, port_number }, end) =>
        port_number === undefined && numbered.has(`${nameKey(node)}/${ports[end as 0 | 1]}`),
    )
  const found = new Map<DesiredLink, Required<Pick<LinkMatch, 'have' | 'ports'>>>()
  const taken = new Set<LinkRecord>()
  const find = (want: DesiredLink) => {
    const named = want.name === undefined ? undefined : byName.get(nameKey(want.name))
    for (const have of [...(named === undefined ? [] : [named]), ...candidates(want, nodes, index)]) {
      const ports = taken.has(have) ? undefined : portsBetween(want, have, nodes)
      if (ports === undefined || isAskedFor(want, ports)) continue
      taken.add(have)
      found.set(want, { have, ports })
      return
    }
  }
  const isOpen = ({ ends }: DesiredLink) => ends.some(({ port_number }) => port_number === undefined)
  for (const want of wants) if (!isOpen(want)) find(want)
  for (const want of wants) if (isOpen(want)) find(want)
  return wants.map((want) => ({ want, have: found.get(want)?.have, ports: found.get(want)?.ports }))
}

/** The ports of a link, in the order of the wanted ends, when it is between these ends. */
function portsBetween(want: DesiredLink, link: LinkRecord, nodes: NodeMatches): [number, number] | undefined {
  const isAt = (end: DesiredEnd, at: LabLinkEnd) =>
    nodes.byName.get(nameKey(end.node))?.have?.node_id === at.node_id &&
    end.adapter_number === at.adapter_number &&
    (end.port_number ?? at.port_number) === at.port_number
  const [a, b] = link.nodes as [LabLinkEnd, LabLinkEnd]
  const [first, second] = want.ends
  if (isAt(first, a) && isAt(second, b)) return [a.port_number, b.port_number]
  if (isAt(first, b) && isAt(second, a)) return [b.port_number, a.port_number]
  return undefined
}

/** Links that may be the wanted one: at an end with a known port, else all of a segment. */
function candidates({ ends }: DesiredLink, nodes: NodeMatches, { ofNode, atPort }: LinkIndex): readonly LinkRecord[] {
  const known = ends.find(({ port_number }) => port_number !== undefined)
  const end = known ?? ends[0]
  const node_id = nodes.byName.get(nameKey(end.node))?.have?.node_id
  if (node_id === undefined) return []
  if (known?.port_number === undefined) return ofNode.get(node_id) ?? []
  const { adapter_number, port_number } = known
  const link = atPort.get(portKey({ node_id, adapter_number, port_number }))
  return link === undefined ? [] : [link]
}
