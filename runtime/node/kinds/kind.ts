import type { Static, TObject } from '@sinclair/typebox'
import type { PortRef } from '../../../src/host-agent.ts'
import type { Action, KindDescriptor } from '../../../src/kinds/kind.ts'
import type { LineType } from '../../../src/model/capture.ts'
import type { EventPayload } from '../../../src/model/event.ts'
import type { NodeStatus } from '../../../src/schema/node-fields.ts'
import type { Exit, NetioPort, UnitSpec } from '../keeper-protocol/protocol.ts'
import type { NodeRecord } from '../nodes/record.ts'

/** What the records of a kind keep beside what all have. */
export type Properties = Readonly<Record<string, unknown>>

/** What a kind sees of a node; `P`: its properties. */
export interface KindNode<P = Properties> {
  /** `{kind}:{node_id}`, unique on the host. */
  readonly key: string
  readonly record: Omit<NodeRecord, 'properties'> & { properties: P }
  readonly projectId: string
  /** Absolute. */
  readonly projectPath: string
  readonly status: NodeStatus
  /** Absolute; it exists from the node's creation on. */
  readonly directory: string
  /** The other nodes of the project, of the same kind. */
  readonly siblings: readonly KindNode<P>[]
}

/** The two ends of the private socket pair of a port. */
export interface PortWire {
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

/**
 * What is particular to one kind on this host; everything else of the life cycle is in nodes/. `P`: what its records keep, `D`: its
 * descriptor. Members are methods, also those of the groups: a list of kinds holds kinds with other properties.
 */
export interface NodeKind<P extends Properties = Properties, D extends KindDescriptor = KindDescriptor> {
  readonly descriptor: D
  /** What its records keep; each property has a default or is optional. */
  readonly schema: TObject & { readonly static: P }
  /** How long a polite stop may take before the process is killed, ms. */
  readonly stopGraceMs: number
  /** How running guests are controlled; absent when a guest is only started and ended. */
  readonly control?: GuestControl<P>
  /** Whether its program can be stopped where it is, and go on; for a kind without `control`. */
  readonly canBeHeld?: boolean
  /** Of nodes that do not run; absent when only their ports are theirs on the host. */
  readonly identity?: HostIdentity<P>
  /** Absent: every port is an Ethernet port, wired by a private pair of UDP sockets. */
  readonly wiring?: PortWiring<P>
  readonly cleanup?: Cleanup<P>
  readonly actions?: NodeActions<D, P>
  readonly computeActions?: ComputeActions<D>

  /** Its ports; they may depend on its settings. */
  ports(node: KindNode<P>): readonly PortRef[]
  /** A node as v2 shows it. */
  view(node: KindNode<P>): Static<D['node']>
  /** Applies what a new node is created with, and writes what its directory must hold. */
  prepare(node: KindNode<P>, input: Static<D['create']>): Promise<void>
  /** What a create with the id of a node that is there changes of it. Default: all that it names. */
  adopt?(input: Static<D['create']>, node: KindNode<P>): Static<D['update']>
  /**
   * Applies the changes that only the kind knows, all or (when it throws) none; `before` is the name that it had. Properties
   * are replaced, not changed in place, so that they can be put back.
   */
  update(node: KindNode<P>, changes: Static<D['update']>, before: string): Promise<void>
  /** Checks and makes what `start` needs; 409 with the reason when it cannot run. */
  launch(node: KindNode<P>, wires: ReadonlyMap<string, PortWire>): Promise<Launch>
  /**
   * Makes a node a copy, its directory by `copy`, which has the new directory amended before it takes the place of the old one;
   * what must be unique stays its own. 409 when it cannot be one, with nothing changed.
   */
  duplicate(
    source: KindNode<P>,
    destination: KindNode<P>,
    copy: (amend?: (directory: string) => Promise<void>) => Promise<void>,
  ): Promise<void>
  /** Names or paths of the images that its settings name; absent where nodes have none. */
  images?(node: KindNode<P>): readonly string[]
  /** What may help when a process ended like that. */
  hint?(exit: Exit): string | undefined
  /** Where its screen is, beside a console that is none; null: it has none. */
  screenPort?(node: KindNode<P>): number | null
  /** What it says of this compute, as its descriptor declares. */
  capabilities?(): Promise<Readonly<Record<string, unknown>>>

