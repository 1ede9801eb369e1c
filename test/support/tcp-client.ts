import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** A client of a listener that keeps every byte it got. */
export class TcpClient {
  readonly socket: Socket
  #chunks: Buffer[] = []
  #length = 0
  readonly #waiting = new Set<() => void>()

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', () => {})
    socket.on('data', (bytes: Buffer) => {
      this.#chunks.push(bytes)
      this.#length += bytes.length
      this.#wake()
    })
    socket.on('close', () => this.#wake())
    socket.resume()
    onTestFinished(() => void socket.destroy())
  }

  static async connect(port: number): Promise<TcpClient> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return new TcpClient(socket)
  }

  get received(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  get length(): number {
    return this.#length
  }

  /** Resolves with all that came when it is so; rejects when the connection ended before. */
  async until(isSo: (received: Buffer) => boolean): Promise<Buffer> {
    while (!isSo(this.received)) await this.#more()
    return this.received
  }

  async untilLength(length: number): Promise<void> {
    while (this.#length < length) await this.#more()
  }

  shows(text: string): Promise<Buffer> {
    return this.until((received) => received.includes(text))
  }

  async closed(): Promise<void> {
    if (!this.socket.closed) await once(this.socket, 'close')
  }

  async #more(): Promise<void> {
    if (this.socket.closed) throw new Error(`the connection ended after ${JSON.stringify(this.received.toString())}`)
    await new Promise<void>((resolve) => this.#waiting.add(resolve))
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
  }
}
