import { withTimeout } from '../async/timeout.ts'
import type { ConsoleStream } from '../host-agent.ts'
import type { Socket } from '../http/socket.ts'

/** Most bytes of a message; a compute takes no larger ones than 1 MiB. */
const messageBytes = 64 << 10
/** As much is read ahead. */
const ahead = 256 << 10

export interface SocketStreamOptions {
  readonly signal: AbortSignal
  /** Most bytes that wait for a reader; more end it, where the runtime cannot hold the other end up. */
  readonly maxWaiting: number
  /** How long the other end may not take what is sent, ms. */
  readonly idleMs: number
  /** The error for whoever uses the streams. */
  readonly failed: (what: string) => Error
}

/** An open websocket as a pair of streams; the end of either is that of both. */
export class SocketStream implements ConsoleStream {
  readonly readable: ReadableStream<Uint8Array>
  readonly writable: WritableStream<Uint8Array>
  readonly #socket: Socket
  readonly #options: SocketStreamOptions
  readonly #encoder = new TextEncoder()
  readonly #left = () => this.close()
  #isOver = false
  #output: ReadableStreamDefaultController<Uint8Array> | undefined
  #input: WritableStreamDefaultController | undefined

  constructor(socket: Socket, options: SocketStreamOptions) {
    this.#socket = socket
    this.#options = options
    this.readable = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#output = controller
        },
        pull: () => socket.resume?.(),
        cancel: () => {
          this.#output = undefined
          this.close()
        },
      },
      new ByteLengthQueuingStrategy({ highWaterMark: ahead }),
    )
    this.writable = new WritableStream<Uint8Array>({
      start: (controller) => {
        this.#input = controller
      },
      write: (bytes) => this.#send(bytes),
      close: () => this.close(),
      abort: () => this.close(),
    })
    socket.onMessage((data) => this.#take(typeof data === 'string' ? this.#encoder.encode(data) : data))
    socket.onClose((code) => this.#end(code === 1000 ? undefined : options.failed(`ended (${code})`)))
    options.signal.addEventListener('abort', this.#left)
    if (options.signal.aborted) this.close()
  }

  /** A polite end. */
  close(): void {
    this.#end(undefined)
  }

  /** The first end counts. */
  #end(error: Error | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#options.signal.removeEventListener('abort', this.#left)
    // A socket that is paused hears no answer to its close.
    this.#socket.resume?.()
    this.#socket.close(1000)
    if (error === undefined) this.#output?.close()
    else this.#output?.error(error)
    this.#input?.error(error ?? this.#options.failed('was closed'))
  }

  #take(bytes: Uint8Array): void {
    const output = this.#output
    if (this.#isOver || output === undefined) return
    output.enqueue(bytes)
    const room = output.desiredSize ?? 0
    if (room <= 0) this.#socket.pause?.()
    if (ahead - room > this.#options.maxWaiting) this.#end(this.#options.failed('tells more than is read'))
  }

  async #send(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length && !this.#isOver; at += messageBytes) {
      this.#socket.send(bytes.subarray(at, at + messageBytes))
      if (!(await this.#hasLeft())) this.#end(this.#options.failed('does not take what is sent'))
    }
  }

  /** Whether little of what was sent still waits; false when that takes too long. */
  #hasLeft(): Promise<boolean> {
    const drained = this.#socket.drained().then(() => true)
    return withTimeout(drained, this.#options.idleMs, () => false)
  }
}
