import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { ConsoleSize, TerminalId } from '../../../../src/model/schema/console-size.ts'
import type { FramePath, LinkVerdict, NioState } from '../../../../src/model/schema/nio.ts'
import { Filter } from '../../dataplane/filters/index.ts'
import { longestSocketPath } from '../../os/system/socket-path.ts'

/**
 * The protocol between the service and the keeper on the keeper's UNIX socket: newline-delimited JSON.
 *
 * service -> keeper   {"id": 7, "op": "unit.start", "with": {...}}
 * keeper -> service   {"id": 7, "result": {...}} or {"id": 7, "error": {"code": "...", "message": "..."}}
 * keeper -> service   {"event": "unit.exit", "with": {...}} to every connection that said hello
 *
 * After the reply to an operation of `streamOperations` the connection carries raw bytes: with `console.attach`, those of the console in
 * both directions, beginning with the scroll-back.
 *
 * The input of every operation is declared once, as a schema: the types are derived from it, and the keeper validates every request.
 * Unknown members are ignored.
 */
export const protocolVersion: number = typeof PATCHBAY_PROTOCOL === 'number' ? PATCHBAY_PROTOCOL : 7

/** Defined only by tests that build a program of a later protocol. */
declare const PATCHBAY_PROTOCOL: number | undefined

/** Earlier versions whose operations have the same meaning as in this one. Some operations may be missing there. */
const sameProtocols: readonly number[] = [5, 6]

/** The first protocol version that has an operation. Operations that are not listed exist since version 5. */
const since: Readonly<Partial<Record<string, number>>> = {
  ping: 6,
  'unit.hold': 6,
  'link.join': 7,
  'link.remove': 7,
  'console.log': 7,
  'console.run': 7,
  'console.resize': 7,
  'unit.exec': 7,
  'unit.configure': 7,
  'bridge.table': 7,
  'bridge.clear': 7,
}

/** Whether the service can use every operation that a keeper of this protocol has. With other protocols it uses only the core. */
export const isFullProtocol = (protocol: number): boolean =>
  protocol === protocolVersion || sameProtocols.includes(protocol)

/** Whether a keeper of this protocol has the operation, with the meaning of this version. */
export const hasOperation = (protocol: number, op: string): boolean =>
  coreOperations.has(op) || (isFullProtocol(protocol) && (since[op] ?? 0) <= protocol)

/** The versions that the service tries in `hello`, in this order. Keepers up to version 5 accept only their own version. */
export const helloProtocols: readonly number[] = [protocolVersion, 5]

/** Operations that every keeper answers in the same way since version 5. docs/keeper-protocol.md has the rules for extending them. */
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

/** The descriptor of the first socket that a program is handed over, after the one of a wrapper (`is_wrapped`). */
export const firstSocket = 4

