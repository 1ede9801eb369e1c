import { onAbort } from './abort.ts'
import { ignore } from './ignore.ts'
import { withTimeout } from './timeout.ts'

export interface RelayOptions<T> {
  /** Ends the stream with its reason, and what is relayed. */
  readonly signal?: AbortSignal
  /** How long a reader may wait for a piece, ms. */
  readonly idleMs?: number
  /** Most bytes; a stream of more fails. */
  readonly maxBytes?: number
  /** Sees each piece before it goes on. */
  readonly onPiece?: (piece: T) => void | Promise<void>
  /** Called once: at the end, at an error, or when the reader goes. */
  readonly onEnd?: () => void
}

/** The same pieces, each read when it is asked for. */
export function relay<T = Uint8Array>(
  body: ReadableStream<T>,
  { signal, idleMs, maxBytes = Number.POSITIVE_INFINITY, onPiece, onEnd }: RelayOptions<T>,
): ReadableStream<T> {
  const reader = body.getReader()
  let forget = () => {}
  let size = 0
  let isOver = false
  const end = (): void => {
    if (isOver) return
    isOver = true
    forget()
    onEnd?.()
  }
  const stop = (reason: unknown): void => {
    end()
    reader.cancel(reason).catch(ignore('its source may have failed; the reader of this stream is told why it ends'))
  }
  const late = (): never => {
    throw new Error(`nothing came for ${idleMs} ms`)
  }
  return new ReadableStream<T>(
    {
      start(controller) {
        forget = onAbort(signal, () => {
          controller.error(signal?.reason)
          stop(signal?.reason)
        })
      },
      async pull(controller) {
        try {
          const piece = reader.read()
          const { done, value } = await (idleMs === undefined ? piece : withTimeout(piece, idleMs, late))
          if (isOver) return
          if (done) {
            end()
            return controller.close()
          }
          if (value instanceof Uint8Array) size += value.byteLength
          if (size > maxBytes) throw new Error(`it has more than ${maxBytes} bytes`)
          await onPiece?.(value)
          controller.enqueue(value)
        } catch (error) {
          if (isOver) return
          stop(error)
          controller.error(error)
        }
      },
      async cancel(reason) {
        end()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
