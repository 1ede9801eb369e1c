import { ApiError } from '../../lib/errors/api-error.ts'

/** How long one reader may delay the others, ms: less than a compute waits for the next piece of a body. */
const stallMs = 20_000

/**
 * The same bytes for several readers, at the speed of the slowest. A reader that cancels, or that reads nothing for `stallMs`, is dropped.
 */
export function splitStream(source: ReadableStream<Uint8Array>, count: number): ReadableStream<Uint8Array>[] {
  const reader = source.getReader()
  const readers = new Set<ReadableStreamDefaultController<Uint8Array>>()
  const waiting = new Set<ReadableStreamDefaultController<Uint8Array>>()
  let resolvers: (() => void)[] = []
  let isReading = false
  let stalled: ReturnType<typeof setTimeout> | undefined

  const settle = () => {
    const done = resolvers
    resolvers = []
    for (const resolve of done) resolve()
  }
  const dropSlow = () => {
    stalled = undefined
    for (const controller of readers) {
      if (waiting.has(controller)) continue
      readers.delete(controller)
      controller.error(new ApiError(504, `It read nothing of the body for ${stallMs / 1000} s`))
    }
    void advance()
  }
  /** Reads the next piece when all readers have taken the last one. */
  const advance = async (): Promise<void> => {
    if (isReading || readers.size === 0 || waiting.size === 0) return
    if (waiting.size < readers.size) {
      stalled ??= setTimeout(dropSlow, stallMs)
      return
    }
    clearTimeout(stalled)
    stalled = undefined
    isReading = true
    try {
      const { done, value } = await reader.read()
      for (const controller of readers) {
        if (done) controller.close()
        else controller.enqueue(value.slice())
      }
      if (done) readers.clear()
    } catch (error) {
      for (const controller of readers) controller.error(error)
      readers.clear()
    } finally {
      isReading = false
      waiting.clear()
      settle()
    }
  }
  return Array.from({ length: count }, () => {
    let own: ReadableStreamDefaultController<Uint8Array>
    return new ReadableStream<Uint8Array>(
      {
        start(controller) {
          own = controller
          readers.add(controller)
        },
        pull(controller) {
          waiting.add(controller)
          const taken = new Promise<void>((resolve) => resolvers.push(resolve))
          void advance()
          return taken
        },
        async cancel(reason) {
          readers.delete(own)
          waiting.delete(own)
          if (readers.size > 0) return void advance()
          clearTimeout(stalled)
          await reader.cancel(reason)
        },
      },
      { highWaterMark: 0 },
    )
  })
}
