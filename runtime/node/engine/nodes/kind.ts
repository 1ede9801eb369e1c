import type { Static, TObject } from '@sinclair/typebox'
import type { PortRef } from '../../../../src/host-agent.ts'
import type { LineType } from '../../../../src/model/capture.ts'
import type { EventPayload } from '../../../../src/model/event.ts'
import type { Action, KindDescriptor } from '../../../../src/model/kinds/kind.ts'
import type { NodeStatus } from '../../../../src/model/schema/node-fields.ts'
import type { Exit, NetioPort, UnitSpec } from '../../keeper/protocol/protocol.ts'
import type { EngineNodeRecord } from './record.ts'

/** The properties in the records of a kind, beside the common ones. */
export type Properties = Readonly<Record<string, unknown>>

/** A node, as a kind sees it; `P`: its properties. */
export interface KindNode<P = Properties> {
  /** `{kind}:{node_id}`, unique on the host. */
  readonly key: string
  readonly record: Omit<EngineNodeRecord, 'properties'> & { properties: P }
  readonly projectId: string
  /** Absolute path. */
  readonly projectPath: string
  readonly status: NodeStatus
  /** Absolute path; the directory exists from the creation of the node on. */
  readonly directory: string
  /** The other nodes of the project, of the same kind. */
  readonly siblings: readonly KindNode<P>[]
}

/** The UDP ports of the private socket pair of a port: of the guest, and of the switch. */
export type PortWire = { readonly guest_port: number; readonly switch_port: number }

/** How the keeper runs a node. */
export interface Launch {
  readonly run: UnitSpec['run']
  readonly command_line: string
  /** Events for the user. */
  readonly notices?: readonly EventPayload[]
  /** A hint for the user when the program ends at once. */
  readonly hint?: string | undefined
}

/**
 * A kind on this host; the common lifecycle is in nodes/. `P`: the properties in its records, `D`: its descriptor. Members are
 * methods, because a list of kinds needs bivariant parameters.
 */
export interface NodeKind<P extends Properties = Properties, D extends KindDescriptor = KindDescriptor> {
  readonly descriptor: D
  /** The schema of its properties; each has a default or is optional. */
  readonly schema: TObject & { readonly static: P }
  /** Time between SIGTERM and SIGKILL, ms. */
  readonly stopGraceMs: number
  /** Control of running guests. Default: a process that is started and killed. */
  readonly control?: GuestControl<P>
  /** Whether its processes can be paused by SIGSTOP; for a kind without `control`. */
  readonly canBeHeld?: boolean
  /** For nodes with a number that is unique on the host, beside their ports. */
  readonly identity?: HostIdentity<P>
  /** Default: each port is an Ethernet port on a private pair of UDP sockets. */
  readonly wiring?: PortWiring<P>
  readonly cleanup?: Cleanup<P>
  readonly actions?: NodeActions<D, P>
  readonly computeActions?: ComputeActions<D>

  /** The ports of a node; they may depend on its settings. */
  ports(node: KindNode<P>): readonly PortRef[]
  /** The node in the form of API v2. */
  view(node: KindNode<P>): Static<D['node']>
  /** Applies the settings of a new node, and writes the files of its directory. */
  prepare(node: KindNode<P>, input: Static<D['create']>): Promise<void>
  /** The changes that a create with the id of an existing node makes. Default: all of its fields. */
  adopt?(input: Static<D['create']>, node: KindNode<P>): Static<D['update']>
  /**
   * Applies changes of the kind, or none when it throws. `before` is the old name of the node. Properties are replaced and not
   * mutated, so that the caller can restore them.
   */
  update(node: KindNode<P>, changes: Static<D['update']>, before: string): Promise<void>
  /** Prepares a start; 409 with the reason when the node cannot start. The signal aborts when the node is stopped meanwhile. */
  launch(node: KindNode<P>, wires: ReadonlyMap<string, PortWire>, signal: AbortSignal): Promise<Launch>
  /**
   * Makes `destination` a copy of `source`. `copy` copies the directory, and lets `amend` change the copy before it is put in
   * place. Unique settings stay those of `destination`. 409, without a change, when the copy is not possible.
   */
  duplicate(
    source: KindNode<P>,
    destination: KindNode<P>,
    copy: (amend?: (directory: string) => Promise<void>) => Promise<void>,
  ): Promise<void>
  /**
   * Writes what a node keeps elsewhere into a directory: its own, while it is stopped, or a copy of that, also while it runs. Does nothing
   * where its own has it already. The number of bytes; 409, 507.
   */
  gather?(node: KindNode<P>, directory: string, signal?: AbortSignal): Promise<number>
  /** Names or paths of the images in the settings of a node. */
  images?(node: KindNode<P>): readonly string[]
  /** A hint for the user after an exit. */
  hint?(exit: Exit): string | undefined
  /** The port of the screen of a node whose console is not a screen; null: none. */
  screenPort?(node: KindNode<P>): number | null
  /** The command of a further console of a running node; undefined: it has none of this name. */
  consoleWords?(node: KindNode<P>, name: string): readonly string[] | undefined
  /** The command that succeeds in a node that is ready: a line of a client, or that of its image. Undefined: there is none. */
  readyCommand?(node: KindNode<P>, line: string | undefined): Promise<ReadyCommand | undefined>
  /** Labels of this compute (`FoundLabels`). */
  labels?(): Promise<readonly string[]>
  /** Capabilities of this compute, as the descriptor declares. */
  capabilities?(): Promise<Readonly<Record<string, unknown>>>

