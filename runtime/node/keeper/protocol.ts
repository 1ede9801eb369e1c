import type { LinkVerdict, NioState } from '../../../src/model/nio.ts'
import type { BpfProgram } from '../bpf/program.ts'

/**
 * What the service and the keeper say to each other over the keeper's UNIX socket: newline-delimited JSON.
 *
 * service -> keeper   {"id": 7, "op": "unit.start", "with": {...}}
 * keeper -> service   {"id": 7, "result": {...}} or {"id": 7, "error": {"code": "...", "message": "..."}}
 * keeper -> service   {"event": "unit.exit", "with": {...}} to every connection that said hello
 *
 * A connection whose first request is `console.attach` stops being JSON after the reply: what follows are the bytes of
 * the console, both ways, beginning with the scroll-back.
 */
export const protocolVersion = 5

export type PacketPathName = 'fast' | 'portable'

/** A unit is one running emulator: a child process, a pc in the embedded simulator, or a guest of a program that is not ours. Its key is `{kind}:{node_id}`. */
export interface UnitSpec {
  readonly key: string
  readonly run: ProcessSpec | EmbeddedPcSpec | AttachedSpec
  /** Where telnet clients reach its console; absent: no listener (the console can still be attached to). */
  readonly console?: Listen
}

export interface ProcessSpec {
  readonly type: 'process'
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  /** Added to the keeper's own environment. */
  readonly env?: Readonly<Record<string, string>>
  /** Receives stdout and stderr that are not the console's, and is read for the last words of a child that dies. */
  readonly log: string
  /** `pty`: the child's terminal is the console; `pipe`: its stdin and stdout are; `none`: it has no console of its own. */
  readonly stdio: 'pty' | 'pipe' | 'none'
  /**
   * Ready when the console has shown this text, or has been quiet for 100 ms after its first output; absent: when spawned.
   * A child that exits before it is ready makes `unit.start` fail with its last words.
   */
  readonly ready?: string
  /** Bound of the wait for `ready`, ms. */
  readonly ready_ms?: number
}

export interface EmbeddedPcSpec {
  readonly type: 'pc'
  readonly mac: string
  /** Directory that `save` and `load` use. */
  readonly directory: string
  /** File in `directory` that is run at start, when it exists. */
  readonly script: string
  /** Its end and the switch's end of the private socket pair, both on 127.0.0.1. */
  readonly guest_port: number
  readonly switch_port: number
}

/** The serial port of a guest that another program runs: raw bytes at a UNIX socket, or at a TCP port of 127.0.0.1. */
export interface AttachedSpec {
  readonly type: 'attached'
  readonly path?: string
  readonly port?: number
  /** How long it may take to appear, ms; `unit.start` does not wait for it. */
  readonly ready_ms: number
}

export interface Listen {
  readonly host: string
  readonly port: number
}

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
  /** Set when it has ended; kept until `unit.forget`, so that a service that was away learns of it. */
  readonly exit: Exit | null
}

/** What is at the guest's side of a port. */
export type PortGuest =
  /** A UDP socket on 127.0.0.1. */
  { readonly guest_port: number } | { readonly netio: NetioPort }

/** A port of an IOU instance. All ports of one share the instance's UNIX socket, and one socket of the switch. */
export interface NetioPort {
  /** 1 to 511. What the instance takes for its bridge, this switch, has that number and 512. */
  readonly application_id: number
  /** As in the headers of its datagrams: bay + unit * 16. */
  readonly port: number
  /** false: a serial port. Its frames have no Ethernet header, so nothing may be read into them. */
  readonly ethernet: boolean
}

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

/** What a port is linked to, and what its frames meet on the way. */
export type SwitchNio = (UdpLink | DeviceLink) & {
  readonly suspend: boolean
  /** In the order in which frames meet them, the same for both directions. */
  readonly filters: readonly Filter[]
}

export interface UdpLink {
  readonly type: 'udp'
  readonly lport: number
  /** A numeric address. */
  readonly rhost: string
  readonly rport: number
}

export interface DeviceLink {
  readonly type: 'ethernet' | 'tap'
  /** A network device of this host. */
  readonly device: string
}

