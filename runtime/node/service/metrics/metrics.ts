import type { EventLog } from '../../../../src/fleet/events/event-log.ts'
import { nodeKinds } from '../../../../src/model/kinds/node.ts'
import { type MetricFamily, single } from '../../../../src/model/metrics.ts'
import type { NodeStatus } from '../../../../src/model/schema/node-fields.ts'
import type { EngineNode } from '../../engine/nodes/engine-node.ts'
import type { KeeperLink } from '../../engine/nodes/keeper-link.ts'
import type { PortAllocator } from '../../engine/ports/allocator.ts'
import type { Projects } from '../../engine/projects/projects.ts'
import { packetMetrics } from './packet-metrics.ts'
import { processMetrics, versionFamily } from './process-metrics.ts'

const statuses: readonly NodeStatus[] = ['started', 'stopped', 'suspended']
const pools = ['console', 'udp'] as const

/** The parts of the agent with figures. */
export interface MetricSources {
  readonly version: string
  readonly projects: Pick<Projects, 'openCount'>
  readonly nodes: ReadonlyMap<string, EngineNode>
  readonly events: Pick<EventLog, 'figures'>
  readonly ports: Pick<PortAllocator, 'used' | 'size'>
  readonly keeper: Pick<KeeperLink, 'isUp' | 'call'>
}

/** The figures of this host, read at each scrape. A scrape waits for no project, and at most 1 s for the keeper. */
export async function hostMetrics(sources: MetricSources): Promise<MetricFamily[]> {
  const { version, projects, nodes, events, ports, keeper } = sources
  const lab = [
    versionFamily(version),
    single('patchbay_projects_open', 'gauge', 'Projects that are open.', projects.openCount),
    nodeFamily(nodes.values()),
    ...portFamilies(ports),
    single('patchbay_keeper_up', 'gauge', '1 while the process that holds the nodes is there.', keeper.isUp ? 1 : 0),
  ]
  return [...lab, ...(await packetMetrics(keeper, nodes)), ...eventFamilies(events), ...(await processMetrics())]
}

/** Includes zeros: a missing value would be a gap in a graph. */
function nodeFamily(nodes: Iterable<{ record: { kind: string }; status: NodeStatus }>): MetricFamily {
  const all = [...nodes]
  const count = (kind: string, status: NodeStatus) =>
    all.filter((node) => node.record.kind === kind && node.status === status).length
  const samples = nodeKinds.flatMap((kind) =>
    statuses.map((status) => ({ labels: { kind, status }, value: count(kind, status) })),
  )
  return { name: 'patchbay_nodes', help: 'Nodes of open projects, by kind and status.', type: 'gauge', samples }
}

function portFamilies(ports: MetricSources['ports']): MetricFamily[] {
  const family = (name: string, help: string, value: (pool: (typeof pools)[number]) => number): MetricFamily => {
    const samples = pools.map((pool) => ({ labels: { pool }, value: value(pool) }))
    return { name, help, type: 'gauge', samples }
  }
  return [
    family('patchbay_ports', 'Ports of a range that can be given out, used or not.', (pool) => ports.size(pool)),
    family('patchbay_ports_used', 'Ports of a range that are in use.', (pool) => ports.used(pool).length),
  ]
}

const eventFamilies = ({ figures }: MetricSources['events']): MetricFamily[] => [
  single('patchbay_events_emitted_total', 'counter', 'Events of all projects.', figures.emitted),
  single('patchbay_feeds_open', 'gauge', 'Feeds of events that are open.', figures.feeds),
  single('patchbay_feed_resyncs_total', 'counter', 'Feeds that asked for more history than is kept.', figures.resyncs),
  single('patchbay_feed_events_dropped_total', 'counter', 'Events that slow feeds lost.', figures.dropped),
]
