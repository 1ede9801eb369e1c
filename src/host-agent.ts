import type { CaptureStart, CaptureStarted, CaptureStream } from './model/capture.ts'
import type { ConsoleExpect, ConsoleMatch, NodeReady } from './model/console.ts'
import type {
  DirectLink,
  DirectLinkChanges,
  DirectLinkJoin,
  DirectLinkJoined,
  LinkPorts,
  LinkSettings,
} from './model/direct-link.ts'
import type { FeedItem } from './model/event.ts'
import type { FeedLimit } from './model/feed-limit.ts'
import type { Capabilities, Diagnosis, HostLoad, NetworkInterface, Ports, Reloaded, Version } from './model/host.ts'
import type { DiskCreate, DiskExtend, Image, ImageKindName, ImageUse } from './model/image.ts'
import type { Node, NodeCreate, NodeKindName, NodeRef, NodeUpdate } from './model/kinds/node.ts'
import type { LinkCandidates, LinkCheck, LinkCheckResult } from './model/link-check.ts'
import type { MetricFamily } from './model/metrics.ts'
import type { Project, ProjectCreate, ProjectFile, ProjectStatusFilter, ProjectUpdate } from './model/project.ts'
import type { ProjectSnapshot, RestoreStep } from './model/project-snapshot.ts'
import type { Filters } from './model/schema/filters.ts'
import type { Nio, NioChange, NioState } from './model/schema/nio.ts'
import type { FoundProgram } from './model/schema/program.ts'

/**
 * What a machine that runs emulators can do; the only thing the routes know of it.
 * Arguments and results are JSON values or web streams, so that an agent may be on another machine.
 * Every method may reject with ApiError; anything else that is thrown is a bug in the agent.
 * Ids given to an agent are lower-case UUIDs.
 */
export interface HostAgent {
  readonly host: HostFacts
  readonly projects: ProjectAgent
  readonly files: FileAgent
  readonly images: ImageAgent
  readonly nodes: NodeAgent
  readonly links: LinkAgent
  readonly linkChecks: LinkCheckAgent
  readonly snapshots: SnapshotAgent
  readonly events: EventAgent
}

/**
 * The computes of a fleet as one host: what a gateway answers itself, from the answers of its computes. It hands a request about one
 * project on instead; the operations on ports are for links between computes.
 */
export interface FleetAgent extends Pick<HostAgent, 'host' | 'images' | 'events'> {
  readonly projects: Pick<ProjectAgent, 'list' | 'create' | 'reserveUdpPort' | 'releaseUdpPort'>
  readonly nodes: Pick<NodeAgent, 'get' | 'nioState' | 'attachNio' | 'detachNio'>
}

/**
 * Who has chosen the host that a NIO leads to: the client, or the service or gateway itself (a link between computes). Default: the
 * client.
 */
export type NioOrigin = 'client' | 'service'

/** Facts about the machine and the service on it. */
export interface HostFacts {
  version(): Promise<Version>
  capabilities(): Promise<Capabilities>
  /** Sorted by name. */
  interfaces(): Promise<NetworkInterface[]>
  ports(): Promise<Ports>
  load(): Promise<HostLoad>
  /** Figures of the labs, and of the process that runs them. What is asked over HTTP is counted by the app. */
  metrics(): Promise<MetricFamily[]>
  doctor(signal?: AbortSignal): Promise<Diagnosis>
  /** 403 when the compute is not in local mode, 409 when the file is not valid (the old values stay). */
  reloadConfig(): Promise<Reloaded>
  /** What only computes that run a kind can do: one of the `computeActions` of its descriptor. */
  action(kind: NodeKindName, name: string, input: unknown, signal?: AbortSignal): Promise<unknown>
}

