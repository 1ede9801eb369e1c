import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'

/** An upload to a service that answers its requests with these statuses, one after the other. */
async function uploadTo(...statuses: readonly number[]) {
  const left = [...statuses]
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      response.statusCode = left.shift() ?? 500
      response.setHeader('content-type', 'application/json')
      response.end(response.statusCode >= 400 ? '{"message":"the reason"}' : undefined)
    })
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  vi.stubGlobal('location', new URL(origin))
  const { fetch } = globalThis
  // The page of the service is where its addresses begin.
  vi.stubGlobal('fetch', (url: string, init: RequestInit) => fetch(new URL(url, origin), init))
  onTestFinished(() => void vi.unstubAllGlobals())
  const { ImageUpload } = await import('../../../runtime/browser/parts/image-upload.ts')
  const upload = new ImageUpload('machine-emulator', new File(['disk'], 'disk.img'))
  await upload.run()
  return { state: upload.state.value, reason: upload.reason.value, left: left.length }
}

test('an upload goes on after a refusal only where another try can succeed', async () => {
  for (const status of [400, 403, 413])
    expect(await uploadTo(status)).toEqual({ state: 'refused', reason: 'the reason', left: 0 })
  for (const status of [401, 409])
    expect(await uploadTo(status)).toEqual({ state: 'failed', reason: 'the reason', left: 0 })
})

test('an upload is tried again by itself after a refusal of a moment', async () => {
  expect(await uploadTo(308, 429, 308, 204)).toEqual({ state: 'done', reason: '', left: 0 })
})
