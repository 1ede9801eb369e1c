import { type NetioSocket, netioData, netioHeaderBytes } from './netio-socket.ts'
import { batch, type Receiver } from './receiver.ts'

/** Sorts the datagrams of one receive call by port, in a stable order. */
export class Demultiplexer {
  readonly #receiver: Receiver
  readonly #ports = new Int32Array(batch)
  readonly #offsets = new Int32Array(batch)
  readonly #lengths = new Int32Array(batch)
  /** Counts by port, then next positions; the last entry is for datagrams without a port. */
  readonly #starts = new Int32Array(257)
  /** Ports with datagrams, in the order of their first one. */
  readonly ports = new Int32Array(batch)
  /** Start of each port's datagrams. */
  readonly begins = new Int32Array(batch + 1)

  constructor(receiver: Receiver) {
    this.#receiver = receiver
  }

  /**
   * Sorts the received datagrams; returns the number of ports with datagrams. Port 256 gets datagrams of other senders or without a
   * frame.
   */
  sort(count: number, { own, peer }: NetioSocket): number {
    const { offsets, lengths } = this.#receiver
    const from = own * 65_536 + peer
    let groups = 0
    for (let index = 0; index < count; index++) {
      const port = this.#portOf(index, from)
      this.#ports[index] = port
      if (this.#starts[port] === 0) this.ports[groups++] = port
      this.#starts[port] = (this.#starts[port] as number) + 1
    }
    let start = 0
    for (let group = 0; group < groups; group++) {
      const port = this.ports[group] as number
      this.begins[group] = start
      start += this.#starts[port] as number
      this.#starts[port] = this.begins[group] as number
    }
    this.begins[groups] = start
    if (groups > 1) {
      this.#offsets.set(offsets)
      this.#lengths.set(lengths)
      for (let index = 0; index < count; index++) {
        const port = this.#ports[index] as number
        const to = this.#starts[port] as number
        offsets[to] = this.#offsets[index] as number
        lengths[to] = this.#lengths[index] as number
        this.#starts[port] = to + 1
      }
    }
    for (let group = 0; group < groups; group++) this.#starts[this.ports[group] as number] = 0
    return groups
  }

  #portOf(index: number, from: number): number {
    const { view, offsets, lengths } = this.#receiver
    const header = (offsets[index] as number) - netioHeaderBytes
    if ((lengths[index] as number) <= 0) return stray
    if (view.getUint32(header, false) !== from || view.getUint16(header + 6, false) !== netioData) return stray
    return view.getUint8(header + 4)
  }
}

/** The port of datagrams without a valid port. */
const stray = 256