  /** Reserves unique numbers for a node under creation; synchronous, so that siblings differ. 409 when none is free. */
  onNew?(node: KindNode<P>, input: Static<D['create']>): void
  /** Reserves the unique numbers of a node that is opened from its record. */
  onOpened?(node: KindNode<P>): void
  /** The node is created, and its record is saved. */
  onCreated?(node: KindNode<P>): Promise<void>
  /** Applies the input of a start request. */
  onStarting?(node: KindNode<P>, input: unknown): Promise<void>
  /** A process of the node was started (`isNew`), or found running. */
  onStarted?(node: KindNode<P>, isNew: boolean): void
  /** Cleans up after the exit of the process, or after a start that failed behind `launch`. Never throws. */
  onExited?(node: KindNode<P>): Promise<void>
  /** Writes data of the node to disk when its project is committed. */
  onCommit?(node: KindNode<P>): Promise<void>
  /** Cancels running actions, because the service stops. */
  onClosing?(): Promise<void>
  /** The service has stopped or left its nodes. */
  onClosed?(): Promise<void>
}

/** A command that runs in a node. */
export interface ReadyCommand {
  readonly words: readonly string[]
  /** Longest run, ms. */
  readonly ms: number
}

/** A number of a node that must be unique on the host, and that other programs may use, too. */
export interface HostIdentity<P> {
  /** Whether another program uses it, so that the node cannot start. */
  isTaken(node: KindNode<P>): boolean
  /** Gives the node another number, and returns an event for the user. 409 when none is free. */
  change(node: KindNode<P>): EventPayload
  /** Reserves the number of a port that the keeper has; its node may be opened later or be an orphan. */
  adoptPort(key: string, port: NetioPort): void
}

/** Ports that differ from Ethernet ports on a pair of UDP sockets. */
export interface PortWiring<P> {
  /** The line type of a port. Default: Ethernet. */
  lineOf?(node: KindNode<P>, port: PortRef): LineType
  /** Offsets of further UDP ports that the program binds. Default: none. */
  portsBeside?(node: KindNode<P>, isRunning: boolean): readonly number[]
  /** The IOU socket of a port, in place of a pair of UDP sockets. */
  netioOf?(node: KindNode<P>, port: PortRef): NetioPort
  /** Whether the program makes a TAP device for the port, and hands it over. */
  isTap?(node: KindNode<P>, port: PortRef): boolean
  /** The port of the bridge that the node is. */
  bridgePortOf?(node: KindNode<P>, port: PortRef): number
  /** Opens what is behind a port of a bridge that runs, when something is linked to the port; 404, 409. */
  connect?(node: KindNode<P>, port: PortRef): Promise<void>
  /** Closes it: nothing is linked to the port any more. */
  disconnect?(node: KindNode<P>, port: PortRef): Promise<void>
  /** 409 when a port cannot be linked. */
  requireFree?(node: KindNode<P>, port: PortRef): Promise<void>
}

interface Removal {
  readonly isDeleted: boolean
  /** Of a deleted node: its directory stays for now, so that the deletion can be undone. */
  readonly keepsFiles?: boolean
}

