import type { Bridge } from '../switch/core/bridge.ts'
import { at, type Counters, countRefusal } from '../switch/core/counters.ts'
import type { EndSpec } from '../switch/core/path.ts'
import type { Lane } from '../switch/core/rows.ts'
import type { OpenedSocket } from './sockets.ts'
import type { Netio, Output } from './transmitter.ts'

export interface FastPathPort {
  readonly bridge: Bridge<FastPathEnd>
  readonly number: number
}

/** A file descriptor of the path, or a port of an IOU instance, with its destination. */
export class FastPathEnd implements Output {
  readonly id: number
  readonly fd: number
  readonly kind: Output['kind']
  readonly gro: boolean
  gso: boolean
  readonly hasHeader: boolean
  readonly #longest: number
  readonly netio: Netio | undefined
  /** Set for a port of a bridge. */
  readonly port: FastPathPort | undefined
  readonly close: () => void
  readonly row: number
  readonly probes: boolean
  lane: Lane<FastPathEnd> | null = null
  readonly #counters: Counters
  readonly #sends: 'in' | 'out'

  constructor(
    id: number,
    spec: EndSpec,
    socket: Omit<OpenedSocket, 'port'> & { netio?: Netio; port?: FastPathPort; close: () => void },
    counters: Counters,
  ) {
    this.id = id
    this.fd = socket.fd
    this.gro = socket.gro
    this.gso = socket.gso
    this.hasHeader = socket.hasHeader
    this.#longest = socket.longest
    this.netio = socket.netio
    this.port = socket.port
    this.close = socket.close
    this.kind = spec.type
    this.row = spec.row
    this.probes = spec.type === 'udp' && spec.probes
    this.#sends = spec.type === 'udp' ? spec.sends : spec.type === 'netio' || spec.type === 'bridge' ? 'in' : 'out'
    this.#counters = counters
  }

  /** Whether it takes frames as they were received after a header: with segments of at most so many bytes. */
  takes(longest: number): boolean {
    return this.hasHeader && longest <= this.#longest
  }

  refused(frames: number): void {
    countRefusal(this.#counters, this.row, this.#sends, frames)
  }

  failed(frames: number): void {
    this.#counters.add(this.row, at.sendFailed, frames)
  }
}
