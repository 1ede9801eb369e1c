import { expect, test } from 'vitest'
import { openByteStreams, type WebSocketLike } from '../../../src/client/console.ts'
import { PatchbayError } from '../../../src/client/patchbay-error.ts'

/** A connection whose other end is played by the test. */
class Socket extends EventTarget implements WebSocketLike {
  binaryType = ''
  readonly bufferedAmount = 0
  isClosed = false
  send(): void {}
  close(): void {
    this.isClosed = true
  }
  tell(type: 'open' | 'message' | 'close', more: object = {}): void {
    this.dispatchEvent(Object.assign(new Event(type), more))
  }
}

test('a console whose reader has enough is closed, and what still comes is not read', async () => {
  const socket = new Socket()
  const opened = openByteStreams(socket, {
    lost: (what) => new PatchbayError(what, { status: 0, code: 'lost' }),
    signal: undefined,
  })
  socket.tell('open')
  const { readable, closed } = await opened
  await readable.cancel()
  expect(socket.isClosed).toBe(true)
  // An error of a listener would end the process.
  const faults: unknown[] = []
  const note = (error: unknown) => void faults.push(error)
  process.prependListener('uncaughtException', note)
  try {
    socket.tell('message', { data: 'late' })
    socket.tell('close', { code: 1000 })
    await closed
    await new Promise((resolve) => setImmediate(resolve))
  } finally {
    process.off('uncaughtException', note)
  }
  expect(faults).toEqual([])
})
