/** The same bytes in pieces of `bytes`; the last may be smaller. workerd has pieces of 4 KiB, and each passes through all layers. */
export function inLargePieces(body: ReadableStream<Uint8Array>, bytes: number): ReadableStream<Uint8Array> {
  const reader = body.getReader({ mode: 'byob' })
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.readAtLeast(bytes, new Uint8Array(bytes))
        if (value !== undefined && value.byteLength > 0) controller.enqueue(value)
        if (done) controller.close()
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
