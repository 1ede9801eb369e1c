import type { MetricFamily } from '../../../../src/model/metrics.ts'
import type { EngineNode } from '../../engine/nodes/engine-node.ts'
import type { KeeperLink } from '../../engine/nodes/keeper-link.ts'
import type { PortReport, Verdict } from '../../keeper/protocol/protocol.ts'

/** Timeout of a scrape for the keeper, ms. */
const keeperMs = 1000
const verdicts: readonly Verdict[] = ['ok', 'one_way', 'silent', 'peer_unreachable', 'suspended']

/** The traffic of each node, the sum of its ports, and the states of the links; empty when the keeper does not answer. */
export async function packetMetrics(
  keeper: Pick<KeeperLink, 'isUp' | 'call'>,
  nodes: ReadonlyMap<string, EngineNode>,
): Promise<MetricFamily[]> {
  if (!keeper.isUp) return []
  const { ports } = await keeper.call('port.report', {}, keeperMs).catch(() => ({ ports: [] }))
  const sums = new Map<EngineNode, Sum>()
  for (const report of ports) {
    const node = nodes.get(report.key.split('/')[0] ?? '')
    if (node === undefined) continue
    const sum = sums.get(node) ?? { out: 0, in: 0, outBytes: 0, inBytes: 0, dropped: new Map() }
    add(sum, report)
    sums.set(node, sum)
  }
  return [
    directions('patchbay_node_frames_total', 'Frames of a node; out: sent by the node.', sums, ['out', 'in']),
    directions('patchbay_node_bytes_total', 'Bytes of the frames of a node.', sums, ['outBytes', 'inBytes']),
    {
      name: 'patchbay_node_frames_dropped_total',
      help: 'Frames to or from a node that were dropped, by reason; reasons that never occurred are left out.',
      type: 'counter',
      samples: [...sums].flatMap(([node, { dropped }]) =>
        [...dropped].map(([reason, value]) => ({ labels: { ...labelsOf(node), reason }, value })),
      ),
    },
    {
      name: 'patchbay_links',
      help: 'NIOs by the verdict on their link.',
      type: 'gauge',
      samples: verdicts.map((link) => ({ labels: { link }, value: ports.filter((port) => port.link === link).length })),
    },
  ]
}

type Sum = { out: number; in: number; outBytes: number; inBytes: number; readonly dropped: Map<string, number> }

function add(sum: Sum, { counters }: PortReport): void {
  sum.out += counters.out_frames
  sum.in += counters.in_frames
  sum.outBytes += counters.out_bytes
  sum.inBytes += counters.in_bytes
  for (const [reason, count] of Object.entries(counters.dropped)) {
    if (count > 0) sum.dropped.set(reason, (sum.dropped.get(reason) ?? 0) + count)
  }
}

function directions(
  name: string,
  help: string,
  sums: ReadonlyMap<EngineNode, Sum>,
  [out, into]: readonly ['out', 'in'] | readonly ['outBytes', 'inBytes'],
): MetricFamily {
  const samples = [...sums].flatMap(([node, sum]) => [
    { labels: { ...labelsOf(node), direction: 'out' }, value: sum[out] },
    { labels: { ...labelsOf(node), direction: 'in' }, value: sum[into] },
  ])
  return { name, help, type: 'counter', samples }
}

const labelsOf = ({ projectId, record: { kind, node_id, name } }: EngineNode) => ({
  project_id: projectId,
  kind,
  node_id,
  name,
})
