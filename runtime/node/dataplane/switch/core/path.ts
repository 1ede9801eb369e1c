import type { BridgeSpec, MacEntry } from '../../../keeper/protocol/protocol.ts'
import type { Filter } from '../../filters/index.ts'
import type { Loop } from './bridge.ts'

/**
 * Moves frames: sockets ("ends") and the lanes between them. There are two implementations, `fast` and `portable`, below the same
 * switch.
 */
export interface PacketPath {
  readonly name: 'fast' | 'portable'
  /** Opens an end. `port_taken`, `no_device`, `no_privilege`, `bad_request`. */
  open(spec: EndSpec): Promise<OpenedEnd>
  /** Closes an end; frames on their way to it are dropped. An unknown end is not an error. */
  close(end: number): Promise<void>
  /** Forwards frames from `input` to `output` through the rows (ports) between them; null: drops them. */
  setLane(input: number, lane: LaneSpec | null): Promise<void>
  /** Sets the impairment of both directions of a row. Frames that already wait keep their due times. */
  impair(row: number, impairment: PortImpairment): Promise<void>
  /** The next frames of a row need not wait for earlier ones. */
  reset(row: number): Promise<void>
  /** Whether the next frames of the rows only need counting: no stage or capture is left, and no earlier frame waits. */
  isPlain(rows: readonly number[]): Promise<boolean>
  /**
   * Begins or (null) ends the delivery of frames of a row. Resolves when all earlier frames were delivered; a call with the same
   * memory only does this.
   */
  capture(row: number, memory: SharedArrayBuffer | null): Promise<void>
  /** Has a bridge (a switch or hub) run with these ports and settings; null: stop. Its ports are ends of the type `bridge`. */
  configure(bridge: number, spec: BridgeSpec | null): Promise<void>
  /** The addresses that a bridge has learned. */
  entries(bridge: number): Promise<MacEntry[]>
  clear(bridge: number): Promise<void>
  /** Sends one frame from an end, without any stage. */
  send(end: number, frame: Uint8Array): void
  /** Removes the stages of a row, for reuse. */
  forget(row: number): Promise<void>
  /** Removes the unused socket files of an IOU instance and of its bridge. */
  tidy(applicationId: number): Promise<void>
  shutdown(): Promise<void>
}

export interface PathListener {
  /** Called with a probe that an end received. */
  probe(end: number, frame: Uint8Array): void
  /** Called when a slot of a row's memory holds complete pcap records. The callee frees the slot. */
  captured(row: number, slot: number, length: number): void
  /** Called when frames go in a circle. */
  looped(loop: BridgeLoop): void
}

export interface BridgeLoop extends Loop {
  readonly bridge: number
}

export interface OpenedEnd {
  readonly end: number
  /** Its local UDP port; 0 for other ends. */
  readonly port: number
}

export type EndSpec = UdpEnd | DeviceEnd | TapEnd | NetioEnd | BridgeEnd

export interface UdpEnd {
  readonly type: 'udp'
  readonly local: SocketAddress
  readonly remote: SocketAddress
  /** Whether the end detects received probes; they are not forwarded. */
  readonly probes: boolean
  /** Row that counts the refusals of its peer, and the direction in which the end sends. */
  readonly row: number
  readonly sends: Direction
}

export type DeviceEnd = { readonly type: 'ethernet' | 'tap'; readonly device: string; readonly row: number }

/**
 * An open descriptor of a TAP device, as another program may have made it in its network namespace. Who opens the end closes it after the
 * end, elsewhere: for the last descriptor the kernel removes the device, which takes it 20 ms.
 */
export type TapEnd = { readonly type: 'tap'; readonly descriptor: number; readonly row: number }

/** A port of a bridge, which need not run. */
export type BridgeEnd = {
  readonly type: 'bridge'
  readonly bridge: number
  readonly port: number
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
  /** In the order of a frame's way: one hop, or two when two ports are joined on this host. */
  readonly hops: readonly { readonly row: number; readonly direction: Direction }[]
}

export interface PortImpairment {
  readonly suspend: boolean
  readonly filters: readonly Filter[]
  /** Those of frames to the guest, if they differ. */
  readonly filters_in?: readonly Filter[]
}