/** Cleanup of resources outside the record and the directory of a node. */
export interface Cleanup<P> {
  /** Cleans up after a killed service, for a node that was opened and does not run. */
  onIdle?(node: KindNode<P>): Promise<void>
  /** The node is deleted, or its project is closed; 409 when the cleanup fails. */
  onRemoved?(node: KindNode<P>, how: Removal): Promise<void>
  /** Retries a failed `onRemoved` later, when no client waits for it. Never throws. */
  deferredCleanup?(node: KindNode<P>, how: Removal): Promise<void>
  /** The directory of a deleted node is removed, which had stayed (`Removal.keepsFiles`). Never throws. */
  onFilesRemoved?(nodeId: string): Promise<void>
  /** A node that was never opened again is deleted with its directory. */
  onDiscarded?(record: KindNode<P>['record'], directory: string): Promise<void>
  /** Releases resources of unknown nodes, when all open projects are opened again after a start of the service. */
  reapOrphans?(isThere: (key: string) => boolean): Promise<void>
  /** Releases everything of a node that is gone. */
  dispose?(node: KindNode<P>): Promise<void> | void
}

/** A function type with bivariant parameters; see `NodeKind`. */
type Method<A extends readonly unknown[], R> = { run(...args: A): R }['run']

/** Actions on a node. They take the lock of the node themselves, so that a long one does not block other requests. */
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
  /** The node as it is now, also while another change has its lock. 404 when it is gone. */
  find(): Promise<KindNode<P>>
  /** Runs a function with the lock of the node. 404 when the node is gone, and 409 or 503 as for other changes. */
  exclusively<T>(run: (node: KindNode<P>, lifecycle: StartStop) => Promise<T>): Promise<T>
}

/** Starts and stops a node; the caller holds the lock. */
export type StartStop = { start(): Promise<void>; stop(): Promise<void> }

/** The process of a node. */
export interface GuestProcess {
  readonly pid: number
  /** Aborts when the process has ended. */
  readonly ended: AbortSignal
  /** Aborts when the service must not wait for the guest any longer. */
  readonly skipGracePeriod: AbortSignal
}

/** The state of a guest, with the reason of an unrequested change. */
export type GuestState = { readonly status: NodeStatus; readonly reason: string | null }

/** Why a guest is ended: `stop` waits for it, `close` ends the project, `remove` keeps nothing. */
export type StopReason = 'stop' | 'close' | 'remove'

/** Control of running guests. Callers hold the lock of the node. */
export interface GuestControl<P> {
  /**
   * Whether guests run outside the keeper. A guest that does not end then keeps its node started, and requests that do not fit its
   * state are refused.
   */
  readonly isOutsideKeeper?: boolean
  /** Starts the guest in a new process; throws with the reason when it fails. */
  begin(node: KindNode<P>, process: GuestProcess): Promise<void>
  /** Whether `begin` failed before the guest did anything, so that a second process may succeed. */
  startsAgain?(error: unknown): boolean
  /** Connects to a guest that an earlier service started. */
  adopt(node: KindNode<P>, process: GuestProcess): Promise<GuestState>
  /** Shuts the guest down, or saves it, with a timeout. The caller ends the process afterwards in any case. */
  endGuest(node: KindNode<P>, process: GuestProcess, how: StopReason): Promise<void>
  /** Releases resources after the end of the process. */
  release(node: KindNode<P>): void
  state(node: KindNode<P>): Promise<GuestState>
  suspend(node: KindNode<P>): Promise<void>
  resume(node: KindNode<P>): Promise<void>
  reset(node: KindNode<P>): Promise<void>
  /** Connects or disconnects the cable of a port (carrier). Never throws. */
  setCarrier(node: KindNode<P>, port: PortRef, isUp: boolean): Promise<void>
  /** Runs a function while the guest does not change the files of the node. */
  withQuiescedGuest<T>(node: KindNode<P>, run: () => Promise<T>): Promise<T>
  /** 409 when a snapshot cannot keep the node as it runs. Default: its files are kept. */
  requireKeepable?(node: KindNode<P>): Promise<void>
  /** Writes the memory of a guest that is still into the copy of its directory, so that its next start goes on; the number of bytes. */
  keepMemory?(node: KindNode<P>, directory: string, signal: AbortSignal): Promise<number>
  /** A stopped node is to begin without its kept memory. */
  dropMemory?(node: KindNode<P>): Promise<void>
}

/** Callbacks of a kind. */
export interface KindListener {
  /** The state of a guest may have changed. */
  changed(key: string): void
  /** The view of a node has changed without a request. */
  updated(key: string): void
  /** An event for the user. */
  happened(key: string, payload: EventPayload): void
  /** A warning about the start of a node that was found after it. */
  warned(key: string, message: string): void
  /** Runs a function with the lock of the node, unless the node is gone. */
  queued(key: string, run: () => Promise<void>): void
}
