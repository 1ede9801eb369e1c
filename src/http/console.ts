import type { ConsoleStream } from '../host-agent.ts'
import type { Socket } from './socket.ts'

/** Joins a websocket and a console until either ends. Output goes as binary frames; input may be text or binary. */
export function bridgeConsole(socket: Socket, console: ConsoleStream, over: AbortController): void {
  const writer = console.writable.getWriter()
  // The writer's own queue is the bound: what is typed while a guest does not read is dropped, as on a serial line.
  socket.onMessage((data) => {
    if ((writer.desiredSize ?? 0) <= 0) return
    writer.write(typeof data === 'string' ? new TextEncoder().encode(data) : data).catch(() => {})
  })
  socket.onClose(() => {
    over.abort()
    writer.close().catch(() => {})
  })
  void forward(console.readable, socket, over)
}

async function forward(readable: ReadableStream<Uint8Array>, socket: Socket, over: AbortController): Promise<void> {
  const reader = readable.getReader()
  over.signal.addEventListener('abort', () => void reader.cancel().catch(() => {}), { once: true })
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      socket.send(value)
      await socket.drained()
    }
    socket.close(1000, 'The node stopped')
  } catch {
    socket.close(1011, 'The console failed')
  } finally {
    over.abort()
  }
}
