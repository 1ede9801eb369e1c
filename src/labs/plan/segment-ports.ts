import type { SegmentPort } from '../../labfile/desired.ts'
import { linkIdOf } from '../../labfile/ids.ts'
import { kindOf } from '../../model/kinds/node.ts'
import { nameKey } from '../../model/lab/names.ts'
import type { LinkRecord } from '../lab/document.ts'
import { isManagedLink } from './actual-links.ts'
import type { LinkMatch } from './match-links.ts'
import type { NodeMatch, NodeMatches } from './match-nodes.ts'
import type { Actual, WantedEnd, WantedLink } from './types.ts'

/** A link of the file with the numbers of all ports, and the link of the lab that it describes, if there is one. */
export interface ResolvedLink extends Omit<LinkMatch, 'ports'> {
  readonly link: WantedLink
}

/** Chooses the ports of segments that the file leaves open: those of links that are there first, then the lowest free ones. */
export function resolveLinks(
  lab: string,
  matches: readonly LinkMatch[],
  { links }: Pick<Actual, 'links'>,
  nodes: NodeMatches,
): ResolvedLink[] {
  const matched = new Set(matches.flatMap(({ have }) => have ?? []))
  const ports = new FreePorts()
  for (const { want, ports: present } of matches)
    for (const [index, end] of want.ends.entries()) ports.use(end.node, end.port_number ?? present?.[index])
  // Ports of links that stay, though the file does not have them.
  for (const link of links.values()) {
    if (matched.has(link) || isManagedLink(link)) continue
    for (const { node_id, port_number } of link.nodes) {
      const node = nodes.byId.get(node_id)
      if (node?.want.segment !== undefined) ports.use(node.want.name, port_number)
    }
  }
  return matches.map(({ want, have, ports: present }) => {
    const [a, b] = want.ends.map(({ node, adapter_number, port_number }, index) => ({
      node,
      adapter_number,
      port_number: port_number ?? present?.[index] ?? ports.take(node),
    }))
    const ends = [a, b] as [WantedEnd, WantedEnd]
    const { filters_ab, filters_ba, suspend, capture, name } = want
    const isSame = JSON.stringify(filters_ab) === JSON.stringify(filters_ba)
    const link: WantedLink = {
      link_id: freeLinkId(linkIdOf(lab, name ?? ends), links, matched),
      name: name ?? null,
      ends,
      suspend,
      capture,
      filters: isSame ? filters_ab : {},
      filters_ab: isSame ? {} : filters_ab,
      filters_ba: isSame ? {} : filters_ba,
    }
    return { link, want, have }
  })
}

/** The numbers of ports that are in use, by node. */
class FreePorts {
  readonly #used = new Map<string, Set<number>>()
  /** No port below this number is free. */
  readonly #lowest = new Map<string, number>()

  use(node: string, port: number | undefined): void {
    if (port === undefined) return
    const key = nameKey(node)
    this.#used.set(key, (this.#used.get(key) ?? new Set()).add(port))
  }

  /** The lowest free port, which is in use from now on. */
  take(node: string): number {
    const key = nameKey(node)
    let port = this.#lowest.get(key) ?? 0
    while (this.#used.get(key)?.has(port)) port += 1
    this.#lowest.set(key, port)
    this.use(node, port)
    return port
  }
}

/** The id; undefined when a link that stays has it. */
function freeLinkId(
  id: string,
  links: ReadonlyMap<string, LinkRecord>,
  matched: ReadonlySet<LinkRecord>,
): string | undefined {
  const other = links.get(id)
  return other === undefined || (!matched.has(other) && isManagedLink(other)) ? id : undefined
}

/** Settings of the ports of segments that links of the file use, by the key of the name and by number. */
type UsedPorts = ReadonlyMap<string, ReadonlyMap<number, SegmentPort>>

export function usedPorts(links: readonly ResolvedLink[], nodes: NodeMatches): UsedPorts {
  const used = new Map<string, Map<number, SegmentPort>>()
  for (const { link, want } of links)
    for (const [index, { node, port_number }] of link.ends.entries()) {
      const key = nameKey(node)
      if (nodes.byName.get(key)?.want.segment === undefined) continue
      const ports = used.get(key) ?? new Map<number, SegmentPort>()
      used.set(key, ports.set(port_number, { ...ports.get(port_number), ...want.ends[index]?.port }))
    }
  return used
}

/**
 * The ports of a segment, as members of its properties. `used`: those of links of the file; `foreign`: those of links that
 * others made, which stay as they are.
 */
export function segmentPorts(
  { want: { kind, properties, segment }, have, isManaged }: NodeMatch,
  used: ReadonlyMap<number, SegmentPort>,
  foreign: readonly number[],
): Readonly<Record<string, unknown>> {
  if (segment === undefined) return {}
  const { everyPort, ports } = segment
  const input = { properties, everyPort, ports, used, foreign, present: have?.properties, isManaged }
  return kindOf(kind).portsFor?.(input) ?? {}
}
