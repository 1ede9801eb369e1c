import { expect, test } from 'vitest'
import { imageKeeper } from '../../../../src/fleet/images/kept-images.ts'

test('keeping an image is retried while it is in the list of images to keep, and not for ever', async () => {
  const sha256 = 'a'.repeat(64)
  const image = { kind: 'iou', name: 'a', digest: { sha256, byAdmin: true } } as const
  const unkept = new Set<string>()
  const warned: string[] = []
  const work: Promise<unknown>[] = []
  const content = () => new Response('a').body as ReadableStream<Uint8Array>
  const agent = { images: { read: async () => ({ content: content(), size: 1 }) } }
  const keep = imageKeeper({
    members: { all: async () => [{ isConnected: true, agentFor: () => agent }] } as never,
    digests: { get: async () => image.digest },
    kept: {
      has: async () => false,
      write: async () => {
        throw new Error('it is too large')
      },
    } as never,
    unkept: { add: (it) => void unkept.add(it), remove: (it) => void unkept.delete(it) },
    waitUntil: (it) => work.push(it),
    warn: (message) => warned.push(message),
  })
  keep(image)
  await Promise.all(work)
  expect([...unkept]).toEqual([sha256])
  keep(image, true)
  await Promise.all(work)
  expect([[...unkept], warned.length]).toEqual([[sha256], 2])
  // The last attempt: a new entry would begin all attempts anew.
  unkept.delete(sha256)
  keep(image, true)
  await Promise.all(work)
  expect([[...unkept], warned.length]).toEqual([[], 3])
  expect(warned[0]).toBe('The image a could not be stored outside the computes: it is too large')
})
