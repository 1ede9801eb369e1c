import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { contentAtGateway } from '../../../../runtime/node/service/join/content-at-gateway.ts'
import { listening } from '../../../support/fleet.ts'

const header = 'x-patchbay-content-at'

/** A gateway below a path, with one image; its address, and what it was asked. */
async function gatewayWithImage(): Promise<{ url: string; asked: { path: string; headers: object }[] }> {
  const asked: { path: string; headers: object }[] = []
  const server = createServer(({ url: path = '', headers }, res) => {
    asked.push({ path, headers })
    if (path === '/below/v2/kept-images/v1.there') res.end('the image')
    else if (path === '/below/v2/kept-images/v1.elsewhere') res.writeHead(302, { Location: '/below/other' }).end()
    else res.writeHead(404).end()
  })
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `ws://127.0.0.1:${await listening(server)}/below`, asked }
}

const upload = (headers: Record<string, string>, body?: string) =>
  new Request('http://localhost/v2/compute/machine-emulator/images/a.img', {
    ...{ method: 'POST', headers },
    ...(body !== undefined && { body }),
  })

test('the content of an upload is read at the gateway when a header says so, and else in the body', async () => {
  const { url, asked } = await gatewayWithImage()
  const read = contentAtGateway(url)
  const given = await read(upload({ [header]: '/v2/kept-images/v1.there', 'repr-digest': 'sha-256=:x:' }))
  expect(given).toBeInstanceOf(Request)
  expect(await given.text()).toBe('the image')
  const names = [...given.headers.keys()]
  expect(names).toContain('repr-digest')
  expect(names).not.toContain(header)
  const [{ headers } = { headers: {} }] = asked
  for (const name of ['authorization', 'cookie', 'repr-digest']) expect(headers).not.toHaveProperty(name)

  const own = upload({}, 'its own')
  expect(await read(own)).toBe(own)
  expect(asked).toHaveLength(1)
})

test('only images of the gateway are read, and a missing one is reported', async () => {
  const { url, asked } = await gatewayWithImage()
  const read = contentAtGateway(url)
  const wrong = ['/v2/computes', '//other.example/v2/kept-images/v1.x', 'http://other.example/', '/v2/kept-images/']
  const leading = ['../computes', '%2e%2e/computes', '..', 'v1.x/../../computes', 'v1.x?y', 'v1.x#y', '@other.example']
  for (const path of [...wrong, ...leading.map((it) => `/v2/kept-images/${it}`)]) {
    const refused = await read(upload({ [header]: path }))
    expect([path, refused instanceof Response && refused.status]).toEqual([path, 400])
  }
  expect(asked).toEqual([])
  for (const name of ['v1.missing', 'v1.elsewhere']) {
    const missing = await read(upload({ [header]: `/v2/kept-images/${name}` }))
    expect([name, missing instanceof Response && missing.status]).toEqual([name, 502])
  }
  expect(asked.map(({ path }) => path)).not.toContain('/below/other')
})
