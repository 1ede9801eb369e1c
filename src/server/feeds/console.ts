import type { ConsoleStream } from '../../host-agent.ts'
import { onAbort } from '../../lib/async/abort.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { withTimeout } from '../../lib/async/timeout.ts'
import type { Socket } from '../../lib/http/socket.ts'

/** Most bytes that wait for a guest that does not read. */
const maxWaiting = 1 << 20
/** How long the last input of a client may take to reach the guest after the client closed, ms. */
const flushMs = 1000

/** Joins a websocket and a console until either ends. Output goes as binary frames; input may be text or binary. */
export function bridgeConsole(socket: Socket, console: ConsoleStream, aborter: AbortController): void {
  const input = join(socket, console, aborter)
  const encoder = new TextEncoder()
  // Input is dropped while the guest does not read, as on a serial line.
  socket.onMessage((data) => void input.write(typeof data === 'string' ? encoder.encode(data) : data))
}

/** Shows a console on a websocket until either ends. What the client sends is dropped. */
export function watchConsole(socket: Socket, console: ConsoleStream, aborter: AbortController): void {
  join(socket, console, aborter)
  socket.onMessage(() => {})
}

/**
 * Joins a websocket and a screen until either ends. RFB (RFC 6143) cannot lose bytes, so a client that sends more than the guest
 * reads is disconnected.
 */
export function bridgeScreen(socket: Socket, screen: ConsoleStream, aborter: AbortController): void {
  const input = join(socket, screen, aborter)
  const refuse = (code: number, reason: string) => {
    socket.close(code, reason)
    aborter.abort()
  }
  socket.onMessage((data) => {
    if (aborter.signal.aborted) return
    if (typeof data === 'string') refuse(1003, 'A screen accepts binary frames only')
    else if (!input.write(data)) refuse(1008, 'Input was sent faster than the screen reads it')
  })
}

function join(socket: Socket, stream: ConsoleStream, aborter: AbortController): Input {
  const input = new Input(stream.writable)
  const client = new AbortController()
  socket.onClose(() => {
    client.abort()
    void input.end().finally(() => aborter.abort())
  })
  void forward(stream.readable, socket, client.signal, aborter)
  return input
}

/** Input for a guest. The queue of a WritableStream counts chunks; this one counts bytes. */
class Input {
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>
  #waiting = 0

  constructor(writable: WritableStream<Uint8Array>) {
    this.#writer = writable.getWriter()
  }

  /** Writes all of the bytes, or none; returns whether it wrote them. */
  write(bytes: Uint8Array): boolean {
    if (this.#waiting + bytes.length > maxWaiting) return false
    this.#waiting += bytes.length
    this.#writer.write(bytes).then(() => {
      this.#waiting -= bytes.length
    }, ignore('the console has ended'))
    return true
  }

  /** Resolves when the guest has all input, or after `flushMs`. */
  async end(): Promise<void> {
    // A guest that ended reads no more.
    const closed = this.#writer.close().catch(ignore('the console has ended'))
    await withTimeout(closed, flushMs, () => {})
  }
}

async function forward(
  readable: ReadableStream<Uint8Array>,
  socket: Socket,
  clientClosed: AbortSignal,
  aborter: AbortController,
): Promise<void> {
  const reader = readable.getReader()
  onAbort(aborter.signal, () => void reader.cancel().catch(ignore('the console has ended')))
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      // The guest may still read the last input; its output has no client any more.
      if (clientClosed.aborted) continue
      socket.send(value)
      await socket.drained()
    }
    socket.close(1000, 'The node stopped')
  } catch {
    socket.close(1011, 'The console failed')
  } finally {
    aborter.abort()
  }
}