export interface ProjectAgent {
  /** The open projects, or those that are closed too. */
  list(status?: ProjectStatusFilter): Promise<Project[]>
  /** An open project, or a closed one with that as its status. 404. Everything else that is asked of a closed one is 404. */
  get(projectId: string): Promise<Project>
  /**
   * Opens a new project, or an old one that is on disk; `created` is false when it was open already (nothing is changed then).
   * 403 for a path this compute does not allow, 409 while the project is being closed, 507 when the disk is nearly full.
   */
  create(input: ProjectCreate): Promise<{ project: Project; created: boolean }>
  /** 403 for a path that may not be changed, 409 when nodes run in the old directory. */
  update(projectId: string, changes: ProjectUpdate): Promise<Project>
  /** Stops its nodes, releases their ports, forgets it; a temporary one is deleted from disk. */
  close(projectId: string): Promise<void>
  /** Closes it and deletes it from disk (only a directory that bears our marker). */
  remove(projectId: string): Promise<void>
  /** Writes everything to disk and removes what deleted v1 instances left behind. */
  commit(projectId: string): Promise<void>
  /**
   * Reserves a UDP port for a link of this project until the NIO that uses it goes. 409 when there is none left. `nodeId`: where a project
   * is on several computes, the port is one of the compute that has the node.
   */
  reserveUdpPort(projectId: string, nodeId?: string): Promise<number>
  /** Gives back a port that was reserved so and that no NIO uses yet. 404 when there is no such reservation. */
  releaseUdpPort(projectId: string, port: number, nodeId?: string): Promise<void>
}

/** Nodes and files of projects as they were, beside those that they have. All keep the ids of nodes. */
export interface SnapshotAgent {
  /** Those of an open or closed project, the oldest first. */
  list(projectId: string): Promise<ProjectSnapshot[]>
  /** Copies nodes and files of an open project. 409 for a node that cannot be kept as it runs, 507. A failure leaves nothing. */
  take(projectId: string, snapshotId: string): Promise<ProjectSnapshot>
  remove(projectId: string, snapshotId: string): Promise<void>
  /** One step of a restore. 409 when it is not its turn, or the project is open at an exchange; 507 and nothing changed. */
  restore(projectId: string, snapshotId: string, step: RestoreStep): Promise<void>
}

export interface FileAgent {
  /**
   * Every regular file except *.ghost; links are not followed out of the project. `sums: false`: sizes instead of MD5 sums. `snapshot`: the
   * files that this snapshot has instead; 404. `complete`: nodes first write what they keep outside the project; 409, also while one of them
   * runs, 507.
   */
  list(
    projectId: string,
    options?: { sums: boolean; snapshot?: string | undefined; complete?: boolean },
  ): Promise<ProjectFile[]>
  /** 403 for a path that leaves the project, 404 when there is no such file. `snapshot`: as this snapshot has it. */
  read(
    projectId: string,
    path: string,
    options?: { snapshot?: string | undefined; signal?: AbortSignal | undefined },
  ): Promise<StoredFile>
  /**
   * Writes beside, then renames, so that a reader sees the old or the new file. Parents are made when `parents`, else 404. `size`: the
   * bytes of the content, where they are known.
   */
  write(
    projectId: string,
    path: string,
    content: ReadableStream<Uint8Array>,
    options: { parents: boolean; size?: number; signal?: AbortSignal | undefined },
  ): Promise<void>
}

export interface StoredFile {
  readonly content: ReadableStream<Uint8Array>
  /** Bytes. */
  readonly size: number
  /** Milliseconds since 1970. */
  readonly modified: number
}

export interface ImageAgent {
  /** What nodes of the kind can be given: our own directory first, then the additional ones, each sorted by path. */
  list(kind: ImageKindName): Promise<Image[]>
  /** The same images, in any order, with the nodes of open projects that need them. */
  uses(kind: ImageKindName): Promise<ImageUse[]>
  /**
   * 403 for a name that leaves the directories of images, 409 with `image` when there is none, 416 when the image has no such
   * bytes. A range is not applied when the image is no longer the one that `onlyIf` (its entity tag, or the time it was
   * changed at as in `Last-Modified`) was of.
   */
  read(kind: ImageKindName, name: string, options: { range?: WantedRange; onlyIf?: string }): Promise<StoredImage>
  /**
   * Stores an image, or a part of one; it replaces the image of this name when it is complete and has the digests, never
   * before. A part that is broken off is kept as far as it came; a whole image is not. A later upload of the same
   * part takes over from an earlier one. 400 for a wrong digest (everything that came is dropped), 403 for a name that leaves
   * the images, 409 for a part that does not follow what is there, 413 for more than the limit, 507 when the disk is
   * nearly full.
   */
  write(
    kind: ImageKindName,
    name: string,
    content: ReadableStream<Uint8Array>,
    options: UploadOptions,
  ): Promise<UploadProgress>
  /**
   * Deletes an image. 403 for a name that leaves the images or is in an additional directory, 404 when there is none, 409 when a
   * node of an open project or another image needs it.
   */
  remove(kind: ImageKindName, name: string): Promise<void>
  /**
   * Gives an image another name in its directory; replaces nothing. The errors of `remove`; 400 for a name in another directory, or one
   * that no image of the kind has; 409 when another image has the name, or an upload by that name has begun.
   */
  rename(kind: ImageKindName, name: string, to: string): Promise<void>
  /**
   * Copies an image to this compute from another one of its fleet. Absent where images are not copied between computes.
   */
  replicate?(image: string): Promise<ReplicationOutcome>
  /** How much of an upload in parts has come. */
  progress(kind: ImageKindName, name: string, total: number): Promise<UploadProgress>
  /** The disk-image tools that were found, in the order of PATH. */
  diskTools(): Promise<FoundProgram[]>
  /**
   * 403 for a path that is not allowed, 409 when there is a file, no such tool, or the tool refuses; 507 when the disk is too
   * full for what is allocated at once. A failure leaves nothing behind.
   */
  createDisk(kind: ImageKindName, input: DiskCreate): Promise<void>
  /** 409 when there is no such image, no such tool, or the tool refuses. */
  extendDisk(kind: ImageKindName, input: DiskExtend): Promise<void>
}

