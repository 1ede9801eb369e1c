import { ConnectionLost } from '../remote/transport.ts'
import type { Stream } from './stream.ts'

interface BodyOptions {
  /** Default: resets the stream. */
  readonly cancel?: (reason: Error) => void
  /** The bytes that were announced; a body with another number fails. */
  readonly size?: number | undefined
}

/** The data of a stream as a body. */
export function bodyOfStream(
  stream: Stream,
  { cancel = (reason) => stream.reset(reason), size }: BodyOptions = {},
): ReadableStream<Uint8Array> {
  let left = size ?? Number.POSITIVE_INFINITY
  const wrong = (): never => {
    const error = new ConnectionLost(`its body is not ${size} bytes long, as it announced`)
    stream.reset(error)
    throw error
  }
  return new ReadableStream(
    {
      async pull(controller) {
        for (;;) {
          const piece = await stream.read()
          if (piece === undefined) return size !== undefined && left > 0 ? wrong() : controller.close()
          left -= piece.bytes.length
          if (left < 0) wrong()
          if (piece.bytes.length > 0) return controller.enqueue(piece.bytes)
        }
      },
      cancel(reason) {
        cancel(reason instanceof Error ? reason : new Error('the reader has stopped'))
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

/** Least bytes of a read, where the body can be read so, and the size of the buffer. */
const minBytes = 32 * 1024
const bufferBytes = 2 * minBytes

type Reader = Pick<ReadableStreamDefaultReader<Uint8Array>, 'cancel' | 'releaseLock'> & {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
}

export interface SendBodyOptions {
  /** Called when the other end takes no more of it. */
  readonly stop: (reader: Pick<Reader, 'cancel' | 'releaseLock'>) => void
  /** Whether the body is read in large pieces: runtimes may have small ones. Not for a live stream, whose pieces must not wait for more. */
  readonly isLarge?: boolean
  /** The error of the stream when the body fails. Default: the connection was lost. */
  readonly failure?: (cause: unknown) => Error
}

const lost = (cause: unknown): Error => new ConnectionLost((cause as Error).message, { cause })

/** Sends a body. A body that fails resets the stream. */
export async function sendBody(
  body: ReadableStream<Uint8Array>,
  stream: Stream,
  { stop, isLarge = false, failure = lost }: SendBodyOptions,
): Promise<void> {
  const reader = (isLarge ? largeReader(body) : undefined) ?? body.getReader()
  const forget = stream.onStop(() => stop(reader))
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (value !== undefined && value.byteLength > 0) await stream.write(value)
      if (done) break
    }
    stream.end()
  } catch (error) {
    if (stream.stopReason === undefined) stream.reset(failure(error))
  } finally {
    forget()
    reader.releaseLock()
  }
}

/** Reads a byte stream into one buffer, which is used again once the piece was written; undefined for another stream. */
function largeReader(body: ReadableStream<Uint8Array>): Reader | undefined {
  let reader: ReadableStreamBYOBReader
  try {
    reader = body.getReader({ mode: 'byob' })
  } catch {
    return undefined
  }
  let buffer = new ArrayBuffer(bufferBytes)
  return {
    cancel: (reason) => reader.cancel(reason),
    releaseLock: () => reader.releaseLock(),
    async read() {
      const result = await reader.read(new Uint8Array(buffer), { min: minBytes })
      if (result.value !== undefined) buffer = result.value.buffer
      return result
    },
  }
}
