import type { LabLink, LabLinkEnd, LabNode, LabTemplate, Patchbay } from '../../../src/client/patchbay.ts'
import { freePorts, isPort, linksAt, type Port } from '../map/ports.ts'
import { counted } from '../parts/counted.ts'

/** A node in place of another one, and what became of its links. */
export interface ReplacedNode {
  readonly node: LabNode
  /** How many links it has no ports for. */
  readonly lostLinks: number
  /** Ports that changed their numbers, such as `eth1 is now Ethernet0`. */
  readonly portChanges: readonly string[]
}

/**
 * Puts a node of another type in place of a node: with its name, its place, and its links, as far as there are ports for them. The old node
 * goes only when the new one is there. `sent` counts the changes, for an undo.
 */
export async function replaceNode(
  client: Patchbay,
  old: LabNode,
  template: LabTemplate,
  sent: <T>(change: Promise<T>) => Promise<T> = (change) => change,
): Promise<ReplacedNode> {
  const { project_id, name, x, y } = old
  const params = { project_id }
  const links = linksAt(await client.call('GET /v2/projects/{project_id}/links', { params }), old.node_id)
  const made = await sent(
    client.call('POST /v2/projects/{project_id}/templates/{template_id}', {
      params: { ...params, template_id: template.template_id },
      body: { x, y },
    }),
  )
  await sent(
    client.call('DELETE /v2/projects/{project_id}/nodes/{node_id}', { params: { ...params, node_id: old.node_id } }),
  )
  const node = await sent(
    client.call('PUT /v2/projects/{project_id}/nodes/{node_id}', {
      params: { ...params, node_id: made.node_id },
      body: { name },
    }),
  )
  const moved = relinked(old, node, links)
  for (const { ends, link } of moved) {
    const { filters, filters_ab, filters_ba, suspend } = link
    await sent(
      client.call('POST /v2/projects/{project_id}/links', {
        params,
        body: { nodes: ends, name: link.name, filters, filters_ab, filters_ba, suspend },
      }),
    )
  }
  return { node, lostLinks: links.length - moved.length, portChanges: movedPorts(old, node, moved) }
}

interface Moved {
  readonly link: LabLink
  readonly ends: [LabLinkEnd, LabLinkEnd]
}

type FindPort = (old: Port, free: readonly Port[]) => Port | undefined

/** The number of a port: `0/1` of `GigabitEthernet0/1`. */
const numberOf = ({ name }: Port): string => /\d+(?:\/\d+)*$/.exec(name)?.[0] ?? name

const isSameName = (one: Port, other: Port): boolean =>
  [other.name, other.short_name].some((name) => name.toLowerCase() === one.name.toLowerCase())

/** Which port takes the place of a port, the best way first. A way is taken for all links, or for none. */
const ways: readonly FindPort[] = [
  (old, free) => free.find((port) => isSameName(old, port)),
  (old, free) => free.find((port) => numberOf(port) === numberOf(old)),
  (_, [port]) => port,
]

/**
 * The links of a node at the ports of another one: at those of the same names, or else of the same numbers, where it has all of them;
 * else in the order of the ports, each at the first free port of its line type.
 */
export function relinked(old: LabNode, node: LabNode, links: readonly LabLink[]): Moved[] {
  let moved: Moved[] = []
  for (const find of ways) {
    moved = movedBy(find, { old, node, links })
    if (moved.length === links.length) break
  }
  return moved
}

function movedBy(
  find: FindPort,
  { old, node, links }: { old: LabNode; node: LabNode; links: readonly LabLink[] },
): Moved[] {
  const placeOf = (link: LabLink) =>
    old.ports.findIndex((port) => link.nodes.some((end) => end.node_id === old.node_id && isPort(port, end)))
  const free = freePorts(node, [])
  return links
    .toSorted((a, b) => placeOf(a) - placeOf(b))
    .flatMap((link) => {
      const [from, to] = link.nodes
      if (from === undefined || to === undefined) return []
      const taken: Port[] = []
      const endOf = (end: LabLinkEnd): LabLinkEnd | undefined => {
        const { node_id, adapter_number, port_number } = end
        if (node_id !== old.node_id) return { node_id, adapter_number, port_number }
        const own = old.ports.find((port) => isPort(port, end))
        const fitting = free.filter((it) => it.link_type === link.link_type && !taken.includes(it))
        const port = own && find(own, fitting)
        if (port === undefined) return undefined
        taken.push(port)
        return { node_id: node.node_id, adapter_number: port.adapter_number, port_number: port.port_number }
      }
      const [first, second] = [endOf(from), endOf(to)]
      if (first === undefined || second === undefined) return []
      for (const port of taken) free.splice(free.indexOf(port), 1)
      return [{ link, ends: [first, second] }]
    })
}

/** Links that got a port of another number, such as `eth1 is now Ethernet0`. */
export function movedPorts(old: LabNode, node: LabNode, moved: readonly Moved[]): string[] {
  return moved.flatMap(({ link, ends }) =>
    link.nodes.flatMap((end, index) => {
      const [before, at] = [old.ports.find((it) => isPort(it, end)), ends[index]]
      const now = at && node.ports.find((it) => isPort(it, at))
      if (end.node_id !== old.node_id || before === undefined || now === undefined) return []
      return numberOf(before) === numberOf(now) ? [] : `${before.name} is now ${now.name}`
    }),
  )
}

/** What became of the links of a replaced node, for people; empty: they are at ports of the same numbers. */
export function replacedText({ lostLinks, portChanges }: ReplacedNode): string {
  const lost = lostLinks === 0 ? [] : [`${counted(lostLinks, 'link')} left out, as it has no more ports`]
  return [...portChanges, ...lost].join(', ')
}
