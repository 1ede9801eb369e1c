import { createHash, randomBytes } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Compute } from '../../../../src/model/compute.ts'
import { slowBody } from '../../../support/bodies.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { figure, parseExposition } from '../../../support/exposition.ts'
import { TestService } from '../../../support/service.ts'

const secret = 'Geheim-7f3a'
const embedded = { 'pc.engine': 'embedded' }
const protectedBy = { user: 'anna', password: secret }
const portOf = (service: TestService): number => Number(new URL(service.url).port)
const compute = '/v2/computes/two'

/** Registers a service at another. */
async function register(gateway: TestService, service: TestService, more: object = {}): Promise<Compute> {
  const input = { compute_id: 'two', protocol: 'http', host: '127.0.0.1', port: portOf(service), ...more }
  return gateway.call<Compute>('POST', '/v2/computes', input)
}

const shown = (gateway: TestService) => gateway.call<Compute>('GET', compute)
const status = async (gateway: TestService, path: string) => (await gateway.fetch(path)).status

test('a lab runs on another service: images, nodes, events, and cancelled requests', async () => {
  const [gateway, service] = await Promise.all([
    TestService.start({ ...embedded }),
    TestService.start({ ...embedded, ...protectedBy }),
  ])
  expect(await register(gateway, service, protectedBy)).toMatchObject({
    ...{ connected: true, user: 'anna', capabilities: { platform: 'linux' } },
  })
  const direct = { authorization: `Basic ${btoa(`anna:${secret}`)}` }
  // An image of some megabytes goes there in one piece, and comes back in two.
  const image = randomBytes(12 * 2 ** 20)
  const images = `${compute}/machine-emulator/images`
  const sum = createHash('md5').update(image).digest('hex')
  const upload = (query: string, body: BodyInit, headers = {}) =>
    gateway.fetch(`${images}/big.img${query}`, { method: 'POST', body, headers, duplex: 'half' } as RequestInit)
  expect((await upload(`?md5sum=${'0'.repeat(32)}`, image)).status).toBe(400)
  expect((await upload(`?md5sum=${sum}`, new Blob([image]).stream())).status).toBe(204)
  expect(await gateway.call('GET', images)).toMatchObject([
    { filename: 'big.img', md5sum: sum, filesize: image.length },
  ])
  const range = await gateway.fetch(`${images}/big.img`, { headers: { range: `bytes=${image.length - 70_000}-` } })
  expect([range.status, range.headers.get('content-length')]).toEqual([206, '70000'])
  expect(Buffer.from(await range.arrayBuffer()).equals(image.subarray(-70_000))).toBe(true)
  const whole = await gateway.fetch(`${images}/big.img`)
  const etag = whole.headers.get('etag') ?? ''
  expect(
    createHash('md5')
      .update(Buffer.from(await whole.arrayBuffer()))
      .digest('hex'),
  ).toBe(sum)
  const same = await gateway.fetch(`${images}/big.img`, { headers: { 'if-none-match': etag } })
  expect([same.status, await same.text()]).toEqual([304, ''])
  const part = await upload('', image.subarray(0, 1000), { 'content-range': `bytes 0-999/2000` })
  expect([part.status, part.headers.get('range')]).toEqual([308, 'bytes=0-999'])
  const missing = await gateway.fetch(`${images}/none.img`)
  expect([missing.status, await missing.json()]).toMatchObject([409, { status: 409, image: 'none.img' }])

  // A project and a node there, and its events here.
  const input = { method: 'POST', headers: direct, body: '{"name": "lab"}' }
  const lab = await service.fetch('/v2/compute/projects', input)
  const { project_id: project } = (await lab.json()) as { project_id: string }
  const over = new AbortController()
  const feed = await gateway.fetch(`${compute}/projects/${project}/notifications`, { signal: over.signal })
  const lines = feed.body?.pipeThrough(new TextDecoderStream()).getReader()
  expect((await lines?.read())?.value).toContain('"ping"')
  const nodes = `${compute}/projects/${project}/pc/nodes`
  const created = await gateway.fetch(nodes, { method: 'POST', body: '{"name": "PC1"}' })
  expect(created.status).toBe(201)
  const { node_id } = (await created.json()) as { node_id: string }
  expect((await lines?.read())?.value).toContain('"node.created"')
  expect((await gateway.fetch(`${nodes}/${node_id}/start`, { method: 'POST' })).status).toBe(200)
  expect((await lines?.read())?.value).toContain('"started"')
  expect((await gateway.fetch(`${nodes}/${node_id}`, { method: 'PUT', body: '{"name": "PC2"}' })).status).toBe(200)
  const feeds = async () => {
    const text = await (await service.fetch('/metrics', { headers: direct })).text()
    return figure(parseExposition(text), 'patchbay_feeds_open')
  }
  // The gateway's own and this one; what a client leaves is left at the compute, too.
  expect(await feeds()).toBe(2)
  over.abort()
  await expect.poll(feeds).toBe(1)

  // An upload that breaks off leaves nothing.
  const broken = new AbortController()
  const half = slowBody('x'.repeat(2 ** 20))
  const init = { method: 'POST', body: half.stream, duplex: 'half', signal: broken.signal } as RequestInit
  const files = () => readdir(join(service.data, 'images/machine-emulator'))
  const before = await files()
  void half.wanted.then(() => broken.abort())
  await expect(gateway.fetch(`${images}/half.img`, init)).rejects.toThrow()
  await expect.poll(files).toEqual(before)
})

