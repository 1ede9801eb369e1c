import type { PortRef } from '../../../src/host-agent.ts'
import type { NodeCreate, NodeKindName, NodeUpdate, NodeView } from '../../../src/kinds/node.ts'
import type { Line } from '../../../src/model/capture.ts'
import type { EventPayload } from '../../../src/model/event.ts'
import type { NodeStatus } from '../../../src/schema/node-fields.ts'
import type { Exit, NetioPort, UnitSpec } from '../keeper-protocol/protocol.ts'
import type { NodeRecord } from '../nodes/record.ts'
import type { Pool } from '../ports/allocator.ts'

/** What a kind sees of a node. */
export interface KindNode {
  /** `{kind}:{node_id}`, unique on the host. */
  readonly key: string
  readonly record: NodeRecord
  readonly projectId: string
  /** Absolute. */
  readonly projectPath: string
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
  /** What the user should know of it. */
  readonly notices?: readonly EventPayload[]
  /** What may help when the program ends at once. */
  readonly hint?: string | undefined
}

/** What a node is known by on its host, where another program may come to have the same. */
export interface HostIdentity {
  /** Whether one has it, so that the node cannot start. */
  isTaken(node: KindNode): boolean
  /** Gives the node another one; what its user should know. 409 when nothing is left. */
  change(node: KindNode): EventPayload
}

/** What is particular to one emulator; everything else of the life cycle is in nodes/. */
export interface NodeKind {
  readonly kind: NodeKindName
  /** How long a polite stop may take before the process is killed, ms. */
  readonly stopGraceMs: number
  /** How running guests are held; absent when a guest is only started and ended. */
  readonly guests?: Guests
  /** Of nodes that do not run; absent when only their ports are theirs on the host. */
  readonly identity?: HostIdentity
  /** Whether its program can be stopped where it is, and go on; for a kind without `guests`. */
  readonly canBeHeld?: boolean
  /** Its ports; they may depend on its settings. */
  ports(record: NodeRecord): readonly PortRef[]
  /** Where console ports of a type come from; undefined when there is none. Those of type telnet are the keeper's, others the emulator's. */
  consolePool(type: NodeRecord['console_type']): Pool | undefined
  /** Properties of a new node; without waiting, so that what must be unique among siblings is. 409 when nothing is left. */
  properties(node: KindNode): Record<string, unknown>
  /** What was read from a record, made fit for this version and this host. */
  restored(properties: Record<string, unknown>, node: KindNode): Record<string, unknown>
  /** What a port has a line for; absent: all of them are Ethernet. */
  lineOf?(record: NodeRecord, port: PortRef): Line
  /** What the program binds beside the UDP port of a port: so far above it. Absent: nothing. */
  portsBeside?(node: KindNode, isRunning: boolean): readonly number[]
  /** How a port is wired that is no private pair of UDP sockets. */
  netioOf?(record: NodeRecord, port: PortRef): NetioPort
  /** Applies what a new node is created with, and writes what its directory must hold. */
  prepare(node: KindNode, input: NodeCreate): Promise<void>
  /** The node is made, and its record written. */
  created?(node: KindNode): Promise<void>
  /** What a create with the id of a node that is there changes of it. */
  claimed(input: NodeCreate, node: KindNode): NodeUpdate
  /**
   * Applies the changes that only the kind knows, all or (when it throws) none; `before` is the name that it had. Properties
   * are replaced, not changed in place, so that they can be put back.
   */
  update(node: KindNode, changes: NodeUpdate, before: string): Promise<void>
  /** Checks and makes what `start` needs; 409 with the reason when it cannot run. */
  launch(node: KindNode, wires: ReadonlyMap<string, Wire>): Promise<Launch>
  /** Names or paths of the images that its settings name; absent where nodes have none. */
  images?(node: KindNode): readonly string[]
  /** A node as the interface shows it. */
  view(node: KindNode): NodeView
  /**
   * Makes a node a copy, its directory by `copy`, which has the new directory amended before it takes the place of the old one;
   * what must be unique stays its own. 409 when it cannot be one, with nothing changed.
   */
  duplicate(
    source: KindNode,
    destination: KindNode,
    copy: (amend?: (directory: string) => Promise<void>) => Promise<void>,
  ): Promise<void>
  /** It was opened, and does not run: what a service that was killed has left is looked after. */
  idle?(node: KindNode): Promise<void>
  /** A process of the node runs: it was started (`isNew`), or found running. */
  begun?(node: KindNode, isNew: boolean): void
  /** The process has ended, or a start that `launch` had made ready failed: what is left is looked after. Never throws. */
  over?(node: KindNode): Promise<void>
  /** The project is written to disk: so is what the node has only in a form of its own. */
  commit?(node: KindNode): Promise<void>
  /** What may help when a process ended like that. */
  hint?(exit: Exit): string | undefined
  /** The node goes, for good or until its project is opened again: what is elsewhere of it goes, too. 409 when that fails. */
  gone?(node: KindNode, how: { readonly isDeleted: boolean }): Promise<void>
  /** What `gone` could not do when nobody could be told of it: it is done as soon as it can be. Never throws. */
  left?(node: KindNode, how: { readonly isDeleted: boolean }): Promise<void>
  /** The record of a node that was not opened again, and whose directory goes: what is elsewhere of it goes, too. */
  abandoned?(record: NodeRecord, directory: string): Promise<void>
  /** Where its screen is, beside a console that is none; null: it has none. */
  screenPort?(node: KindNode): number | null
  /** 409 when nothing may be attached to a port. */
  requireFree?(node: KindNode, port: PortRef): Promise<void>
  /** The node is gone. */
  forget?(node: KindNode): Promise<void> | void
  /** The keeper has a port of a node, by its key, that will be opened, or not. */
  held?(key: string, port: NetioPort): void
  /** All nodes that were open are opened again: what is kept for others is let go. */
  strangers?(isThere: (key: string) => boolean): Promise<void>
  /** Takes what a start brings along. */
  beforeStart?(node: KindNode, input: unknown): Promise<void>
  /** The actions of its descriptor. */
  readonly actions?: NodeActions
  readonly computeActions?: ComputeActions
  /** What it says of this compute, as its descriptor declares. */
  capabilities?(): Promise<Readonly<Record<string, unknown>>>
  /** The service ends: its nodes will be stopped or left, and its actions come to an end. */
  onClosing?(): Promise<void>
  /** Its nodes are stopped or left. */
  onClosed?(): Promise<void>
}

