import type { SegmentPort } from '../../labfile/desired.ts'
import { linkIdOf } from '../../labfile/ids.ts'
import { kindOf, type NodeKindName } from '../../model/kinds/node.ts'
import { nameKey } from '../../model/lab/names.ts'
import type { LinkRecord, NodeRecord } from '../lab/document.ts'
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
      ...{ node, adapter_number, port_number: port_number ?? present?.[index] ?? ports.take(node) },
    }))
    const ends = [a, b] as [WantedEnd, WantedEnd]
    const { filters_ab, filters_ba, suspend, capture, name } = want
    const isSame = JSON.stringify(filters_ab) === JSON.stringify(filters_ba)
    const link: WantedLink = {
      link_id: freeLinkId(linkIdOf(lab, name ?? ends), links, matched),
      ...{ name: name ?? null, ends, suspend, capture },
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
export type UsedPorts = ReadonlyMap<string, ReadonlyMap<number, SegmentPort>>

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

/** The default number of ports of a switch or hub. */
const defaultPorts = 8

/**
 * The ports of a segment, as members of its properties. `used`: those of links of the file; `foreign`: those of links that others made,
 * which stay as they are.
 */
export function segmentPorts(
  { want, have, isManaged }: NodeMatch,
  used: ReadonlyMap<number, SegmentPort>,
  foreign: readonly number[],
): Record<string, unknown> {
  const { segment, kind, properties } = want
  if (segment === undefined) return {}
  const numbers = new Map(used)
  if (kind === 'nat') {
    if ('port_count' in properties) return {}
    // In steps of eight, as a nat must be stopped to get more.
    const most = Math.max(0, ...numbers.keys(), ...foreign)
    const present = isManaged ? 0 : Number(have?.properties.port_count ?? 0)
    return { port_count: Math.max(present, Math.min(64, 8 * Math.ceil((most + 1) / 8))) }
  }
  for (const port of Object.keys(segment.ports)) if (!numbers.has(Number(port))) numbers.set(Number(port), {})
  const count = kind !== 'cloud' ? defaultPorts : Object.keys(segment.everyPort).length > 0 ? 1 : 0
  for (let port = 0; port < count; port++) if (!numbers.has(port)) numbers.set(port, {})
  const there = new Map(portList(have).map((port) => [port.port_number, port]))
  // Ports of others stay: those with their links, and in a segment that the file did not make all.
  const others = isManaged ? foreign : [...there.keys()]
  const isOurs = (port: number) => used.has(port) || segment.ports[port] !== undefined
  const kept = new Set(others.filter((port) => there.has(port) && !isOurs(port)))
  for (const port of kept) numbers.set(port, {})
  const list = [...numbers]
    .sort(([a], [b]) => a - b)
    .map(([port_number, settings]) => {
      const present = there.get(port_number)
      if (present !== undefined && kept.has(port_number)) return present
      return {
        ...portDefaults(kind, port_number),
        ...segment.everyPort,
        ...segment.ports[port_number],
        ...settings,
        port_number,
      }
    })
  return { ports_mapping: list }
}

/** The settings of a new port of a segment. */
function portDefaults(kind: NodeKindName, port_number: number): Record<string, unknown> {
  const port = kindOf(kind).node.properties.ports_mapping?.items?.properties ?? {}
  const given = Object.entries(port as Record<string, { default?: unknown }>).flatMap(([key, schema]) =>
    schema.default === undefined ? [] : [[key, schema.default] as const],
  )
  return { name: `Ethernet${port_number}`, ...Object.fromEntries(given) }
}

const portList = (node: NodeRecord | undefined): { port_number: number }[] =>
  Array.isArray(node?.properties.ports_mapping) ? (node.properties.ports_mapping as { port_number: number }[]) : []
