import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { bytesOf } from '../../../../runtime/node/drivers/nat/addresses.ts'
import { FrameWriter, type PacketEnds } from '../../../../runtime/node/drivers/nat/frame-writer.ts'
import { ones } from '../../../support/frames.ts'
import { reserve } from '../../../support/lab.ts'
import type { NatLab } from './nat-lab.ts'

const [tcp, icmp, icmp6] = [6, 1, 58]
const mac = Uint8Array.from([2, 0, 0, 0, 0, 9])

/** A guest that writes its frames itself, so that it may send what no system sends. */
export class RawGuest {
  readonly #socket: Socket
  readonly #to: number
  readonly #four: string
  readonly #six: string
  readonly #frame = new Uint8Array(2048)
  readonly #writer = new FrameWriter(this.#frame, new DataView(this.#frame.buffer))
  readonly got: Buffer[] = []
  #wake = () => {}

  private constructor(socket: Socket, to: number, four: string, six: string) {
    this.#socket = socket
    this.#to = to
    this.#four = four
    this.#six = six
    socket.on('message', (frame: Buffer) => {
      this.got.push(frame)
      this.#wake()
    })
  }

  static async at({ service, project, nat }: NatLab, four: string, six: string): Promise<RawGuest> {
    const [here, there] = [await reserve(service, project), await reserve(service, project)]
    const socket = createSocket('udp4')
    onTestFinished(() => void socket.close())
    socket.bind(here, '127.0.0.1')
    await once(socket, 'listening')
    const nio = { type: 'nio_udp', lport: there, rhost: '127.0.0.1', rport: here }
    await service.call('POST', `${nat}/adapters/0/ports/0/nio`, nio)
    return new RawGuest(socket, there, four, six)
  }

  #ends(to: string): PacketEnds {
    const isSix = to.includes(':')
    const toMac = Uint8Array.from(
      isSix ? [0x52, 0x56, 0, 0, 0, 2] : [0x52, 0x55, ...bytesOf(this.#four).slice(0, 3), 1],
    )
    return { fromMac: mac, toMac, from: bytesOf(isSix ? this.#six : this.#four), to: bytesOf(to) }
  }

  udp(to: string, port: number, payload: string, from = 4000): void {
    this.#send(this.#writer.udp(this.#ends(to), from, port, Buffer.from(payload)))
  }

  /** A SYN. */
  connect(to: string, port: number): void {
    const header = Buffer.alloc(20)
    header.writeUInt16BE(4001, 0)
    header.writeUInt16BE(port, 2)
    header.writeUInt32BE(1, 4)
    header.writeUInt16BE(0x5002, 12)
    header.writeUInt16BE(8192, 14)
    this.#transport(to, tcp, header, 16)
  }

  ping(to: string): void {
    this.#transport(
      to,
      to.includes(':') ? icmp6 : icmp,
      Buffer.from([to.includes(':') ? 128 : 8, 0, 0, 0, 0, 7, 0, 1]),
      2,
    )
  }

  #transport(to: string, protocol: number, body: Buffer, place: number): void {
    const ends = this.#ends(to)
    // The headers of a datagram of the same length, with another protocol in them.
    const length = this.#writer.udp(ends, 0, 0, body.subarray(8))
    const isSix = to.includes(':')
    const start = 14 + (isSix ? 40 : 20)
    this.#frame[isSix ? 20 : 23] = protocol
    const addresses = Buffer.concat([ends.from, ends.to])
    const pseudo = protocol === icmp ? [] : [addresses, Buffer.from([0, protocol, body.length >> 8, body.length & 255])]
    body.writeUInt16BE(~ones(Buffer.concat([...pseudo, body])) & 0xffff, place)
    this.#frame.set(body, start)
    if (!isSix) {
      const header = Buffer.from(this.#frame.buffer, 14, 20)
      header.writeUInt16BE(0, 10)
      header.writeUInt16BE(~ones(header) & 0xffff, 10)
    }
    this.#send(length)
  }

  #send(length: number): void {
    this.#socket.send(this.#frame.slice(0, length), this.#to, '127.0.0.1')
  }

  /** Sends a frame as it is. */
  raw(frame: Uint8Array): void {
    this.#socket.send(frame, this.#to, '127.0.0.1')
  }

  /** What was got up to the first frame with the text in it. */
  async until(text: string): Promise<Buffer[]> {
    for (;;) {
      const at = this.got.findIndex((frame) => frame.includes(text))
      if (at >= 0) return this.got.splice(0, at + 1)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** Answers requests for the hardware address of the guest. */
  answerArp(): void {
    this.#socket.on('message', (frame: Buffer) => {
      if (frame.readUInt16BE(12) !== 0x0806 || frame.readUInt16BE(20) !== 1) return
      if (!frame.subarray(38, 42).equals(bytesOf(this.#four))) return
      const reply = Buffer.concat([
        ...[frame.subarray(6, 12), mac, frame.subarray(12, 20), Buffer.from([0, 2])],
        ...[mac, bytesOf(this.#four), frame.subarray(22, 32)],
      ])
      this.raw(reply)
    })
  }
}