/** Actions on a node. They wait for their turns themselves: one that takes minutes does not keep the node from its user. */
export type NodeActions = Readonly<
  Record<string, (at: ActionTarget, input: never, signal?: AbortSignal) => Promise<unknown>>
>
export type ComputeActions = Readonly<Record<string, (input: never) => Promise<unknown>>>

export interface ActionTarget {
  /** Runs something when it is the turn of the node; it may have gone by then. 404, and 409 or 503 as for any change of the node. */
  exclusively<T>(run: (node: KindNode, lifeCycle: NodeLifeCycle) => Promise<T>): Promise<T>
}

/** Starts and stops a node, within its turn. */
export interface NodeLifeCycle {
  start(): Promise<void>
  stop(): Promise<void>
}

/** The process of a node. */
export interface GuestProcess {
  readonly pid: number
  /** Aborts when the process has ended. */
  readonly ended: AbortSignal
  /** Aborts when nobody can wait any longer for what the guest does by itself. */
  readonly expedited: AbortSignal
}

/** What a guest does now, and why when nobody asked for that. */
export interface GuestState {
  readonly status: NodeStatus
  readonly reason: string | null
}

/** Why a guest is ended: it may be waited for, everything is closing, or nothing of it is to be left. */
export type StopReason = 'stop' | 'close' | 'remove'

/** A hold on running guests. Callers hold the lock of the node. */
export interface Guests {
  /**
   * Whether guests are run by a program that is not ours: one that does not end keeps its node started, and what does not fit its
   * state is refused.
   */
  readonly isForeign?: boolean
  /** Has the guest of a process that was just started run; throws with the reason when it does not. */
  begin(node: KindNode, process: GuestProcess): Promise<void>
  /** Takes hold of a guest that an earlier service started. */
  adopt(node: KindNode, process: GuestProcess): Promise<GuestState>
  /** Asks the guest to end, or saves it; bounded. The process is ended afterwards, whether this worked or not. */
  end(node: KindNode, process: GuestProcess, how: StopReason): Promise<void>
  /** The process has ended: what was held of it is let go. */
  ended(node: KindNode): void
  state(node: KindNode): Promise<GuestState>
  suspend(node: KindNode): Promise<void>
  resume(node: KindNode): Promise<void>
  reset(node: KindNode): Promise<void>
  /** Shows the guest a cable in the port, or none. Never throws. */
  setCarrier(node: KindNode, port: PortRef, isUp: boolean): Promise<void>
  /** Runs something while the files of the node do not change. */
  whileStill<T>(node: KindNode, run: () => Promise<T>): Promise<T>
}

/** What a kind tells by itself. */
export interface KindListener {
  /** The state of a guest may have changed. */
  changed(key: string): void
  /** The view of a node changed though nobody changed the node. */
  updated(key: string): void
  happened(key: string, payload: EventPayload): void
  /** Runs something when it is the turn of the node; not when it has gone by then. */
  queued(key: string, run: () => Promise<void>): void
}
