import type { DynamipsCreate, DynamipsNode, DynamipsUpdate } from './dynamips.ts'
import type { HypervisorCreate, HypervisorNode, HypervisorUpdate } from './hypervisor.ts'
import type { IouCreate, IouNode, IouUpdate } from './iou.ts'
import type { MachineEmulatorCreate, MachineEmulatorNode, MachineEmulatorUpdate } from './machine-emulator.ts'
import type { Nio } from './nio.ts'
import type { PcCreate, PcNode, PcUpdate } from './pc.ts'

/** What each kind of node is shown as, created with and changed by. A new kind is one more line. */
export interface NodeTypes {
  pc: { node: PcNode; create: PcCreate; update: PcUpdate }
  iou: { node: IouNode; create: IouCreate; update: IouUpdate }
  hypervisor: { node: HypervisorNode; create: HypervisorCreate; update: HypervisorUpdate }
  'machine-emulator': { node: MachineEmulatorNode; create: MachineEmulatorCreate; update: MachineEmulatorUpdate }
  dynamips: { node: DynamipsNode; create: DynamipsCreate; update: DynamipsUpdate }
}

/** The kinds of node this version runs. */
export type NodeKindName = keyof NodeTypes
export const nodeKinds: readonly NodeKindName[] = ['pc', 'iou', 'hypervisor', 'machine-emulator', 'dynamips']

/** NIO types that each kind takes. */
export const nioTypesOf: Readonly<Record<NodeKindName, readonly Nio['type'][]>> = {
  pc: ['nio_udp', 'nio_generic_ethernet', 'nio_ethernet', 'nio_tap'],
  iou: ['nio_udp', 'nio_generic_ethernet', 'nio_ethernet', 'nio_tap'],
  hypervisor: ['nio_udp', 'nio_generic_ethernet', 'nio_ethernet', 'nio_tap'],
  'machine-emulator': ['nio_udp', 'nio_generic_ethernet', 'nio_ethernet', 'nio_tap'],
  dynamips: [],
}

/** Whether nodes of a kind can be linked. Others are no part of a network, and no client is to take them for one. */
export const isLinkable = (kind: NodeKindName): boolean => nioTypesOf[kind].length > 0

/** A node, its create and its update input; of any kind when none is named. */
export type Node<K extends NodeKindName = NodeKindName> = NodeTypes[K]['node']
export type NodeCreate<K extends NodeKindName = NodeKindName> = NodeTypes[K]['create']
export type NodeUpdate<K extends NodeKindName = NodeKindName> = NodeTypes[K]['update']

/** Where a node is. */
export interface NodeRef<K extends NodeKindName = NodeKindName> {
  readonly project_id: string
  readonly kind: K
  readonly node_id: string
}
