import type { NodeKindName } from '../../../src/model/kinds/node.ts'
import type { KindNode, NodeKind } from '../engine/nodes/kind.ts'
import { nodeDrivers } from './index.ts'
import type { DriverHost, NodeDriver } from './node-driver.ts'

/** Timeouts for tests, by kind and name, ms. */
export type KindTimeouts = Readonly<Partial<Record<NodeKindName, Readonly<Record<string, number>>>>>

interface OpenKindsOptions extends Omit<DriverHost, 'settings' | 'timeouts' | 'nodes'> {
  readonly timeouts: KindTimeouts | undefined
  /** The settings in force of a kind. */
  readonly settingsOf: (driver: NodeDriver) => Readonly<Record<string, unknown>>
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
  const open = async (driver: NodeDriver, name: NodeKindName) => {
    const ofKind = () => [...nodes()].filter(({ record }) => record.kind === name)
    const own = { settings: () => settingsOf(driver), timeouts: timeouts[name] ?? {}, nodes: ofKind }
    return [name, await driver.open({ ...host, ...own })] as const
  }
  const opened = await Promise.all(nodeDrivers.map((driver) => open(driver, driver.descriptor.name)))
  return Object.fromEntries(opened) as Record<NodeKindName, NodeKind>
}
