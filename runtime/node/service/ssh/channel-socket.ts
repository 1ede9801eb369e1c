import type { Socket as Connection } from 'node:net'
import type { ServerChannel } from 'ssh2'
import type { Socket } from '../../../../src/lib/http/socket.ts'

/** More than this waiting for a client that does not read makes the sender wait, bytes. */
const maxBuffered = 256 * 1024
/** Timeout for a client to read the rest when its channel ends, ms. */
const farewellMs = 5000

/** A channel of an SSH client, where the service expects a websocket. */
export class ChannelSocket implements Socket {
  readonly #channel: ServerChannel
  readonly #connection: Connection
  readonly #shown: (bytes: Uint8Array) => Uint8Array | string
  readonly #closers: ((code: number) => void)[] = []
  readonly #over: Promise<void>
  #end = () => {}
  #isOver = false
  #written: Promise<void> = Promise.resolve()
  #quiet: NodeJS.Timeout | undefined
  #receive: ((data: Uint8Array) => void) | undefined

  /** `shown`: what the client sees of output. */
  constructor(
    channel: ServerChannel,
    connection: Connection,
    shown: (bytes: Uint8Array) => Uint8Array | string = (bytes) => bytes,
  ) {
    this.#channel = channel
    this.#connection = connection
    this.#shown = shown
    this.#over = new Promise((resolve) => {
      this.#end = resolve
    })
    for (const stream of [channel, channel.stderr]) stream.on('error', () => this.finish(1))
    channel.on('close', () => this.finish(1))
  }

  send(data: string | Uint8Array): void {
    if (this.#isOver) return
    this.#quiet?.refresh()
    const shown = this.#shown(typeof data === 'string' ? Buffer.from(data) : data)
    if (shown.length > 0) this.#write(shown)
  }

  close(code = 1000, reason = ''): void {
    this.finish(code === 1000 ? 0 : 1, code === 1000 ? undefined : reason)
  }

  onMessage(receive: (data: Uint8Array) => void): void {
    this.#receive = receive
  }

  onClose(closed: (code: number) => void): void {
    if (this.#isOver) closed(1000)
    else this.#closers.push(closed)
  }

  /** Resolves when the client has room, by the window of its channel and by its connection. */
  async drained(): Promise<void> {
    await Promise.race([this.#written, this.#over])
    if (this.#isOver || this.#connection.writableLength <= maxBuffered) return
    // A connection that is lost ends its channels.
    await Promise.race([new Promise((resolve) => this.#connection.once('drain', resolve)), this.#over])
  }

  pause(): void {
    this.#channel.pause()
  }

  resume(): void {
    this.#channel.resume()
  }

  /** Passes what the client types to the service, until it types no more and the console is quiet. */
  passInput(quietMs: number): void {
    this.#channel.on('data', (bytes: Buffer) => this.type(bytes))
    this.#channel.on('end', () => this.finishWhenQuiet(quietMs))
  }

  type(bytes: Uint8Array): void {
    this.#receive?.(bytes)
  }

  /** Ends the channel when the console has been without output for a time, or after `withinMs`. `last` is shown then. */
  finishWhenQuiet(quietMs: number, withinMs?: number, last = () => ''): void {
    const finish = () => {
      if (!this.#isOver) this.#write(last())
      this.finish(0)
    }
    this.#quiet = setTimeout(finish, quietMs)
    if (withinMs !== undefined) {
      const timer = setTimeout(finish, withinMs)
      this.onClose(() => clearTimeout(timer))
    }
  }

  /** Ends the channel with an exit code, and a message for its user. */
  finish(exit: number, message?: string): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#quiet)
    this.#end()
    if (message !== undefined && message !== '') this.#channel.stderr.write(`${message}\r\n`)
    this.#channel.exit(exit)
    this.#channel.end()
    setTimeout(() => this.#channel.close(), farewellMs).unref()
    for (const closed of this.#closers) closed(1000)
  }

  #write(data: Uint8Array | string): void {
    this.#written = new Promise((resolve) => this.#channel.write(data, () => resolve()))
  }
}
