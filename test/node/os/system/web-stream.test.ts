import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { webStream } from '../../../../runtime/node/os/system/web-stream.ts'
import { hangMs } from '../../../support/limits.ts'
import { openReader } from '../../../support/pcap.ts'

test('all data of a Node stream is read, in order and to its end', async () => {
  const pieces = Array.from({ length: 100 }, (_, index) => Buffer.alloc(1000, index))
  const answer = new Response(webStream(Readable.from(pieces)))
  expect(Buffer.from(await answer.arrayBuffer())).toEqual(Buffer.concat(pieces))
})

test('no more data is read than requested', async () => {
  let taken = 0
  const source = new Readable({
    highWaterMark: 10_000,
    read() {
      taken += 1
      this.push(Buffer.alloc(1000))
    },
  })
  const reader = webStream(source).getReader()
  await reader.read()
  for (let turn = 0; turn < 20; turn++) await setImmediate()
  expect(taken).toBeLessThan(30)
  await reader.cancel()
  expect(source.destroyed).toBe(true)
})

test('the failure of the Node stream is that of the web stream', async () => {
  const failing = new Readable({ read: () => {} })
  const reading = webStream(failing).getReader().read()
  failing.destroy(new Error('the device is gone'))
  await expect(reading).rejects.toThrow('the device is gone')
})

test('cancelling while bytes wait causes no error, at any moment', async () => {
  for (let steps = 0; steps < 20; steps++) {
    const { far } = await openReader()
    far.removeAllListeners('data').pause()
    // As the service has it: what came with the keeper's answer is put back.
    far.unshift(Buffer.from('first'))
    const stream = webStream(far)
    // Steps within one turn: what the stream has begun comes after them.
    for (let step = 0; step < steps; step++) await Promise.resolve()
    await stream.cancel()
    await vi.waitFor(() => expect(far.closed).toBe(true), { timeout: hangMs })
  }
})
