/** A body of these pieces. */
export function bodyOf(...pieces: readonly string[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece))
      controller.close()
    },
  })
}

/** A body of which the second piece comes when `more` is called, and which fails with `fail`. */
export function slowBody(first: string) {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  let pulled: () => void = () => {}
  const wanted = new Promise<void>((resolve) => (pulled = resolve))
  const stream = new ReadableStream<Uint8Array>(
    {
      start(it) {
        controller = it
        it.enqueue(new TextEncoder().encode(first))
      },
      pull: () => pulled(),
    },
    { highWaterMark: 0 },
  )
  return {
    stream,
    /** Resolves when the first piece has been taken and the next one is waited for. */
    wanted,
    more: (text: string) => {
      controller?.enqueue(new TextEncoder().encode(text))
      controller?.close()
    },
    fail: () => controller?.error(new Error('the client has gone')),
  }
}

export const textOf = async (content: ReadableStream<Uint8Array>): Promise<string> => new Response(content).text()