export type ProcessSpec = Static<typeof ProcessSpec>
const ProcessSpec = Type.Object({
  type: Type.Literal('process'),
  command: Type.String({ minLength: 1, maxLength: 4096, pattern: noNul }),
  args: list(Text),
  cwd: Path,
  /** Added to the variables that every program inherits from the keeper (programs/environment.ts). */
  env: Type.Optional(Type.Record(Type.String({ pattern: '^[^=\\u0000]+$' }), Text)),
  /**
   * The command is a wrapper that confines the program (sandbox/). It runs the program as its grandchild in the same process group,
   * and closes descriptor 3 when the program starts. The pid of the unit is the pid of the program.
   */
  is_wrapped: Type.Optional(Type.Boolean()),
  /** Receives stdout and stderr unless they are the console. The last words of an exited child are read from it. */
  log: Path,
  /** `pty`: the terminal of the child is the console. `pipe`: its stdin and stdout are the console. `none`: it has no console. */
  stdio: Type.Union([Type.Literal('pty'), Type.Literal('pipe'), Type.Literal('none')]),
  /**
   * The unit is ready when its console shows this text; absent: when it is spawned. If the child exits before, `unit.start` fails
   * with its last words.
   */
  ready: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
  /**
   * If the console shows this text within seconds of the start, the program has failed: the keeper ends it and reports an exit that
   * was not requested.
   */
  failure: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
  /** Ctrl-C on the console also sends SIGINT to the program, because its raw pseudo-terminal sends none. */
  interrupts: Type.Optional(Type.Boolean()),
  /** Timeout of the wait for `ready`, ms. */
  ready_ms: Type.Optional(Milliseconds),
  /**
   * The private socket pairs of its ports, if the program takes open sockets: the keeper binds each to `guest_port`, connects it to
   * `switch_port`, and hands it over as descriptor `firstSocket` plus its place in the list.
   */
  sockets: Type.Optional(list(Type.Object({ guest_port: Port, switch_port: Port }), { maxItems: 1024 })),
  /**
   * TAP devices that a wrapped program makes in its network namespace for ports that are open: before it reports its start, it sends
   * their descriptors over the socket `firstSocket`, each with the name of its device (unix(7), SCM_RIGHTS), and under the name `console`
   * that of its terminal, if it has one of its own. Since protocol 7.
   */
  taps: Type.Optional(
    list(Type.Object({ name: Type.String({ minLength: 1, maxLength: 15 }), port: Key }), { maxItems: 64 }),
  ),
  /**
   * The program that makes the panel of the devices in `taps`: a user namespace and a network namespace in it, in which the keeper joins the
   * adapters of programs itself (dataplane/cable). It hands over their descriptors as `user` and `net`, and a netlink socket of the latter as
   * `netlink`. The keeper runs it once, and hands the first two over to each program behind `firstSocket`, or none if it failed.
   */
  panel: Type.Optional(
    Type.Object({ command: Type.String({ minLength: 1, maxLength: 4096, pattern: noNul }), args: list(Text) }),
  ),
  /**
   * Where the program serves its console by telnet, at a loopback address. The keeper connects whenever it listens there; stdout is
   * discarded, and `stdio` has no effect. Since protocol 7.
   */
  console_at: Type.Optional(
    Type.Object({ host: Type.String({ pattern: '^127(\\.\\d{1,3}){3}$', expects: 'a loopback address' }), port: Port }),
  ),
})

export type EmbeddedPcSpec = Static<typeof EmbeddedPcSpec>
const EmbeddedPcSpec = Type.Object({
  type: Type.Literal('pc'),
  /** The name in its prompt. */
  name: Type.Optional(Type.String({ maxLength: 255 })),
  mac: Type.String({ pattern: '^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$', expects: 'a MAC address' }),
  /** Directory of the files that `save` and `load` name. */
  directory: Path,
  /** Startup script: a file in `directory`. It may be missing. */
  script: Type.String({ maxLength: 255, pattern: '^(?!\\.{1,2}$)[^/\\u0000]+$', expects: 'the name of a file' }),
  /** UDP ports of the private socket pair between the pc and the switch, both on 127.0.0.1. */
  guest_port: Port,
  switch_port: Port,
})

/** The serial port of a guest in another program: raw bytes at a UNIX socket, or at a TCP port of 127.0.0.1. */
export type AttachedSpec = Static<typeof AttachedSpec>
const AttachedSpec = Type.Object({
  type: Type.Literal('attached'),
  path: Type.Optional(
    Type.String({ maxLength: longestSocketPath, pattern: '^/[^\\u0000]*$', expects: 'the path of a socket' }),
  ),
  port: Type.Optional(Port),
  /** Timeout for the socket to appear, ms. `unit.start` does not wait for it. */
  ready_ms: Milliseconds,
})

export type BridgePortSpec = Static<typeof BridgePortSpec>
const BridgePortSpec = Type.Object({
  port_number: Type.Integer({ minimum: 0, maximum: 4095 }),
  /** `access`: frames of `vlan` without a tag; `dot1q`: a trunk, on which those of `vlan` have none; `qinq`: a trunk in the outer VLAN. */
  mode: Type.Union([Type.Literal('access'), Type.Literal('dot1q'), Type.Literal('qinq')]),
  vlan: Type.Integer({ minimum: 1, maximum: 4094 }),
  /** EtherType of the outer tag. */
  ethertype: Type.Integer({ minimum: 0x0600, maximum: 0xffff }),
})

