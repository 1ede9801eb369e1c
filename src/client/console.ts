import { onAbort } from '../lib/async/abort.ts'
import type { PatchbayError } from './patchbay-error.ts'

/** A console, or another connection that carries bytes both ways. */
export interface ByteStreams {
  /** Ends when the other end closes; an error when the connection is lost. */
  readonly readable: ReadableStream<Uint8Array>
  readonly writable: WritableStream<Uint8Array | string>
  /** Resolves when the connection has ended. */
  readonly closed: Promise<void>
  close(): void
}

/** The part of a WebSocket of browsers that is used; that of the package `ws` has it, too. */
export interface WebSocketLike {
  binaryType: string
  readonly bufferedAmount: number
  send(data: string | Uint8Array<ArrayBuffer>): void
  close(code?: number): void
  addEventListener(type: 'open' | 'message' | 'close' | 'error', listener: (event: object) => void): void
}
export type WebSocketMaker = new (url: string) => WebSocketLike

/** Pieces that may wait for a slow reader; more of them end the connection, as a websocket cannot be paused. */
const maxWaiting = 4096
/** Above this, a writer waits, bytes. */
const maxBuffered = 256 * 1024
const drainMs = 10

/** A websocket as streams; resolves when it is open. `lost` makes errors. */
export function openByteStreams(
  socket: WebSocketLike,
  { lost, signal }: { lost: (what: string) => PatchbayError; signal: AbortSignal | undefined },
): Promise<ByteStreams> {
  socket.binaryType = 'arraybuffer'
  return new Promise((resolve, reject) => {
    let isOpen = false
    let hasEnded = false
    let output: ReadableStreamDefaultController<Uint8Array> | undefined
    let ended = () => {}
    const closed = new Promise<void>((done) => {
      ended = done
    })
    const forget = onAbort(signal, () => {
      socket.close()
      reject(signal?.reason)
    })
    const end = (error?: PatchbayError) => {
      if (hasEnded) return
      hasEnded = true
      forget()
      if (!isOpen) reject(error ?? lost('closed the console'))
      else if (error === undefined) output?.close()
      else output?.error(error)
      ended()
    }
    const readable = new ReadableStream<Uint8Array>(
      {
        start(controller) {
          output = controller
        },
        cancel() {
          // A stream that was cancelled takes no bytes and no end any more.
          output = undefined
          socket.close()
        },
      },
      { highWaterMark: maxWaiting },
    )
    const writable = new WritableStream<Uint8Array | string>({
      async write(data) {
        if (hasEnded) throw lost('has closed the console')
        socket.send(data as string | Uint8Array<ArrayBuffer>)
        while (socket.bufferedAmount > maxBuffered && !hasEnded)
          await new Promise((resume) => setTimeout(resume, drainMs))
      },
      close: () => socket.close(),
      abort: () => socket.close(),
    })
    socket.addEventListener('open', () => {
      isOpen = true
      resolve({ readable, writable, closed, close: () => socket.close() })
    })
    socket.addEventListener('message', (event) => {
      const { data } = event as { data: string | ArrayBuffer }
      if (hasEnded) return
      output?.enqueue(typeof data === 'string' ? new TextEncoder().encode(data) : new Uint8Array(data))
      if ((output?.desiredSize ?? 1) > 0) return
      end(lost('sends faster than this program reads'))
      socket.close()
    })
    socket.addEventListener('error', (event) => {
      const { message } = event as { message?: string }
      end(lost(`refuses the console, or was lost${message === undefined ? '' : `: ${message}`}`))
    })
    socket.addEventListener('close', (event) =>
      end((event as { code: number }).code === 1006 ? lost('lost the connection') : undefined),
    )
  })
}