/** Bytes of a file: from `first` to `last` (inclusive; absent: the end), or the `suffix` last ones. */
export type WantedRange = { readonly first: number; readonly last?: number } | { readonly suffix: number }

export interface StoredImage extends StoredFile {
  /** Entity tag, quoted; another one whenever the bytes may be others. */
  readonly etag: string
  /** The bytes that `content` has, when it is not all of them. */
  readonly part?: { readonly first: number; readonly last: number }
}

export interface UploadOptions {
  /** Bytes that were announced; absent when that is not known. */
  readonly size?: number
  /** Set when the content is a part: its first and last byte, and the size of the image. */
  readonly part?: { readonly first: number; readonly last: number; readonly total: number }
  /** What the complete image must have. */
  readonly digests: readonly Digest[]
  /** For a compute that has joined: the path at the gateway where the content is, in place of what is sent. */
  readonly contentAt?: string
}

/** The result of copying an image to a compute that lacks it; undefined: no other compute has it. */
export type ReplicationOutcome = 'copied' | { readonly refused: string } | undefined

export interface Digest {
  readonly algorithm: 'md5' | 'sha-256' | 'sha-512'
  /** Lower-case hexadecimal digits. */
  readonly hex: string
}

export interface UploadProgress {
  /** Bytes that are there, from the beginning. */
  readonly received: number
  /** Whether the image is stored. */
  readonly done: boolean
}

