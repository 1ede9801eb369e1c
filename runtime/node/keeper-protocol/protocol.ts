import { type Static, type TSchema, Type } from '@sinclair/typebox'
import type { LinkVerdict, NioState } from '../../../src/schema/nio.ts'
import { Filter } from '../filters/index.ts'
import { longestSocketPath } from '../system/socket-path.ts'

/**
 * What the service and the keeper say to each other over the keeper's UNIX socket: newline-delimited JSON.
 *
 * service -> keeper   {"id": 7, "op": "unit.start", "with": {...}}
 * keeper -> service   {"id": 7, "result": {...}} or {"id": 7, "error": {"code": "...", "message": "..."}}
 * keeper -> service   {"event": "unit.exit", "with": {...}} to every connection that said hello
 *
 * A connection whose first request is `console.attach` stops being JSON after the reply: what follows are the bytes of
 * the console, both ways, beginning with the scroll-back.
 *
 * What goes into an operation is declared once, as a schema: the types are derived from it, and the keeper checks every
 * request against it, whoever sends it. Members that are not known are ignored.
 */
export const protocolVersion: number = typeof PATCHBAY_PROTOCOL === 'number' ? PATCHBAY_PROTOCOL : 6

/** Put in by tests alone, which build a program of a later protocol. */
declare const PATCHBAY_PROTOCOL: number | undefined

/** Earlier versions whose operations are the same as those of this one, as far as they have them. */
const sameProtocols: readonly number[] = [5]

/** The first version that has an operation, when that is not version 5. */
const since: Readonly<Partial<Record<string, number>>> = { ping: 6, 'unit.hold': 6 }

/** Whether a keeper of that protocol takes the operations that its version has; of another one only the core is the same. */
export const isFullProtocol = (protocol: number): boolean =>
  protocol === protocolVersion || sameProtocols.includes(protocol)

/** Whether a keeper of that protocol has an operation, as this version means it. */
export const hasOperation = (protocol: number, op: string): boolean =>
  coreOperations.has(op) || (isFullProtocol(protocol) && (since[op] ?? 0) <= protocol)

/** The versions to say hello with, in this order: until version 5 a keeper refused every other than its own. */
export const helloProtocols: readonly number[] = [protocolVersion, 5]

/**
 * What every keeper from version 5 on answers in the same way, whatever the version of the service: docs/keeper-protocol.md says
 * how it may grow.
 */
const coreOperations: ReadonlySet<string> = new Set([
  ...['hello', 'inventory', 'unit.stop', 'unit.forget', 'console.listen', 'console.attach'],
  ...['port.close', 'capture.stop', 'shutdown'],
])

export type PacketPathName = 'fast' | 'portable'

const list = <T extends TSchema>(item: T, options: { maxItems?: number } = {}) =>
  Type.Unsafe<readonly Static<T>[]>(Type.Array(item, options))

const noNul = '^[^\\u0000]*$'
const Key = Type.String({
  minLength: 1,
  maxLength: 256,
  description: 'Of a unit `{kind}:{node_id}`, of a port `{unit key}/{adapter}/{port}`',
})
const Path = Type.String({ maxLength: 4096, pattern: '^/[^\\u0000]*$', expects: 'an absolute path' })
const Text = Type.String({ pattern: noNul, expects: 'a text without NUL' })
const Port = Type.Integer({ minimum: 1, maximum: 65535 })
const longestWaitMs = 3_600_000
const Milliseconds = Type.Number({ minimum: 0, maximum: longestWaitMs })

export type ProcessSpec = Static<typeof ProcessSpec>
const ProcessSpec = Type.Object({
  type: Type.Literal('process'),
  command: Type.String({ minLength: 1, maxLength: 4096, pattern: noNul }),
  args: list(Text),
  cwd: Path,
  /** Added to what every program gets of the keeper's own environment (programs/environment.ts). */
  env: Type.Optional(Type.Record(Type.String({ pattern: '^[^=\\u0000]+$' }), Text)),
  /**
   * The command confines the program (sandbox/): it runs that as its grandchild in the same process group, and closes
   * descriptor 3 when the program begins. The pid of the unit is that of the program.
   */
  is_wrapped: Type.Optional(Type.Boolean()),
  /** Receives stdout and stderr that are not the console's, and is read for the last words of a child that dies. */
  log: Path,
  /** `pty`: the child's terminal is the console; `pipe`: its stdin and stdout are; `none`: it has no console of its own. */
  stdio: Type.Union([Type.Literal('pty'), Type.Literal('pipe'), Type.Literal('none')]),
  /**
   * Ready when the console has shown this text; absent: when spawned. A child that exits before it is ready makes `unit.start`
   * fail with its last words.
   */
  ready: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
  /** The program has failed when its console shows this text within seconds of its start: it is ended, as if by itself. */
  failure: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
  /** Ctrl-C typed on the console is SIGINT to the program, too: its pseudo-terminal is raw and sends none. */
  interrupts: Type.Optional(Type.Boolean()),
  /** Bound of the wait for `ready`, ms. */
  ready_ms: Type.Optional(Milliseconds),
})