/** An impairment. Chances are in percent. */
export type Filter =
  | { readonly type: 'suspend' }
  /** Every n-th frame; -1: all. */
  | { readonly type: 'frequency_drop'; readonly every: number }
  | { readonly type: 'packet_loss' | 'corrupt' | 'duplicate'; readonly percent: number }
  | { readonly type: 'delay'; readonly ms: number; readonly jitter_ms: number }
  /** Drops what one of the programs (classic BPF) matches. */
  | { readonly type: 'bpf'; readonly programs: readonly BpfProgram[] }
  /** Frames wait for their turn at most `queue_ms`. */
  | { readonly type: 'rate'; readonly kbps: number; readonly burst_kb: number; readonly queue_ms: number }
  /** The chosen frames are held back so long that later ones overtake them. */
  | { readonly type: 'reorder'; readonly percent: number; readonly ms: number }

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
  readonly capture: CaptureState | null
}

export interface Inventory {
  readonly units: readonly UnitState[]
  readonly ports: readonly SwitchPortState[]
}

/** Every operation with what goes in and what comes out. All are safe to repeat. */
export interface Operations {
  /** First on every control connection. Refused with `protocol` when the versions differ. */
  hello: {
    in: { protocol: number }
    out: { protocol: number; version: string; pid: number; packet_path: PacketPathName }
  }
  inventory: { in: Record<string, never>; out: Inventory }
  /** Binds the console first (`port_taken`), then starts. `exists` when the key runs; `spawn_failed` with the reason. */
  'unit.start': { in: UnitSpec; out: { pid: number; run: number } }
  /** SIGTERM to the group, SIGKILL after `grace_ms`; resolves when all of it has ended. An unknown or ended key is fine. */
  'unit.stop': { in: { key: string; grace_ms: number }; out: { exit: Exit | null } }
  /**
   * Limits the processor time of a running unit to so many percent of one processor (1 to 800; 0: no limit), from now on until
   * it ends: every start is without. Children of its process are stopped with it, but only its own threads are counted.
   * `not_running`; `unsupported` for an embedded pc, and where /proc cannot be read.
   */
  'unit.limit': { in: { key: string; cpu_percent: number }; out: Record<string, never> }
  /** Drops the record of a unit that has ended. */
  'unit.forget': { in: { key: string }; out: Record<string, never> }
  /** Moves, opens or (null) closes the telnet listener of a running unit. `port_taken`. */
  'console.listen': { in: { key: string; listen: Listen | null }; out: Record<string, never> }
  /** See above. `not_running` when the unit does not run. */
  'console.attach': { in: { key: string }; out: Record<string, never> }
  /**
   * Binds the switch's end on a port of the system's choice; `switch_port` is 0 for a port of an IOU instance. An existing key
   * with the same guest is given back as it is. The first port of an instance opens the socket of its bridge, closing the last
   * removes it: `port_taken` when another program is its bridge or another key has the port, `no_privilege` when the directory
   * of the sockets is not ours, `unsupported` without the fast path.
   */
  'port.open': { in: { key: string } & PortGuest; out: { switch_port: number } }
  'port.close': { in: { key: string }; out: Record<string, never> }
  /**
   * Removes the sockets and lock files of that application id, and of its bridge, that no program has. For one that has just
   * ended; one that is running or beginning keeps its own.
   */
  'netio.tidy': { in: { application_id: number }; out: Record<string, never> }
  /**
   * Attaches or replaces; what was attached before stays when that fails. `port_taken` when `lport` or the device is in use,
   * `no_device`, `no_privilege`. The same link with other impairments is changed in place.
   */
  'nio.attach': { in: { key: string; nio: SwitchNio }; out: Record<string, never> }
  /** Ends its captures too. */
  'nio.detach': { in: { key: string }; out: Record<string, never> }
  /** Of one port, `fresh` after a look at its link; or of all. */
  'port.report': { in: { key?: string; fresh?: boolean }; out: { ports: readonly PortReport[] } }
  /**
   * Captures into a new file; what is at that path is replaced. It ends by itself when less than `floor_mb` of the disk is free.
   * `exists` when it captures already, `not_linked`.
   */
  'capture.start': {
    in: { key: string; file: string; link_type: number; floor_mb: number }
    out: Record<string, never>
  }
  /** Resolves when the file is complete. Without a capture it does nothing. */
  'capture.stop': { in: { key: string }; out: Record<string, never> }
  /**
   * The connection becomes a stream of classic pcap: the file of the running capture from its beginning (`not_running` when
   * there is none), or what passes from now on. It ends with the capture, or with the link.
   */
  'capture.attach': {
    in: { key: string; from: 'file' } | { key: string; from: 'now'; link_type: number }
    out: Record<string, never>
  }
  /** Stops every unit, closes everything, ends the keeper; answered just before it ends. */
  shutdown: { in: { grace_ms: number }; out: Record<string, never> }
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