/** A switch or a hub of the keeper's packet path. Its ports are opened with `bridge_port`. */
export type BridgeSpec = Static<typeof BridgeSpec>
const BridgeSpec = Type.Object({
  type: Type.Literal('bridge'),
  /** `learned`: a switch; `all`: a hub, from a port to all others; `paired`: from port n to port n + 2048, and back. */
  forwards: Type.Union([Type.Literal('learned'), Type.Literal('all'), Type.Literal('paired')]),
  /** After which time an address that is not seen is forgotten. */
  ageing_s: Type.Number({ minimum: 1, maximum: 1_000_000 }),
  ports: list(BridgePortSpec, { maxItems: 2048 }),
})

/** An address that a switch has learned. */
export interface MacEntry {
  readonly mac: string
  readonly vlan: number
  readonly port_number: number
  /** Since it was last seen. */
  readonly age_s: number
}

export type Listen = Static<typeof Listen>
const Listen = Type.Object({
  host: Type.String({ minLength: 1, maxLength: 253, pattern: noNul }),
  port: Port,
  /** false: telnet clients do not get the scroll-back. Since protocol 7. */
  replay: Type.Optional(Type.Boolean()),
})

/**
 * A unit is one running emulator: a child process, a pc in the embedded simulator, or a guest of another program. Its key is
 * `{kind}:{node_id}`.
 */
export type UnitSpec = Static<typeof UnitSpec>
const UnitSpec = Type.Object({
  key: Key,
  run: Type.Union([ProcessSpec, EmbeddedPcSpec, AttachedSpec, BridgeSpec]),
  /** Where telnet clients reach the console; absent: no listener (`console.attach` still works). */
  console: Type.Optional(Listen),
})

/** How a unit ended. `requested` is false when it ended by itself. */
export interface Exit {
  readonly code: number | null
  readonly signal: string | null
  readonly requested: boolean
  /**
   * The last output, at most 2 KiB, printable: from the console, or from the part of the log that belongs to this run if `stdio` is
   * not `pty`. If one source is empty, the other is used.
   */
  readonly last_words: string
}

export interface UnitState {
  readonly key: string
  /** 0 if the unit is not a process of the keeper. */
  readonly pid: number
  /** Number of this run. It differs from the numbers of all other runs, also in later keepers. */
  readonly run: number
  readonly console: Listen | null
  /** Whether the unit is held (`unit.hold`); absent in keepers of earlier versions. */
  readonly is_held?: boolean
  /** Telnet clients of the console; absent in keepers of earlier versions. */
  readonly telnet_clients?: number
  /** Set when the unit has ended. Kept until `unit.forget`, so that a restarted service learns of the exit. */
  readonly exit: Exit | null
}

/** A port of an IOU instance. All ports of an instance share its UNIX socket, and one socket of the switch. */
export type NetioPort = Static<typeof NetioPort>
const NetioPort = Type.Object({
  /** The application id of the instance. The switch is its bridge and has this number plus 512. */
  application_id: Type.Integer({ minimum: 1, maximum: 511 }),
  /** As in the headers of its datagrams: bay + unit * 16. */
  port: Type.Integer({ minimum: 0, maximum: 255 }),
  /** false: a serial port. Its frames have no Ethernet header and must not be parsed. */
  ethernet: Type.Boolean(),
})

/**
 * The guest's side of a port: a UDP socket on 127.0.0.1, a port of an IOU instance, one of a bridge, the unit of the port, or a TAP
 * device that the unit makes when it starts (`taps`). The frames of a serial port (`is_serial`, since protocol 7) have no Ethernet
 * header.
 */
export type PortGuest =
  | { readonly guest_port: number; readonly is_serial?: boolean }
  | { readonly netio: NetioPort }
  | { readonly bridge_port: number }
  | { readonly tap: true }