export type EmbeddedPcSpec = Static<typeof EmbeddedPcSpec>
const EmbeddedPcSpec = Type.Object({
  type: Type.Literal('pc'),
  mac: Type.String({ pattern: '^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$', expects: 'a MAC address' }),
  /** Directory that `save` and `load` use. */
  directory: Path,
  /** File in `directory` that is run at start, when it exists. */
  script: Type.String({ maxLength: 255, pattern: '^(?!\\.{1,2}$)[^/\\u0000]+$', expects: 'the name of a file' }),
  /** Its end and the switch's end of the private socket pair, both on 127.0.0.1. */
  guest_port: Port,
  switch_port: Port,
})

/** The serial port of a guest that another program runs: raw bytes at a UNIX socket, or at a TCP port of 127.0.0.1. */
export type AttachedSpec = Static<typeof AttachedSpec>
const AttachedSpec = Type.Object({
  type: Type.Literal('attached'),
  path: Type.Optional(
    Type.String({ maxLength: longestSocketPath, pattern: '^/[^\\u0000]*$', expects: 'the path of a socket' }),
  ),
  port: Type.Optional(Port),
  /** How long it may take to appear, ms; `unit.start` does not wait for it. */
  ready_ms: Milliseconds,
})

export type Listen = Static<typeof Listen>
const Listen = Type.Object({
  host: Type.String({ minLength: 1, maxLength: 253, pattern: noNul }),
  port: Port,
})

/** A unit is one running emulator: a child process, a pc in the embedded simulator, or a guest of a program that is not ours. Its key is `{kind}:{node_id}`. */
export type UnitSpec = Static<typeof UnitSpec>
const UnitSpec = Type.Object({
  key: Key,
  run: Type.Union([ProcessSpec, EmbeddedPcSpec, AttachedSpec]),
  /** Where telnet clients reach its console; absent: no listener (the console can still be attached to). */
  console: Type.Optional(Listen),
})

/** How a unit ended. `requested` is false when it went away by itself. */
export interface Exit {
  readonly code: number | null
  readonly signal: string | null
  readonly requested: boolean
  /**
   * The end of what it said, at most 2 KiB, printable: on its console, or, where `stdio` is not `pty`, in this run's part of
   * its log; each stands in for the other when that has nothing.
   */
  readonly last_words: string
}

export interface UnitState {
  readonly key: string
  /** 0 for what is no process of ours. */
  readonly pid: number
  /** Number of this run; tells the end of one run from that of a later one, also of a later keeper. */
  readonly run: number
  readonly console: Listen | null
  /** Whether it is held (`unit.hold`); keepers of earlier versions do not tell. */
  readonly is_held?: boolean
  /** Set when it has ended; kept until `unit.forget`, so that a service that was away learns of it. */
  readonly exit: Exit | null
}

/** A port of an IOU instance. All ports of one share the instance's UNIX socket, and one socket of the switch. */
export type NetioPort = Static<typeof NetioPort>
const NetioPort = Type.Object({
  /** What the instance takes for its bridge, this switch, has that number and 512. */
  application_id: Type.Integer({ minimum: 1, maximum: 511 }),
  /** As in the headers of its datagrams: bay + unit * 16. */
  port: Type.Integer({ minimum: 0, maximum: 255 }),
  /** false: a serial port. Its frames have no Ethernet header, so nothing may be read into them. */
  ethernet: Type.Boolean(),
})

/** What is at the guest's side of a port: a UDP socket on 127.0.0.1, or a port of an IOU instance. */
export type PortGuest = { readonly guest_port: number } | { readonly netio: NetioPort }

/**
 * One adapter port of a node: a private pair of UDP sockets on 127.0.0.1 between the guest and the switch, or a port of an IOU
 * instance, for which `guest_port` and `switch_port` are 0. Key: `{unit key}/{adapter}/{port}`.
 */
export interface SwitchPortState {
  readonly key: string
  readonly guest_port: number
  readonly switch_port: number
  readonly netio: NetioPort | null
  readonly nio: SwitchNio | null
  readonly capture: CaptureState | null
}

