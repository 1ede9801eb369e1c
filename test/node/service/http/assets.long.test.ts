import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { TestService } from '../../../support/service.ts'

/** A script of the page as the bytes on the wire are. */
async function wire(url: string, headers: Record<string, string>) {
  const [answer] = (await once(get(`${url}/docs/rapidoc.js`, { headers }), 'response')) as [IncomingMessage]
  const { 'content-encoding': coding, etag, vary } = answer.headers
  return { status: answer.statusCode, coding, etag, vary, bytes: await buffer(answer) }
}

test('scripts are compressed for clients that take gzip, and each form has a tag of its own', async () => {
  const origin = 'https://lab.example'
  const { url } = await TestService.start({ allowed_origins: [origin] })
  const plain = await wire(url, {})
  expect(plain).toMatchObject({ status: 200, coding: undefined, vary: 'Accept-Encoding' })
  for (const accepted of ['gzip', 'br, gzip;q=0.5', '*']) {
    const small = await wire(url, { 'accept-encoding': accepted })
    expect(small).toMatchObject({ status: 200, coding: 'gzip', vary: 'Accept-Encoding' })
    expect(small.bytes.length).toBeLessThan(plain.bytes.length / 2)
    expect(gunzipSync(small.bytes).equals(plain.bytes)).toBe(true)
    expect(small.etag).not.toBe(plain.etag)
    const known = await wire(url, { 'accept-encoding': accepted, 'if-none-match': String(small.etag) })
    expect([known.status, known.bytes.length]).toEqual([304, 0])
  }
  for (const accepted of ['gzip;q=0', 'gzip; q=0.000', 'identity', 'x-gzipped'])
    expect(await wire(url, { 'accept-encoding': accepted })).toEqual(plain)
  const known = await wire(url, { 'if-none-match': String(plain.etag) })
  expect(known.status).toBe(304)
  expect((await wire(url, { origin })).vary).toBe('Accept-Encoding, Origin')
})