/**
 * One adapter port of a node: a private pair of UDP sockets on 127.0.0.1 between the guest and the switch, or a port of an IOU
 * instance (`guest_port` and `switch_port` are then 0). Key: `{unit key}/{adapter}/{port}`.
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
  /** In the order in which they apply to a frame, the same for both directions. */
  filters: list(Filter, { maxItems: 64 }),
  /** Those of frames to the guest, if they differ. Since protocol 7. */
  filters_in: Type.Optional(list(Filter, { maxItems: 64 })),
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
  /** A network device of this host. The maximum is IFNAMSIZ without the final NUL (netdevice(7)). */
  device: Type.String({ pattern: '^(?!\\.{1,2}$)[!-.0-9;-~]{1,15}$', expects: 'the name of a network device' }),
  ...stages,
})

/** The other endpoint of a port's link, and the impairments of its frames. */
export type SwitchNio = Static<typeof SwitchNio>
const SwitchNio = Type.Union([UdpLink, DeviceLink])

/**
 * A link between two ports of one switch, without sockets. A port that is not open is joined as soon as it is; the link stays when a
 * port is closed. `nio.attach` or `nio.detach` at one of the ports removes the link.
 */
export type JoinedLink = Static<typeof JoinedLink>
const LinkName = Type.Object({
  link_id: Type.String({ minLength: 1, maxLength: 64 }),
  ports: Type.Unsafe<readonly [a: string, b: string]>(Type.Tuple([Key, Key])),
})
const JoinedLink = Type.Object({
  ...LinkName.properties,
  suspend: Type.Boolean(),
  filters_ab: list(Filter, { maxItems: 64 }),
  filters_ba: list(Filter, { maxItems: 64 }),
})

/** Counted since the port was opened: `out` from the guest, `in` to the guest. Dropped frames are in neither. */
export type PortCounters = NioState['counters']

/** The verdict of the switch on a link. Only the service reports `port_taken`, because the switch then does not have the link. */
export type Verdict = Exclude<LinkVerdict, 'port_taken'>

/** A capture into a file. */
export interface CaptureState {
  readonly file: string
  readonly link_type: number
  readonly frames: number
  /** Frames that were lost because they came faster than they could be stored. */
  readonly missed: number
}

export interface PortReport {
  readonly key: string
  readonly counters: PortCounters
  /** null when nothing is attached. */
  readonly link: Verdict | null
  /** Why no frames pass; absent in keepers of earlier versions. */
  readonly reason?: string | null
  readonly capture: CaptureState | null
  /** Who has the frames; absent in keepers of earlier versions. */
  readonly path?: FramePath
}

export interface Inventory {
  readonly units: readonly UnitState[]
  readonly ports: readonly SwitchPortState[]
  /** Since protocol 7. */
  readonly links?: readonly JoinedLink[]
}

/** A command. */
const Words = Type.Array(Type.String({ maxLength: 4096, pattern: noNul }), { minItems: 1, maxItems: 1024 })

/** The input of each operation. */
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
  /** `replay` false: the connection begins without the scroll-back; `lines`: with its last lines. Since protocol 7. */
  'console.attach': Type.Object({
    key: Key,
    replay: Type.Optional(Type.Boolean()),
    lines: Type.Optional(Type.Integer({ minimum: 1 })),
  }),
  'console.log': Type.Object({ key: Key }),
  'console.run': Type.Object({ key: Key, words: Words, terminal: Type.Optional(TerminalId) }),
  'console.resize': Type.Object({ key: Key, ...ConsoleSize.properties }),
  'unit.exec': Type.Object({ key: Key, words: Words, within_ms: Milliseconds }),
  'unit.configure': Type.Object({ key: Key, run: BridgeSpec }),
  'bridge.table': Type.Object({ key: Key }),
  'bridge.clear': Type.Object({ key: Key }),
  'port.open': Type.Union([
    Type.Object({ key: Key, guest_port: Port, is_serial: Type.Optional(Type.Boolean()) }),
    Type.Object({ key: Key, netio: NetioPort }),
    Type.Object({ key: Key, bridge_port: Type.Integer({ minimum: 0, maximum: 4095 }) }),
    Type.Object({ key: Key, tap: Type.Literal(true) }),
  ]),
  'port.close': Type.Object({ key: Key }),
  'netio.tidy': Type.Object({ application_id: Type.Integer({ minimum: 1, maximum: 511 }) }),
  'nio.attach': Type.Object({ key: Key, nio: SwitchNio }),
  'nio.detach': Type.Object({ key: Key }),
  'link.join': Type.Object({ links: list(JoinedLink) }),
  'link.remove': Type.Object({ links: list(LinkName) }),
  'port.report': Type.Object({
    key: Type.Optional(Key),
    fresh: Type.Optional(Type.Boolean()),
    keys: Type.Optional(Type.Array(Key, { maxItems: 1000 })),
  }),
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
      /** Records without bytes say how many frames the reader lost; an older keeper, without this member, sends none. */
      losses: Type.Optional(Type.Boolean()),
    }),
  ]),
  shutdown: Type.Object({ grace_ms: Milliseconds }),
} as const

