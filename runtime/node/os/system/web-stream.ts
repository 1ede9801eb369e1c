import type { Readable } from 'node:stream'

/**
 * The bytes of a Node stream as a web stream; cancelling the web stream destroys the Node stream. Readable.toWeb() throws an
 * uncatchable error for data after the cancel, which ends the process.
 */
export function webStream(readable: Readable): ReadableStream<Uint8Array> {
  const pieces = readable[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await pieces.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      cancel() {
        readable.destroy()
      },
    },
    // The Node stream has a buffer already.
    { highWaterMark: 0 },
  )
}