test('a killed compute is shown as not connected, and is connected again after its start', async () => {
  const log = join(await freshDirectory(), 'log')
  const launcher = ['sh', '-c', `exec "$@" --log-level debug 2>>${log}`, 'sh']
  const [gateway, service] = await Promise.all([
    TestService.start({ ...embedded }, launcher),
    TestService.start({ ...embedded, ...protectedBy }),
  ])
  const wrong = await gateway.fetch('/v2/computes', {
    method: 'POST',
    body: JSON.stringify({ protocol: 'http', host: '127.0.0.1', port: portOf(service), user: 'anna', password: 'no' }),
  })
  expect([wrong.status, await wrong.json()]).toMatchObject([409, { message: /refuses the user and password/ }])
  expect(await gateway.call<Compute[]>('GET', '/v2/computes')).toHaveLength(1)
  await register(gateway, service, protectedBy)

  const port = portOf(service)
  const becomes = (connected: boolean) => expect.poll(async () => (await shown(gateway)).connected).toBe(connected)
  await service.kill('SIGKILL')
  await becomes(false)
  await service.restart(port)
  await becomes(true)
  await service.kill('SIGKILL')
  await becomes(false)
  const told: number[] = []
  for (let n = 0; n < 4; n++) told.push(await status(gateway, `${compute}/network/interfaces`))
  expect(told[0]).toBe(409)
  expect(told.at(-1)).toBe(503)
  const refused = await gateway.fetch(`${compute}/network/interfaces`)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(await shown(gateway)).toMatchObject({
    ...{ cpu_usage_percent: null, last_error: expect.stringContaining('ECONNREFUSED') },
  })

  // What is known is known after a restart, and nobody else can read it.
  await gateway.end()
  const file = join(gateway.data, 'computes.json')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(await readFile(file, 'utf8')).toContain(secret)
  await service.restart(port)
  await gateway.restart()
  expect(await shown(gateway)).toMatchObject({ compute_id: 'two', user: 'anna' })
  await becomes(true)
  expect(await shown(gateway)).toMatchObject({ last_error: null })
  // What is not named in a change is kept, the password too.
  await gateway.call('PUT', compute, { name: 'renamed' })
  await expect.poll(() => status(gateway, `${compute}/network/interfaces`)).toBe(200)
  expect(await shown(gateway)).toMatchObject({ name: 'renamed', user: 'anna' })

  expect((await gateway.fetch(compute, { method: 'DELETE' })).status).toBe(204)
  expect(await readFile(file, 'utf8')).not.toContain(secret)
  await gateway.end()
  const written = await readFile(log, 'utf8')
  expect(written).toContain('compute.updated')
  expect(written).not.toContain(secret)
  expect(written).not.toContain(btoa(`anna:${secret}`))
})
