import type { LabLink, LabLinkEnd, LabNode, LabTemplate, Patchbay } from '../../../src/client/patchbay.ts'
import { freePorts, isPort, linksAt } from '../map/ports.ts'

/** A node in place of another one, and how many links it has no ports for. */
export interface ReplacedNode {
  readonly node: LabNode
  readonly lostLinks: number
}

/**
 * Puts a node of another type in place of a node: with its name, its place, and its links, as far as there are ports for them. The old node
 * goes only when the new one is there.
 */
export async function replaceNode(client: Patchbay, old: LabNode, template: LabTemplate): Promise<ReplacedNode> {
  const { project_id, name, x, y } = old
  const params = { project_id }
  const links = linksAt(await client.call('GET /v2/projects/{project_id}/links', { params }), old.node_id)
  const made = await client.call('POST /v2/projects/{project_id}/templates/{template_id}', {
    params: { ...params, template_id: template.template_id },
    body: { x, y },
  })
  await client.call('DELETE /v2/projects/{project_id}/nodes/{node_id}', { params: { ...params, node_id: old.node_id } })
  const node = await client.call('PUT /v2/projects/{project_id}/nodes/{node_id}', {
    params: { ...params, node_id: made.node_id },
    body: { name },
  })
  const moved = relinked(old, node, links)
  for (const { ends, link } of moved) {
    const { filters, filters_ab, filters_ba, suspend } = link
    await client.call('POST /v2/projects/{project_id}/links', {
      params,
      body: { nodes: ends, name: link.name, filters, filters_ab, filters_ba, suspend },
    })
  }
  return { node, lostLinks: links.length - moved.length }
}

/** The links of a node at the ports of another one: in the order of the ports, each at the first free port of its line type. */
export function relinked(
  old: LabNode,
  node: LabNode,
  links: readonly LabLink[],
): { readonly link: LabLink; readonly ends: [LabLinkEnd, LabLinkEnd] }[] {
  const placeOf = (link: LabLink) =>
    old.ports.findIndex((port) => link.nodes.some((end) => end.node_id === old.node_id && isPort(port, end)))
  const free = freePorts(node, [])
  return links
    .toSorted((a, b) => placeOf(a) - placeOf(b))
    .flatMap((link) => {
      const [from, to] = link.nodes
      if (from === undefined || to === undefined) return []
      const taken: (typeof free)[number][] = []
      const endOf = ({ node_id, adapter_number, port_number }: LabLinkEnd): LabLinkEnd | undefined => {
        if (node_id !== old.node_id) return { node_id, adapter_number, port_number }
        const port = free.find((it) => it.link_type === link.link_type && !taken.includes(it))
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