const stages = {
  suspend: Type.Boolean(),
  /** In the order in which frames meet them, the same for both directions. */
  filters: list(Filter, { maxItems: 64 }),
}

export type UdpLink = Static<typeof UdpLink>
const UdpLink = Type.Object({
  type: Type.Literal('udp'),
  lport: Port,
  /** A numeric address. */
  rhost: Type.String({ minLength: 1, maxLength: 253, pattern: noNul }),
  rport: Port,
  ...stages,
})

export type DeviceLink = Static<typeof DeviceLink>
const DeviceLink = Type.Object({
  type: Type.Union([Type.Literal('ethernet'), Type.Literal('tap')]),
  /** A network device of this host: IFNAMSIZ less the final NUL. */
  device: Type.String({ pattern: '^(?!\\.{1,2}$)[!-.0-9;-~]{1,15}$', expects: 'the name of a network device' }),
  ...stages,
})

/** What a port is linked to, and what its frames meet on the way. */
export type SwitchNio = Static<typeof SwitchNio>
const SwitchNio = Type.Union([UdpLink, DeviceLink])

/** Counted since the port was opened. `out` is what the guest sent, `in` what it was sent; frames that were dropped are in neither. */
export type PortCounters = NioState['counters']

/** What the switch knows of a link; that its port is taken only the service does, because then the switch does not have it. */
export type Verdict = Exclude<LinkVerdict, 'port_taken'>

/** A capture into a file. */
export interface CaptureState {
  readonly file: string
  readonly link_type: number
  readonly frames: number
  /** Frames that came faster than they could be stored. */
  readonly missed: number
}

export interface PortReport {
  readonly key: string
  readonly counters: PortCounters
  /** null when nothing is attached. */
  readonly link: Verdict | null
  /** Why nothing passes; keepers of earlier versions do not tell. */
  readonly reason?: string | null
  readonly capture: CaptureState | null
}

export interface Inventory {
  readonly units: readonly UnitState[]
  readonly ports: readonly SwitchPortState[]
}

/** What goes into an operation. */
export const operationInputs = {
  hello: Type.Object({ protocol: Type.Integer() }),
  ping: Type.Object({}),
  inventory: Type.Object({}),
  'unit.start': UnitSpec,
  'unit.stop': Type.Object({ key: Key, grace_ms: Milliseconds }),
  'unit.limit': Type.Object({ key: Key, cpu_percent: Type.Number({ minimum: 0, maximum: 800 }) }),
  'unit.hold': Type.Object({ key: Key, is_held: Type.Boolean() }),
  'unit.forget': Type.Object({ key: Key }),
  'console.listen': Type.Object({ key: Key, listen: Type.Union([Listen, Type.Null()]) }),
  'console.attach': Type.Object({ key: Key }),
  'port.open': Type.Union([Type.Object({ key: Key, guest_port: Port }), Type.Object({ key: Key, netio: NetioPort })]),
  'port.close': Type.Object({ key: Key }),
  'netio.tidy': Type.Object({ application_id: Type.Integer({ minimum: 1, maximum: 511 }) }),
  'nio.attach': Type.Object({ key: Key, nio: SwitchNio }),
  'nio.detach': Type.Object({ key: Key }),
  'port.report': Type.Object({ key: Type.Optional(Key), fresh: Type.Optional(Type.Boolean()) }),
  'capture.start': Type.Object({
    key: Key,
    file: Path,
    link_type: Type.Integer({ minimum: 0, maximum: 0xffff_ffff }),
    floor_mb: Type.Number({ minimum: 0 }),
  }),
  'capture.stop': Type.Object({ key: Key }),
  'capture.attach': Type.Union([
    Type.Object({ key: Key, from: Type.Literal('file') }),
    Type.Object({
      key: Key,
      from: Type.Literal('now'),
      link_type: Type.Integer({ minimum: 0, maximum: 0xffff_ffff }),
    }),
  ]),
  shutdown: Type.Object({ grace_ms: Milliseconds }),
} as const

type Input<Op extends keyof typeof operationInputs> = Static<(typeof operationInputs)[Op]>