export interface NodeAgent {
  /** Nodes of one kind in a project. */
  list<K extends NodeKindName>(projectId: string, kind: K): Promise<Node<K>[]>
  /**
   * Never starts anything. An id that is known already: `existing: 'refuse'` -> 409, `'update'` -> the given fields are
   * applied and `created` is false. A create that fails leaves nothing behind. 409 for what the host does not have (an
   * image, an emulator, a free port). `addresses: 'stored'`: the node was stored before, and keeps MAC addresses that a new one
   * cannot have.
   */
  create<K extends NodeKindName>(
    projectId: string,
    kind: K,
    input: NodeCreate<K>,
    options: { existing: 'refuse' | 'update'; addresses?: 'stored' | undefined },
  ): Promise<{ node: Node<K>; created: boolean }>
  get<K extends NodeKindName>(ref: NodeRef<K>): Promise<Node<K>>
  /** Nothing is changed when one of the changes is refused. 409 for what cannot be changed while the node runs. */
  update<K extends NodeKindName>(ref: NodeRef<K>, changes: NodeUpdate<K>): Promise<Node<K>>
  /** Stops it first. `files: 'later'` leaves the directory until the project is committed or closed (v1); default: `now`. */
  remove(ref: NodeRef, options?: { files: 'now' | 'later' }): Promise<void>
  /**
   * Resolves when the node runs; one that runs is left alone, a suspended one goes on. 409 with the reason when it cannot run.
   * `input`: what the kind has a start bring along.
   */
  start<K extends NodeKindName>(ref: NodeRef<K>, input?: unknown): Promise<Node<K>>
  /** Resolves when its processes have ended; a stopped node is left alone. */
  stop<K extends NodeKindName>(ref: NodeRef<K>): Promise<Node<K>>
  /** Suspends a node; nodes of kinds that cannot be suspended go on running. 409 when the node does not react. */
  suspend<K extends NodeKindName>(ref: NodeRef<K>): Promise<Node<K>>
  /** 409 for a stopped node. */
  resume<K extends NodeKindName>(ref: NodeRef<K>): Promise<Node<K>>
  /** A hardware reset where the kind has one (a stopped node stays as it is then), else stop and start. */
  reload<K extends NodeKindName>(ref: NodeRef<K>): Promise<Node<K>>
  /**
   * Copies the directory and the settings into another node of the same kind, of this or another project; it must exist and be
   * stopped.
   */
  duplicate<K extends NodeKindName>(ref: NodeRef<K>, destinationId: string, project?: string): Promise<Node<K>>
  /**
   * Replaces what was attached. 400 for a type the kind does not take or a filter that is wrong, 403 for a host or device that is not
   * allowed, 404 for a missing port or device, 409 when `lport` or the device is taken, or a privilege is missing.
   */
  attachNio(ref: NodeRef, port: PortRef, nio: Nio, origin?: NioOrigin): Promise<Nio>
  /** Changes the attached NIO in place; absent members stay. 404 when nothing is attached. */
  updateNio(ref: NodeRef, port: PortRef, changes: NioChange): Promise<Nio>
  /** 404 when nothing is attached. Ends the captures of the port. */
  detachNio(ref: NodeRef, port: PortRef): Promise<void>
  /** Resolves when a NIO of the port could have these filters. 400 says what is wrong, 404 for a missing port, 409 without libpcap. */
  checkFilters(ref: NodeRef, port: PortRef, filters: Filters): Promise<void>
  /** The NIO with the state of its link. 404 when nothing is attached. */
  nioState(ref: NodeRef, port: PortRef): Promise<NioState>
  /** 400 for a link type that the port does not have, 409 when nothing is attached, it is captured already, or another capture writes that file. */
  startCapture(ref: NodeRef, port: PortRef, wanted: CaptureStart): Promise<CaptureStarted>
  /** Resolves when the file is complete; without a capture nothing is done. 409 when nothing is attached. */
  stopCapture(ref: NodeRef, port: PortRef): Promise<void>
  /**
   * What passes the port from now on until nothing is attached to it any more: classic pcap. 400 for a link type that the port does not have, 409 when
   * nothing is attached.
   */
  streamCapture(ref: NodeRef, port: PortRef, wanted: CaptureStream, signal: AbortSignal): Promise<CaptureSource>
  /** Ends the clients of the console of a node that runs, and listens for new ones; its guest does not notice. 409. */
  resetConsole(ref: NodeRef): Promise<void>
  /** Telnet clients of the consoles of a project. */
  telnetClients(projectId: string): Promise<number>
  /**
   * Types on the console, then waits for output: of what follows, and without `send` of the scroll-back too. 400 for a wrong
   * expression, 409 `not-in-time`, or when the node does not run or stops; 429 for too many waits at once.
   */
  expect(ref: NodeRef, wanted: ConsoleExpect, signal: AbortSignal): Promise<ConsoleMatch>
  /** Resolves when a node that runs is ready. The console may have shown its text at any time since the start. Errors as of `expect`. */
  ready(ref: NodeRef, wanted: NodeReady, signal: AbortSignal): Promise<void>
  /** What only nodes of a kind can do: one of the `actions` of its descriptor. The input has the form that is declared there. */
  action(ref: NodeRef, name: string, input: unknown, signal?: AbortSignal): Promise<unknown>
}

/**
 * Consoles, screens and stored captures of nodes, as streams of this process. Those of another compute are websockets and bodies, which a
 * service passes on unread.
 */
interface NodeStreams {
  /** The console as a pair of streams: the scroll-back first, then live; 409 when the node does not run. */
  console(ref: NodeRef, signal: AbortSignal, shown?: ConsoleReplay): Promise<ConsoleStream>
  /** The scroll-back; empty for a node whose run left none. 409 when the console has no text. */
  consoleLog(ref: NodeRef): Promise<Uint8Array>
  /** The screen as a pair of streams that speak RFB (VNC); 409 when the node does not run, or has no screen of this kind. */
  screen(ref: NodeRef, signal: AbortSignal): Promise<ConsoleStream>
  /** The capture that runs, from its beginning until it ends: classic pcap. 409 when there is none. */
  followCapture(ref: NodeRef, port: PortRef, signal: AbortSignal): Promise<CaptureSource>
}

