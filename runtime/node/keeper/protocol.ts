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
export const protocolVersion = 1

/** A unit is one running emulator: a child process, or a pc in the embedded simulator. Its key is `{kind}:{node_id}`. */
export interface UnitSpec {
  readonly key: string
  readonly run: ProcessSpec | EmbeddedPcSpec
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

export interface Listen {
  readonly host: string
  readonly port: number
}

/** How a unit ended. `requested` is false when it went away by itself. */
export interface Exit {
  readonly code: number | null
  readonly signal: string | null
  readonly requested: boolean
  /** The end of its log and console, at most 2 KiB, printable. */
  readonly last_words: string
}

export interface UnitState {
  readonly key: string
  /** 0 for an embedded pc. */
  readonly pid: number
  /** Number of this run; tells the end of one run from that of a later one. */
  readonly run: number
  readonly console: Listen | null
  /** Set when it has ended; kept until `unit.forget`, so that a service that was away learns of it. */
  readonly exit: Exit | null
}

/** One adapter port of a node: a private pair of UDP sockets on 127.0.0.1 between the guest and the switch. Key: `{unit key}/{adapter}/{port}`. */
export interface SwitchPortState {
  readonly key: string
  readonly guest_port: number
  readonly switch_port: number
  readonly nio: SwitchNio | null
}

export interface SwitchNio {
  readonly type: 'nio_udp'
  readonly lport: number
  /** A numeric address. */
  readonly rhost: string
  readonly rport: number
  readonly suspend: boolean
}

export interface Inventory {
  readonly units: readonly UnitState[]
  readonly ports: readonly SwitchPortState[]
}

/** Every operation with what goes in and what comes out. All are safe to repeat. */
export interface Operations {
  /** First on every control connection. Refused with `protocol` when the versions differ. */
  hello: { in: { protocol: number }; out: { protocol: number; version: string; pid: number } }
  inventory: { in: Record<string, never>; out: Inventory }
  /** Binds the console first (`port_taken`), then starts. `exists` when the key runs; `spawn_failed` with the reason. */
  'unit.start': { in: UnitSpec; out: { pid: number; run: number } }
  /** SIGTERM to the group, SIGKILL after `grace_ms`; resolves when all of it has ended. An unknown or ended key is fine. */
  'unit.stop': { in: { key: string; grace_ms: number }; out: { exit: Exit | null } }
  /** Drops the record of a unit that has ended. */
  'unit.forget': { in: { key: string }; out: Record<string, never> }
  /** Moves, opens or (null) closes the telnet listener of a running unit. `port_taken`. */
  'console.listen': { in: { key: string; listen: Listen | null }; out: Record<string, never> }
  /** See above. `not_running` when the unit does not run. */
  'console.attach': { in: { key: string }; out: Record<string, never> }
  /** Binds the switch's end on a port of the system's choice. An existing key with the same guest port is given back as it is. */
  'port.open': { in: { key: string; guest_port: number }; out: { switch_port: number } }
  'port.close': { in: { key: string }; out: Record<string, never> }
  /** Attaches or replaces; `port_taken` when `lport` cannot be bound (what was attached before stays then). */
  'nio.attach': { in: { key: string; nio: SwitchNio }; out: Record<string, never> }
  'nio.detach': { in: { key: string }; out: Record<string, never> }
  /** Stops every unit, closes everything, ends the keeper; answered just before it ends. */
  shutdown: { in: { grace_ms: number }; out: Record<string, never> }
}

export interface KeeperEvents {
  'unit.exit': { key: string; run: number; exit: Exit }
}

export type ErrorCode =
  | 'protocol'
  | 'bad_request'
  | 'exists'
  | 'not_running'
  | 'unknown_key'
  | 'port_taken'
  | 'spawn_failed'
  | 'internal'
