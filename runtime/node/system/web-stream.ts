import type { Readable } from 'node:stream'

/**
 * The bytes of a Node stream as a web stream; cancelling one destroys the other. Readable.toWeb() would do, but what it still
 * gets after the cancel it throws where nobody can catch it, and the process ends.
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
