import { endsText, linkState, linkText, stateOf } from '../../../src/client/link-names.ts'
import type { LabLink, LabNode } from '../../../src/client/patchbay.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import { clientOf } from './client.ts'
import type { CommandInput, serviceFlags } from './command.ts'
import { stopText } from './durations.ts'
import { inspectNode } from './inspect-node.ts'
import type { CommandOutcome } from './outcome.ts'
import { computeNames, labOf, linksOf, nameOrder, nodeOf, nodesOf, runningText } from './targets.ts'

/** `patchbay inspect LAB[/NODE]`: the nodes and links of a lab, or one node. */
export async function inspect({
  args: [word = ''],
  flags,
  signal,
}: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const context = { client: await clientOf(flags), signal }
  if (word.includes('/')) return inspectNode(await nodeOf(word, context), context)
  const lab = await labOf(word, context)
  const [all, links] = await Promise.all([nodesOf(lab, context), linksOf(lab, context)])
  const nodes = all.toSorted((a, b) => nameOrder.compare(a.name, b.name))
  return {
    json: {
      lab: lab.name,
      project_id: lab.project_id,
      revision: lab.revision,
      ...(lab.stop_at !== undefined && { stop_at: lab.stop_at }),
      ...(lab.ttl_deletes && { ttl_deletes: true }),
      nodes: nodes.map(nodeJson),
      links: links.map((link) => linkJson(link, nodes)),
    },
    async text() {
      const { shown, tableOf } = await import('./table.ts')
      if (lab.status === 'closed') return `${shown(lab.name)} is closed; "patchbay start ${lab.name}" opens it`
      const parts = [
        `${shown(lab.name)}: ${runningText(nodes)}, ${counted(links.length, 'link')}${lab.stop_at === undefined ? '' : `; ${stopText(lab)}`}`,
      ]
      if (nodes.length > 0) {
        const nameOf = await computeNames(context)
        const rows = nodes.map((node) => nodeRow(node, nameOf(node.compute_id)))
        parts.push(tableOf(['NODE', 'KIND', 'STATE', 'CONSOLE', 'COMPUTE'], rows))
      }
      if (links.length > 0) parts.push(await linkTable(links, nodes))
      const reasons = [
        ...nodes.filter(({ status_reason }) => status_reason).map((it) => `${it.name}: ${it.status_reason}`),
        ...linkReasons(links, nodes),
      ]
      if (reasons.length > 0) parts.push(reasons.map((it) => shown(it)).join('\n'))
      return parts.join('\n\n')
    },
  }
}

const nodeRow = (node: LabNode, compute: string) => [
  node.name,
  node.node_type,
  stateOf(node),
  node.console === null ? '-' : `${node.console_type} ${node.console}`,
  compute,
]

/** The links of a lab as a table. */
export async function linkTable(links: readonly LabLink[], nodes: readonly LabNode[]): Promise<string> {
  const [{ impairmentText }, { tableOf }] = await Promise.all([
    import('../../../src/labfile/changed-impairment.ts'),
    import('./table.ts'),
  ])
  const rows = links.map((link) => [linkText(link, nodes), linkState(link), impairmentText(link)])
  return tableOf(['LINK', 'STATE', 'IMPAIRMENT'], rows)
}

/** Why no frames pass on links. */
export const linkReasons = (links: readonly LabLink[], nodes: readonly LabNode[]): string[] =>
  links.flatMap((link) => (link.verdict_reason ? [`${linkText(link, nodes)}: ${link.verdict_reason}`] : []))

export const nodeJson = (node: LabNode) => ({
  name: node.name,
  node_id: node.node_id,
  kind: node.node_type,
  status: node.status,
  state: stateOf(node),
  console: node.console,
  console_type: node.console_type,
  compute_id: node.compute_id,
})

export const linkJson = (link: LabLink, nodes: readonly LabNode[]) => ({
  link_id: link.link_id,
  ...(link.name != null && { name: link.name }),
  ends: endsText(link, nodes).split(' -- '),
  verdict: link.verdict,
  state: linkState(link),
  suspend: link.suspend,
  filters: link.filters,
  filters_ab: link.filters_ab,
  filters_ba: link.filters_ba,
})
