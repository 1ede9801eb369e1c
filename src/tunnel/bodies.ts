import { onAbort } from '../async/abort.ts'
import { ConnectionLost } from '../client/transport.ts'
import type { Stream } from './stream.ts'

/** The data of a stream as a body. Cancelling the body resets the stream. */
export function bodyOfStream(stream: Stream): ReadableStream<Uint8Array> {
  return new ReadableStream(
    {
      async pull(controller) {
        for (;;) {
          const piece = await stream.read()
          if (piece === undefined) return controller.close()
          if (piece.bytes.length > 0) return controller.enqueue(piece.bytes)
        }
      },
      cancel(reason) {
        stream.reset(reason instanceof Error ? reason : new Error('the reader has stopped'))
      },
    },
    // The stream buffers already.
    { highWaterMark: 0 },
  )
}

/** Sends a body that is complete in memory. */
export async function sendBytes(bytes: Uint8Array, stream: Stream): Promise<void> {
  await stream.write(bytes)
  stream.end()
}

/** Sends a body. `stop` is called when the other end takes no more of it. A body that fails resets the stream. */
export async function sendBody(
  body: ReadableStream<Uint8Array>,
  stream: Stream,
  stop: (reader: ReadableStreamDefaultReader<Uint8Array>) => void,
): Promise<void> {
  const reader = body.getReader()
  const { stopped } = stream
  const forget = onAbort(stopped, () => stop(reader))
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      await stream.write(value)
    }
    stream.end()
  } catch (error) {
    if (!stopped.aborted) stream.reset(new ConnectionLost((error as Error).message, { cause: error }))
  } finally {
    forget()
    reader.releaseLock()
  }
}
