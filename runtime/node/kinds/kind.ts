import type { PortRef } from '../../../src/host-agent.ts'
import type { Happening } from '../../../src/model/event.ts'
import type { Node, NodeCreate, NodeKindName, NodeStatus, NodeUpdate } from '../../../src/model/node.ts'
import type { UnitSpec } from '../keeper/protocol.ts'
import type { NodeRecord } from '../nodes/record.ts'

/** What a kind sees of a node. */
export interface KindNode {
  readonly record: NodeRecord
  readonly projectId: string
  readonly status: NodeStatus
  /** Absolute; it exists from the node's creation on. */
  readonly directory: string
  /** The other nodes of the project, of the same kind. */
  readonly siblings: readonly KindNode[]
}

/** The two ends of the private socket pair of a port. */
export interface Wire {
  readonly guest_port: number
  readonly switch_port: number
}

/** What is to be run for a node, and how it is shown. */
export interface Launch {
  readonly run: UnitSpec['run']
  readonly command_line: string
}

/** What is particular to one emulator; everything else of the life cycle is in nodes/. */
export interface NodeKind {
  readonly kind: NodeKindName
  /** How long a polite stop may take before the process is killed, ms. */
  readonly stopGraceMs: number
  /** Whether suspend and resume do something. */
  readonly canSuspend: boolean
  /** Its ports; they may depend on its settings. */
  ports(record: NodeRecord): readonly PortRef[]
  /** Properties of a new node; without waiting, so that what must be unique among siblings is. 409 when nothing is left. */
  properties(siblings: readonly KindNode[]): Record<string, unknown>
  /** Writes what the new node's directory must hold. */
  prepare(node: KindNode, input: NodeCreate): Promise<void>
  /** Applies the changes that only the kind knows; `before` is the name that it had. */
  update(node: KindNode, changes: NodeUpdate, before: string): Promise<void>
  /** Checks and makes what `start` needs; 409 with the reason when it cannot run. */
  launch(node: KindNode, wires: ReadonlyMap<string, Wire>): Promise<Launch>
  /** A node as the interface shows it. */
  view(node: KindNode): Node
  /** Properties of the copy that `duplicate` makes: what must be unique stays the destination's. */
  duplicated(source: NodeRecord, destination: NodeRecord): Record<string, unknown>
  /** What to tell when the node ended by itself; undefined when that is nothing to worry about. */
  crashed?(node: KindNode, code: number | null): Happening | undefined
}
