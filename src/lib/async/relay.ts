import { onAbort } from './abort.ts'
import { ignore } from './ignore.ts'
import { withTimeout } from './timeout.ts'

export interface RelayOptions<T> {
  /** Its abort ends both streams with its reason. */
  readonly signal?: AbortSignal
  /** Longest wait for a chunk, ms; then both streams fail. */
  readonly idleMs?: number
  /** Most bytes; a longer stream fails. */
  readonly maxBytes?: number
  /** Called with each chunk before the reader gets it. */
  readonly onPiece?: (piece: T) => void | Promise<void>
  /** Called once: at the end, at an error, or when the reader cancels. */
  readonly onEnd?: () => void
}

/** A stream of the same chunks, without a buffer of its own. */
export function relay<T = Uint8Array>(
  body: ReadableStream<T>,
  { signal, idleMs, maxBytes = Number.POSITIVE_INFINITY, onPiece, onEnd }: RelayOptions<T>,
): ReadableStream<T> {
  const reader = body.getReader()
  let forget = () => {}
  let size = 0
  let isEnded = false
  const end = (): void => {
    if (isEnded) return
    isEnded = true
    forget()
    onEnd?.()
  }
  const stop = (reason: unknown): void => {
    end()
    reader.cancel(reason).catch(ignore('the reader of the relayed stream gets the error'))
  }
  const fail = (): never => {
    throw new Error(`no data arrived for ${idleMs} ms`)
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
          const { done, value } = await (idleMs === undefined ? piece : withTimeout(piece, idleMs, fail))
          if (isEnded) return
          if (done) {
            end()
            return controller.close()
          }
          if (value instanceof Uint8Array) size += value.byteLength
          if (size > maxBytes) throw new Error(`it has more than ${maxBytes} bytes`)
          await onPiece?.(value)
          controller.enqueue(value)
        } catch (error) {
          if (isEnded) return
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