/** The agent of the machine that this process runs on. */
export interface LocalHostAgent extends HostAgent {
  readonly nodes: NodeAgent & NodeStreams
}

/**
 * Links between two ports of nodes of one project on this compute. The ports are joined where frames are moved, without a UDP port;
 * a port shows the link as its NIO, `nio_link`. The nodes need not run, and may be started and stopped meanwhile. A link outlives the
 * service and is there again after a restart, also of the computer. When a link loses a port (a client attaches a NIO, deletes its
 * NIO, or changes adapters), it stays with the verdict `detached`, and `link.updated` is emitted; `join` joins it again, `remove`
 * removes it. The deletion of a node also deletes its links (`link.deleted`).
 */
export interface LinkAgent {
  /**
   * Makes the link as given: joins the ports, changes a link with this id, or moves it to other ports. A NIO or another link at a port
   * is replaced. When nothing differs no frames are lost. 400 for the same port twice or a wrong filter, 404 for an unknown node or
   * port, 409 when the types of line differ (serial to Ethernet).
   */
  join(projectId: string, linkId: string, ports: LinkPorts, settings?: LinkSettings): Promise<DirectLink>
  /** The same for many at once, in about the time of one; each by itself, in the order given. */
  joinAll(projectId: string, links: readonly DirectLinkJoin[]): Promise<DirectLinkJoined[]>
  /** Changes filters or `suspend` in place; what is absent stays. 404. */
  update(projectId: string, linkId: string, changes: LinkSettings): Promise<DirectLink>
  /** Separates the ports, and ends their captures. 404. */
  remove(projectId: string, linkId: string): Promise<void>
  /** A link with its verdict, counters and rates. 404. */
  state(projectId: string, linkId: string): Promise<DirectLink>
  /** All links of a project, with their states. Rates are those between two calls at least half a second apart. */
  states(projectId: string): Promise<DirectLink[]>
  /** The states that changed after the `next` of an earlier call, some at a time; all without `since`. Read at most twice a second. */
  changes(projectId: string, since?: string): Promise<DirectLinkChanges>
}

/** Finds out how the UDP ports of two computes reach each other. */
export interface LinkCheckAgent {
  /** Addresses at which other computes may reach a port that the project has reserved. 404 when it is not reserved. */
  candidates(projectId: string, port: number): Promise<LinkCandidates>
  /**
   * Probes the candidates of the other end from the port, and answers their probes, for some seconds at most. The other end does the same at
   * the same time. 404 when the port is not reserved, 409 when it is being checked already, 503 when too many are.
   */
  run(projectId: string, port: number, check: LinkCheck, signal?: AbortSignal): Promise<LinkCheckResult>
}

/** What is done with a node that runs, or is to run. */
export type NodeAction = 'start' | 'stop' | 'suspend' | 'resume' | 'reload'

/** A numbered port of a numbered adapter. */
export interface PortRef {
  readonly adapter: number
  readonly port: number
}

/** A capture, and what it is of. */
export interface CaptureSource {
  readonly pcap: ReadableStream<Uint8Array>
  /** Of the port, as an analyser shows it. */
  readonly interface_name: string
  readonly comment: string
}

/** What a console begins with. */
export interface ConsoleReplay {
  /** false: without the scroll-back. */
  readonly replay: boolean
  /** Only its last lines. */
  readonly lines?: number
  /** Another console of the node, which begins with a program of its own. */
  readonly name?: string
  /** What `ConsoleSize` calls its terminal. */
  readonly terminal?: string
}

export interface ConsoleStream {
  readonly readable: ReadableStream<Uint8Array>
  readonly writable: WritableStream<Uint8Array>
}

export interface EventAgent {
  /**
   * The feed of a project, or of the whole compute. First a ping, then with `since` what came after that number (or a
   * `resync`), then what happens from now on. Ends with the project or with `signal`.
   * 404 for an unknown project, 429 when it has too many feeds. `pings: false`: after the first one none is needed.
   */
  open(options: FeedRequest): Promise<ReadableStream<FeedItem>>
}

/** Which feed is asked for. */
export interface FeedRequest {
  /** Absent: that of all projects. */
  readonly projectId?: string
  readonly since?: number
  readonly pings?: boolean
  /** Of the feed of a compute: given by a reader that opens it again and again. */
  readonly limit?: FeedLimit
  readonly signal: AbortSignal
}
