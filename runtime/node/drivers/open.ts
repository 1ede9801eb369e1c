import type { NodeKindName } from '../../../src/model/kinds/node.ts'
import type { KindNode, NodeKind } from '../engine/nodes/kind.ts'
import type { HostKind, KindHost } from './host-kind.ts'
import { hostKinds } from './index.ts'

/** Timeouts for tests, by kind and name, ms. */
export type KindTimeouts = Readonly<Partial<Record<NodeKindName, Readonly<Record<string, number>>>>>

interface OpenKindsOptions extends Omit<KindHost, 'settings' | 'timeouts' | 'nodes'> {
  readonly timeouts: KindTimeouts | undefined
  /** The settings in force of a kind. */
  readonly settingsOf: (kind: HostKind) => Readonly<Record<string, unknown>>
  /** All nodes of this host. */
  readonly nodes: () => Iterable<KindNode>
}

/** Opens all kinds. */
export async function openKinds({
  timeouts = {},
  settingsOf,
  nodes,
  ...host
}: OpenKindsOptions): Promise<Readonly<Record<NodeKindName, NodeKind>>> {
  const open = async (kind: HostKind, name: NodeKindName) => {
    const ofKind = () => [...nodes()].filter(({ record }) => record.kind === name)
    const own = { settings: () => settingsOf(kind), timeouts: timeouts[name] ?? {}, nodes: ofKind }
    return [name, await kind.open({ ...host, ...own })] as const
  }
  const opened = await Promise.all(hostKinds.map((kind) => open(kind, kind.descriptor.name)))
  return Object.fromEntries(opened) as Record<NodeKindName, NodeKind>
}
