import type { LabLink, LabNode } from '../../../src/client/patchbay.ts'
import { omit } from '../../../src/lib/omit.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import { type CommandContext, clientOf } from './client.ts'
import type { CommandInput, serviceFlags } from './command.ts'
import { stopText } from './counts.ts'
import type { CommandOutcome } from './outcome.ts'
import {
  computeNames,
  endsText,
  labOf,
  linksOf,
  linkText,
  type NodeTarget,
  nameOrder,
  nodeOf,
  nodesOf,
  runningText,
  stateOf,
} from './targets.ts'

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
      if (links.length > 0) {
        const { impairmentText } = await import('./impairment.ts')
        const rows = links.map((link) => [...linkRow(link, nodes), impairmentText(link)])
        parts.push(tableOf(['LINK', 'STATE', 'IMPAIRMENT'], rows))
      }
      const reasons = [
        ...nodes.filter(({ status_reason }) => status_reason).map((it) => `${it.name}: ${it.status_reason}`),
        ...links
          .filter(({ verdict_reason }) => verdict_reason)
          .map((it) => `${linkText(it, nodes)}: ${it.verdict_reason}`),
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

const linkRow = (link: LabLink, nodes: readonly LabNode[]) => [
  linkText(link, nodes),
  link.suspend ? 'suspended' : (link.verdict ?? '-'),
]

export const nodeJson = (node: LabNode) => ({
  name: node.name,
  node_id: node.node_id,
  kind: node.node_type,
  status: node.status,
  console: node.console,
  console_type: node.console_type,
  compute_id: node.compute_id,
})

export const linkJson = (link: LabLink, nodes: readonly LabNode[]) => ({
  link_id: link.link_id,
  ...(link.name != null && { name: link.name }),
  ends: endsText(link, nodes).split(' -- '),
  verdict: link.verdict,
  suspend: link.suspend,
  filters: link.filters,
  filters_ab: link.filters_ab,
  filters_ba: link.filters_ba,
})

function inspectNode({ lab, node }: NodeTarget, context: CommandContext): CommandOutcome {
  return {
    json: { lab, node },
    async text() {
      const { shown } = await import('./table.ts')
      const { ports, properties, compute_id } = node
      const facts = omit(node, 'ports', 'properties', 'compute_id', 'label', 'custom_adapters', 'kept')
      const compute = (await computeNames(context))(compute_id)
      const rows = Object.entries({ ...facts, compute, ...properties })
        .filter(([, value]) => value !== null && value !== '' && !(Array.isArray(value) && value.length === 0))
        .map(([key, value]) => [key, typeof value === 'object' ? JSON.stringify(value) : String(value)] as const)
      const width = Math.max(...rows.map(([key]) => key.length))
      const names = (ports ?? []).map(({ short_name }) => short_name).join(' ')
      return [...rows, ['ports', names] as const]
        .map(([key, value]) => `${key.padEnd(width)}  ${shown(value)}`)
        .join('\n')
    },
  }
}