/** Every operation with what goes in and what comes out. All are safe to repeat. */
export interface Operations {
  /** First on every control connection. Answered whatever the version of the service; version 5 refused others with `protocol`. */
  hello: {
    in: Input<'hello'>
    out: { protocol: number; version: string; pid: number; packet_path: PacketPathName }
  }
  /** A sign of life. Version 5 does not know it, and its refusal is one. */
  ping: { in: Input<'ping'>; out: Record<string, never> }
  inventory: { in: Input<'inventory'>; out: Inventory }
  /** Binds the console first (`port_taken`), then starts. `exists` when the key runs; `spawn_failed` with the reason. */
  'unit.start': { in: Input<'unit.start'>; out: { pid: number; run: number } }
  /** SIGTERM to the group, SIGKILL after `grace_ms`; resolves when all of it has ended. An unknown or ended key is fine. */
  'unit.stop': { in: Input<'unit.stop'>; out: { exit: Exit | null } }
  /**
   * Limits the processor time of a running unit to so many percent of one processor (1 to 800; 0: no limit), from now on until
   * it ends: every start is without. Children of its process are stopped with it, but only its own threads are counted.
   * `not_running`; `unsupported` for an embedded pc, and where /proc cannot be read.
   */
  'unit.limit': { in: Input<'unit.limit'>; out: Record<string, never> }
  /**
   * Stops a running unit where it is, or has it go on: a process with its group (SIGSTOP), an embedded pc in its process. Frames to
   * it are lost meanwhile. `not_running`; `unsupported` for a guest of another program.
   */
  'unit.hold': { in: Input<'unit.hold'>; out: Record<string, never> }
  /** Drops the record of a unit that has ended. */
  'unit.forget': { in: Input<'unit.forget'>; out: Record<string, never> }
  /** Moves, opens or (null) closes the telnet listener of a running unit. `port_taken`. */
  'console.listen': { in: Input<'console.listen'>; out: Record<string, never> }
  /** See above. `not_running` when the unit does not run. */
  'console.attach': { in: Input<'console.attach'>; out: Record<string, never> }
  /**
   * Binds the switch's end on a port of the system's choice; `switch_port` is 0 for a port of an IOU instance. An existing key
   * with the same guest is given back as it is. The first port of an instance opens the socket of its bridge, closing the last
   * removes it: `port_taken` when another program is its bridge or another key has the port, `no_privilege` when the directory
   * of the sockets is not ours, `unsupported` without the fast path.
   */
  'port.open': { in: Input<'port.open'>; out: { switch_port: number } }
  'port.close': { in: Input<'port.close'>; out: Record<string, never> }
  /**
   * Removes the sockets and lock files of that application id, and of its bridge, that no program has. For one that has just
   * ended; one that is running or beginning keeps its own.
   */
  'netio.tidy': { in: Input<'netio.tidy'>; out: Record<string, never> }
  /**
   * Attaches or replaces; what was attached before stays when that fails. `port_taken` when `lport` or the device is in use,
   * `no_device`, `no_privilege`. The same link with other impairments is changed in place.
   */
  'nio.attach': { in: Input<'nio.attach'>; out: Record<string, never> }
  /** Ends its captures too. */
  'nio.detach': { in: Input<'nio.detach'>; out: Record<string, never> }
  /** Of one port, `fresh` after a look at its link; or of all. */
  'port.report': { in: Input<'port.report'>; out: { ports: readonly PortReport[] } }
  /**
   * Captures into a new file; what is at that path is replaced. It ends by itself when less than `floor_mb` of the disk is free.
   * `exists` when it captures already, `not_linked`.
   */
  'capture.start': {
    in: Input<'capture.start'>
    out: Record<string, never>
  }
  /** Resolves when the file is complete. Without a capture it does nothing. */
  'capture.stop': { in: Input<'capture.stop'>; out: Record<string, never> }
  /**
   * The connection becomes a stream of classic pcap: the file of the running capture from its beginning (`not_running` when
   * there is none), or what passes from now on. It ends with the capture, or with the link.
   */
  'capture.attach': {
    in: Input<'capture.attach'>
    out: Record<string, never>
  }
  /** Stops every unit, closes everything, ends the keeper; answered just before it ends. */
  shutdown: { in: Input<'shutdown'>; out: Record<string, never> }
}

export interface KeeperEvents {
  'unit.exit': { key: string; run: number; exit: Exit }
  /** A capture ended that nobody stopped: its file cannot be written. */
  'capture.failed': { key: string; file: string; message: string }
}

export type ErrorCode =
  | 'protocol'
  | 'bad_request'
  | 'exists'
  | 'not_running'
  | 'unknown_key'
  | 'port_taken'
  | 'not_linked'
  | 'no_device'
  | 'no_privilege'
  | 'unsupported'
  | 'spawn_failed'
  | 'internal'
  /** Said by the service's side: the keeper runs and does not answer. */
  | 'no_answer'
  /** Said by the service's side: a keeper of another version does not have the operation. */
  | 'other_version'
