import type { Filter } from '../../filters/index.ts'

/**
 * What moves frames: sockets ("ends") and the lanes between them. There are two, `fast` and `portable`; the switch above
 * them is the same.
 */
export interface PacketPath {
  readonly name: 'fast' | 'portable'
  /** Opens an end. `port_taken`, `no_device`, `no_privilege`, `bad_request`. */
  open(spec: EndSpec): Promise<OpenedEnd>
  /** What is on its way to it is dropped. Unknown ends are fine. */
  close(end: number): Promise<void>
  /** What comes in at `input` goes out at `output`, through the rows (ports) it crosses; null: it is dropped. */
  setLane(input: number, lane: LaneSpec | null): Promise<void>
  /** The impairment of both directions of a row. Frames that wait already leave when they were due. */
  impair(row: number, impairment: Impairment): Promise<void>
  /** Has the next frames of a row wait for none that came before. */
  reset(row: number): Promise<void>
  /** Begins or (null) ends to hand over what passes the row. Resolves when all that passed before was; the same memory again only sees to that. */
  capture(row: number, memory: SharedArrayBuffer | null): Promise<void>
  /** Sends one frame out of an end, past every stage. */
  send(end: number, frame: Uint8Array): void
  /** Forgets the row's stages, so that it can be used again. */
  forget(row: number): Promise<void>
  /** Removes the files of the sockets of an IOU instance and its bridge that no program has. */
  tidy(applicationId: number): Promise<void>
  shutdown(): Promise<void>
}

export interface PathListener {
  /** A probe came in at an end. */
  probe(end: number, frame: Uint8Array): void
  /** Frames passed a row: a slot of its memory holds whole pcap records, and is to be freed. */
  captured(row: number, slot: number, length: number): void
}

export interface OpenedEnd {
  readonly end: number
  /** Its local UDP port; 0 for other ends. */
  readonly port: number
}

export type EndSpec = UdpEnd | DeviceEnd | NetioEnd

export interface UdpEnd {
  readonly type: 'udp'
  readonly local: SocketAddress
  readonly remote: SocketAddress
  /** Whether probes are looked for in what comes in; they are not forwarded. */
  readonly probes: boolean
  /** Row that counts what its peer refuses, and in which direction the end sends. */
  readonly row: number
  readonly sends: Direction
}

export interface DeviceEnd {
  readonly type: 'ethernet' | 'tap'
  readonly device: string
  readonly row: number
}

/** A port of an IOU instance; it sends to the guest. */
export interface NetioEnd {
  readonly type: 'netio'
  readonly applicationId: number
  /** As in the headers of its datagrams. */
  readonly port: number
  readonly row: number
}

export interface SocketAddress {
  /** Numeric. */
  readonly address: string
  readonly port: number
}

/** `out`: from the guest to its link; `in`: the other way. */
export type Direction = 'out' | 'in'

export interface LaneSpec {
  readonly output: number
  /** In the order in which a frame meets them: one, or two where two ports are joined on this host. */
  readonly hops: readonly { readonly row: number; readonly direction: Direction }[]
}

export interface Impairment {
  readonly suspend: boolean
  readonly filters: readonly Filter[]
}