  /** A node is being made: takes what is to be its own, without waiting, so that it is unique among siblings. 409 when nothing is left. */
  onNew?(node: KindNode<P>): void
  /** A node is opened from its record: takes what is its own on the host again. */
  onOpened?(node: KindNode<P>): void
  /** The node is made, and its record written. */
  onCreated?(node: KindNode<P>): Promise<void>
  /** A start that brings something along begins. */
  onStarting?(node: KindNode<P>, input: unknown): Promise<void>
  /** A process of the node runs: it was started (`isNew`), or found running. */
  onStarted?(node: KindNode<P>, isNew: boolean): void
  /** The process has ended, or a start that `launch` had made ready failed: what is left is looked after. Never throws. */
  onExited?(node: KindNode<P>): Promise<void>
  /** The project is written to disk: so is what the node has only in a form of its own. */
  onCommit?(node: KindNode<P>): Promise<void>
  /** The service ends, and its nodes will be stopped or left: actions come to an end. */
  onClosing?(): Promise<void>
  /** Its nodes are stopped or left. */
  onClosed?(): Promise<void>
}

/** What a node is known by on its host, where another program may come to have the same. */
export interface HostIdentity<P> {
  /** Whether one has it, so that the node cannot start. */
  isTaken(node: KindNode<P>): boolean
  /** Gives the node another one; what its user should know. 409 when nothing is left. */
  change(node: KindNode<P>): EventPayload
  /** The keeper has a port of a node, by its key, that will be opened, or not. */
  adoptPort(key: string, port: NetioPort): void
}

/** How the ports of a kind are wired, where that is not as usual. */
export interface PortWiring<P> {
  /** What a port has a line for. Default: Ethernet. */
  lineOf?(node: KindNode<P>, port: PortRef): LineType
  /** What the program binds beside the UDP port of a port: so far above it. Default: nothing. */
  portsBeside?(node: KindNode<P>, isRunning: boolean): readonly number[]
  /** How a port is wired that is no private pair of UDP sockets. */
  netioOf?(node: KindNode<P>, port: PortRef): NetioPort
  /** 409 when nothing may be attached to a port. */
  requireFree?(node: KindNode<P>, port: PortRef): Promise<void>
}

/** What becomes of what a node has outside its record and its directory. */
export interface Cleanup<P> {
  /** It was opened, and does not run: what a service that was killed has left is looked after. */
  onIdle?(node: KindNode<P>): Promise<void>
  /** The node goes, for good or until its project is opened again: what is elsewhere of it goes, too. 409 when that fails. */
  onRemoved?(node: KindNode<P>, how: { readonly isDeleted: boolean }): Promise<void>
  /** What `onRemoved` could not do when no client could be told of it: it is done as soon as it can be. Never throws. */
  deferredCleanup?(node: KindNode<P>, how: { readonly isDeleted: boolean }): Promise<void>
  /** The record of a node that was not opened again, and whose directory goes: what is elsewhere of it goes, too. */
  onDiscarded?(record: KindNode<P>['record'], directory: string): Promise<void>
  /** All nodes that were open are opened again: what is kept for others is let go. */
  reapOrphans?(isThere: (key: string) => boolean): Promise<void>
  /** The node is gone. */
  dispose?(node: KindNode<P>): Promise<void> | void
}

/** A function that is compared as methods are: see `NodeKind`. */
type Method<A extends readonly unknown[], R> = { run(...args: A): R }['run']

/** Actions on a node. They wait for their turns themselves: one that takes minutes does not keep the node from its user. */
export type NodeActions<D, P> = D extends { actions: infer A }
  ? {
      readonly [N in keyof A]: A[N] extends Action<infer I, infer O>
        ? Method<[at: ActionTarget<P>, input: Static<I>, signal?: AbortSignal], Promise<Static<O>>>
        : never
    }
  : Readonly<Record<string, Method<[at: ActionTarget<P>, input: never, signal?: AbortSignal], Promise<unknown>>>>

export type ComputeActions<D> = D extends { computeActions: infer A }
  ? { readonly [N in keyof A]: A[N] extends Action<infer I, infer O> ? Method<[Static<I>], Promise<Static<O>>> : never }
  : Readonly<Record<string, Method<[input: never], Promise<unknown>>>>

export interface ActionTarget<P> {
  /** Runs something when it is the turn of the node; it may have gone by then. 404, and 409 or 503 as for any change of the node. */
  exclusively<T>(run: (node: KindNode<P>, lifeCycle: NodeLifeCycle) => Promise<T>): Promise<T>
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

/** Control of running guests. Callers hold the lock of the node. */
export interface GuestControl<P> {
  /**
   * Whether guests are run by a program that is not ours: one that does not end keeps its node started, and what does not fit its
   * state is refused.
   */
  readonly isForeign?: boolean
  /** Has the guest of a process that was just started run; throws with the reason when it does not. */
  begin(node: KindNode<P>, process: GuestProcess): Promise<void>
  /** Takes hold of a guest that an earlier service started. */
  adopt(node: KindNode<P>, process: GuestProcess): Promise<GuestState>
  /** Asks the guest to end, or saves it; bounded. The process is ended afterwards, whether this worked or not. */
  end(node: KindNode<P>, process: GuestProcess, how: StopReason): Promise<void>
  /** The process has ended: what was held of it is let go. */
  ended(node: KindNode<P>): void
  state(node: KindNode<P>): Promise<GuestState>
  suspend(node: KindNode<P>): Promise<void>
  resume(node: KindNode<P>): Promise<void>
  reset(node: KindNode<P>): Promise<void>
  /** Shows the guest a cable in the port, or none. Never throws. */
  setCarrier(node: KindNode<P>, port: PortRef, isUp: boolean): Promise<void>
  /** Runs something while the files of the node do not change. */
  whileStill<T>(node: KindNode<P>, run: () => Promise<T>): Promise<T>
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