/**
 * The longest wait for the terminal of a further command, and what each such command gets beyond its own time for its start and its end,
 * ms. The program that runs it takes a little less, and who asks the keeper waits a little longer.
 */
export const [terminalMs, commandGraceMs] = [10_000, 10_000] as const

/** Operations after whose reply the connection is a stream; an error ends it. */
export const streamOperations = ['console.attach', 'console.run', 'capture.attach'] as const
export type StreamOperation = (typeof streamOperations)[number]

type Input<Op extends keyof typeof operationInputs> = Static<(typeof operationInputs)[Op]>

/** Every operation with its input and output. All are safe to repeat. */
export interface Operations {
  /**
   * The first request of every control connection. Answered for every version of the service; version 5 answers other versions with
   * the error `protocol`.
   */
  hello: { in: Input<'hello'>; out: { protocol: number; version: string; pid: number; packet_path: PacketPathName } }
  /** A heartbeat. Version 5 does not know it; its error answer counts as well. */
  ping: { in: Input<'ping'>; out: Record<string, never> }
  inventory: { in: Input<'inventory'>; out: Inventory }
  /**
   * Binds the console first (`port_taken`), then starts the unit. `exists` when the key already runs; `spawn_failed` with the
   * reason.
   */
  'unit.start': { in: Input<'unit.start'>; out: { pid: number; run: number } }
  /**
   * SIGTERM to the process group, SIGKILL after `grace_ms`. Resolves when the whole group has ended. An unknown or ended key is no
   * error.
   */
  'unit.stop': { in: Input<'unit.stop'>; out: { exit: Exit | null } }
  /**
   * Limits the processor time of a running unit, in percent of one processor (1 to 800; 0: no limit). The limit ends with the run.
   * Child processes are stopped too, but only the unit's own threads are counted. `not_running`; `unsupported` for an embedded pc,
   * and without /proc.
   */
  'unit.limit': { in: Input<'unit.limit'>; out: Record<string, never> }
  /**
   * Pauses or resumes a running unit: a process group by SIGSTOP and SIGCONT, an embedded pc inside its process. Frames to a paused
   * unit are lost. `not_running`; `unsupported` for a guest of another program.
   */
  'unit.hold': { in: Input<'unit.hold'>; out: Record<string, never> }
  /**
   * Turns the connection into a terminal of a further command in the namespaces of a running unit that has some; it ends with the
   * connection, and with the unit. `terminal` names it for `console.resize`. `not_running`, `unsupported`, `exists` when too many run,
   * `spawn_failed`. Since protocol 7.
   */
  'console.run': { in: Input<'console.run'>; out: Record<string, never> }
  /**
   * Gives the terminal that is the console of a running unit another size, or that of a further command, by its name. `not_running`,
   * `unsupported`. Since protocol 7.
   */
  'console.resize': { in: Input<'console.resize'>; out: Record<string, never> }
  /**
   * Runs such a command without a terminal, and kills it after `within_ms`; its exit code, 137 if it was killed. Errors as of
   * `console.run`. Since protocol 7.
   */
  'unit.exec': { in: Input<'unit.exec'>; out: { code: number } }
  /** Changes the ports and settings of a running bridge in place. `not_running`. */
  'unit.configure': { in: Input<'unit.configure'>; out: Record<string, never> }
  /** The addresses that a running bridge has learned. `not_running`. */
  'bridge.table': { in: Input<'bridge.table'>; out: { entries: readonly MacEntry[] } }
  /** Has a running bridge forget them. `not_running`. */
  'bridge.clear': { in: Input<'bridge.clear'>; out: Record<string, never> }
  /** Deletes the record of an ended unit. */
  'unit.forget': { in: Input<'unit.forget'>; out: Record<string, never> }
  /** Moves, opens or (null) closes the telnet listener of a running unit. `port_taken`. */
  'console.listen': { in: Input<'console.listen'>; out: Record<string, never> }
  /** Turns the connection into the console (see above). `not_running` when the unit does not run. */
  'console.attach': { in: Input<'console.attach'>; out: Record<string, never> }
  /** The scroll-back in base64, also of an ended unit until `unit.forget`. `not_running` for an unknown key. */
  'console.log': { in: Input<'console.log'>; out: { text: string } }
  /**
   * Binds the switch's socket to a free port; `switch_port` is 0 for a port of an IOU instance. An existing key with the same guest
   * is returned unchanged. The first port of an instance opens the bridge socket, the last one closes it. `port_taken` when another
   * program is the bridge or another key has the port, `no_privilege` when another user owns the directory of the sockets,
   * `unsupported` without the fast path.
   */
  'port.open': { in: Input<'port.open'>; out: { switch_port: number } }
  'port.close': { in: Input<'port.close'>; out: Record<string, never> }
  /** Removes unused sockets and lock files of an ended IOU instance and of its bridge. Files that a program still uses stay. */
  'netio.tidy': { in: Input<'netio.tidy'>; out: Record<string, never> }
  /**
   * Attaches or replaces a link; on failure the earlier link stays. `port_taken` when `lport` or the device is in use, `no_device`,
   * `no_privilege`. A change of the impairments alone is made in place.
   */
  'nio.attach': { in: Input<'nio.attach'>; out: Record<string, never> }
  /** Ends its captures too. */
  'nio.detach': { in: Input<'nio.detach'>; out: Record<string, never> }
  /**
   * Joins ports, or changes the impairments of links in place; equal links stay as they are. An attached NIO or another link of a port
   * is removed first. All links take about the time of one.
   */
  'link.join': { in: Input<'link.join'>; out: Record<string, never> }
  /** Separates the ports and ends their captures. An unknown link, or one with other ports, is no error. */
  'link.remove': { in: Input<'link.remove'>; out: Record<string, never> }
  /**
   * The report of one port (`fresh`: after a new check of its link), of those of `keys` that are open, or of all. An earlier keeper
   * reports all instead of `keys`.
   */
  'port.report': { in: Input<'port.report'>; out: { ports: readonly PortReport[] } }
  /**
   * Captures into a file, which replaces an existing file. The capture ends when less than `floor_mb` of the disk is free. `exists`
   * when the port is captured already, `not_linked`, `disk_full`.
   */
  'capture.start': { in: Input<'capture.start'>; out: Record<string, never> }
  /** Resolves when the file is complete. Does nothing without a capture. */
  'capture.stop': { in: Input<'capture.stop'>; out: Record<string, never> }
  /**
   * The connection becomes a stream of classic pcap: the running capture's file from its beginning (`not_running` without a
   * capture), or frames from now on. The stream ends with the capture or the link.
   */
  'capture.attach': { in: Input<'capture.attach'>; out: Record<string, never> }
  /** Stops every unit and ends the keeper. The answer comes just before the keeper ends. */
  shutdown: { in: Input<'shutdown'>; out: Record<string, never> }
}

export interface KeeperEvents {
  'unit.exit': { key: string; run: number; exit: Exit }
  /** An address moves between two ports of a bridge all the time, or a frame came back to it. At most every 10 s. */
  'bridge.looped': { key: string; mac: string; vlan: number; port_numbers: readonly [number, number] }
  /** A capture ended because its file cannot be written. */
  'capture.failed': { key: string; file: string; message: string }
}

export type KeeperErrorCode =
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
  | 'disk_full'
  | 'internal'
  /** Set by the client: the keeper runs but does not answer. */
  | 'no_answer'
  /** Set by the client: a keeper of another version does not have the operation. */
  | 'other_version'
