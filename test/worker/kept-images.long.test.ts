import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer as createHttpServer, request } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { listening } from '../support/fleet.ts'
import { portOf } from '../support/gateway-lab.ts'
import { holding } from '../support/holding.ts'
import { hangMs } from '../support/limits.ts'
import { type Ask, askAs, call, joinCompute, makeOrganization } from '../support/organizations.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'
import { adminToken, WorkerGateway } from '../support/worker-gateway.ts'

const projects = '/v2/compute/projects'
const images = '/v2/compute/machine-emulator/images'
const embedded = { 'pc.engine': 'embedded' }
const bucket = 'IMAGES'

const sumOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const machine = { name: 'R1', platform: 'x86_64', qemu_path: 'qemu-system-x86_64', hda_disk_image: 'disk.img' }

/** A way to a gateway, and the paths that were asked for by it. */
async function watchedWay(to: string): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = []
  const { port } = new URL(to)
  const server = createServer((client) => {
    const gateway = connect(Number(port), '127.0.0.1')
    client.on('data', (data) => {
      const [, path] = /^GET (\S+) HTTP/.exec(data.toString('latin1')) ?? []
      if (path !== undefined) asked.push(path)
    })
    for (const [from, other] of [
      [client, gateway],
      [gateway, client],
    ] as const) {
      from.pipe(other)
      from.on('error', () => other.destroy())
      from.once('close', () => other.destroy())
    }
  })
  onTestFinished(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

testWith(requireProgram('qemu-system-x86_64'))(
  'an image that was uploaded is brought from R2 when no other compute has it, to one that has joined at a sealed address',
  async () => {
    const gateway = await WorkerGateway.start({}, [bucket])
    const register = (compute_id: string, service: TestService) =>
      gateway.call('POST', '/v2/computes', { compute_id, protocol: 'http', host: '127.0.0.1', port: portOf(service) })
    const way = await watchedWay(gateway.url)
    const { token } = await gateway.call('POST', '/v2/tokens', { name: 'lab', purpose: 'join' })
    const [first, second] = await Promise.all([TestService.start(embedded), TestService.start(embedded)])
    await register('first', first)
    const disk = randomBytes(300_000)
    expect((await gateway.fetch('POST', `${images}/disk.img`, undefined, { body: disk })).status).toBe(204)
    await expect.poll(() => gateway.keysIn(bucket), { timeout: hangMs }).toEqual([`default/${sumOf(disk)}`])
    await first.kill('SIGKILL')

    await register('second', second)
    const third = await TestService.start({ ...embedded, 'join.url': way.url, 'join.token': token })
    const joined = (await readFile(join(third.data, 'compute-id'), 'utf8')).trim()
    await gateway.untilConnected(joined)
    for (const [compute_id, service] of [['second', second] as const, [joined, third] as const]) {
      const { project_id } = await gateway.call('POST', projects, { name: `lab ${compute_id}`, compute_id })
      await gateway.call('POST', `${projects}/${project_id}/machine-emulator/nodes`, machine)
      const brought = await readFile(join(service.data, 'images/machine-emulator/disk.img'))
      expect([compute_id, brought.equals(disk)]).toEqual([compute_id, true])
    }

    const [address = '', ...others] = way.asked.filter((path) => path.startsWith('/v2/kept-images/'))
    expect(others).toEqual([])
    for (const told of ['default', 'disk', sumOf(disk), btoa(sumOf(disk)).slice(0, 20)])
      expect(address).not.toContain(told)
    const read = await fetch(gateway.url + address)
    expect(Buffer.from(await read.arrayBuffer()).equals(disk)).toBe(true)
    const at = address.length - 12
    const other = address.slice(0, at) + (address[at] === 'A' ? 'B' : 'A') + address.slice(at + 1)
    for (const path of [other, '/v2/kept-images/', `/v2/kept-images/default%2F${sumOf(disk)}`])
      expect((await fetch(gateway.url + path)).status).toBeGreaterThanOrEqual(400)
  },
)

testWith(requireProgram('qemu-system-x86_64'))(
  'an organization gets images only when it has uploaded them itself',
  async () => {
    const gateway = await WorkerGateway.start({ RATE_PER_S: '0' }, [bucket])
    const admin = askAs(() => gateway.url, adminToken)
    const member = async (name: string) => {
      const token = await makeOrganization(admin, name)
      const ask = askAs(() => gateway.url, token)
      const { service } = await joinCompute(gateway.url, ask, name)
      const upload = async (image: string, body: Uint8Array<ArrayBuffer>) => {
        const headers = { authorization: `Bearer ${token}` }
        const answer = await fetch(`${gateway.url}${images}/${image}`, { method: 'POST', headers, body })
        expect(answer.status).toBe(204)
      }
      return { ask, service, upload }
    }
    const keys = () => expect.poll(() => gateway.keysIn(bucket), { timeout: hangMs })
    const [alpha, beta] = [await member('alpha'), await member('beta')]
    const disk = new Uint8Array(randomBytes(100_000))
    const sum = sumOf(disk)
    await alpha.upload('disk.img', disk)
    await keys().toEqual([`alpha/${sum}`])

    const node = async (ask: Ask) => {
      const { project_id } = await call(ask, 'POST', projects, { name: 'lab' })
      return ask('POST', `${projects}/${project_id}/machine-emulator/nodes`, machine)
    }
    const missing = await node(beta.ask)
    expect([missing.status, await missing.json()]).toMatchObject([409, { image: 'disk.img' }])
    await beta.upload('other.img', disk)
    await keys().toEqual([`alpha/${sum}`, `beta/${sum}`])
    const stillMissing = await node(beta.ask)
    expect(stillMissing.status).toBe(409)
    await stillMissing.body?.cancel()

    // Another one has no image of that name; by its new name it is kept as before.
    const rename = async (ask: Ask, name: string, path: string) =>
      (await ask('PUT', `${images}/${name}`, { path })).status
    expect([await rename(beta.ask, 'disk.img', 'x.img'), await rename(alpha.ask, 'disk.img', 'new.img')]).toEqual([
      404, 204,
    ])
    await keys().toEqual([`alpha/${sum}`, `beta/${sum}`])

    // Of two names one holds the image.
    await alpha.upload('copy.img', disk)
    expect(await rename(alpha.ask, 'copy.img', 'new.img')).toBe(409)
    for (const [name, left] of [
      ['new.img', [`alpha/${sum}`, `beta/${sum}`]],
      ['copy.img', [`beta/${sum}`]],
    ] as const) {
      expect((await alpha.ask('DELETE', `${images}/${name}`)).status).toBe(204)
      await keys().toEqual(left)
    }
    expect((await admin('DELETE', '/v2/organizations/beta?force=yes')).status).toBe(204)
    expect(await gateway.keysIn(bucket)).toEqual([])
  },
)

testWith(requireProgram('qemu-system-x86_64'))(
  'an upload goes to one compute and to R2, and to the others when a node needs it',
  async () => {
    const gateway = await WorkerGateway.start({ RATE_PER_S: '0' }, [bucket])
    const admin = askAs(() => gateway.url, adminToken)
    const near = await TestService.start(embedded)
    const address = { protocol: 'http', host: '127.0.0.1', port: portOf(near) }
    await gateway.call('POST', '/v2/computes', { compute_id: 'near', ...address })
    const { id, service: far } = await joinCompute(gateway.url, admin, 'far')
    const [small, other] = [randomBytes(300_000), randomBytes(200_000)]
    const upload = async (body: Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
      (await gateway.fetch('POST', `${images}/disk.img`, undefined, { body, headers })).status
    const at = async ({ data }: TestService) =>
      readFile(join(data, 'images/machine-emulator/disk.img')).then(sumOf, () => undefined)
    // In two parts: both go to the same one.
    const part = (first: number, end: number) =>
      upload(new Uint8Array(small.subarray(first, end)), { 'content-range': `bytes ${first}-${end - 1}/300000` })
    expect([await part(0, 100_000), await part(100_000, 300_000)]).toEqual([308, 204])
    expect([await at(near), await at(far)].sort()).toEqual([sumOf(small), undefined])
    await expect.poll(() => gateway.keysIn(bucket), { timeout: hangMs }).toEqual([`default/${sumOf(small)}`])

    // By another name it is in R2 as before, and by the first one again, too.
    const rename = async (name: string, path: string) => {
      const answer = await gateway.fetch('PUT', `${images}/${name}`, { path })
      return [answer.status, await answer.text()]
    }
    expect(await rename('disk.img', 'new.img')).toEqual([204, ''])
    expect([await at(near), await at(far)]).toEqual([undefined, undefined])
    expect(await rename('new.img', 'disk.img')).toEqual([204, ''])
    expect(await gateway.keysIn(bucket)).toEqual([`default/${sumOf(small)}`])

    // Nodes of labs, and of projects on computes.
    const { project_id } = await gateway.call('POST', '/v2/projects', { name: 'lab' })
    for (const compute_id of ['near', id]) {
      const { name, ...properties } = machine
      const node = { name, node_type: 'machine-emulator', compute_id, properties }
      await gateway.call('POST', `/v2/projects/${project_id}/nodes`, node)
    }
    expect([await at(near), await at(far)]).toEqual([sumOf(small), sumOf(small)])

    // Its nodes need it, and keep its name.
    expect(await rename('disk.img', 'new.img')).toEqual([409, expect.stringMatching(/R[12]/)])
    expect([await at(near), await at(far)]).toEqual([sumOf(small), sumOf(small)])

    // Both have it now: both get what takes its place.
    expect(await upload(new Uint8Array(other))).toBe(204)
    expect([await at(near), await at(far)]).toEqual([sumOf(other), sumOf(other)])
    await expect.poll(() => gateway.keysIn(bucket), { timeout: hangMs }).toEqual([`default/${sumOf(other)}`])
  },
)

/** The port of a server that hands everything on to a service, but has other bytes of the image of that name. */
async function lyingAbout(service: TestService, name: string): Promise<number> {
  const server = createHttpServer((req, res) => {
    const { method, headers, url = '' } = req
    const asked = request(service.url + url, { method, headers }, (answer) => {
      const { statusCode = 502, headers: sent } = answer
      if (method !== 'GET' || !url.endsWith(`/${name}`)) return void answer.pipe(res.writeHead(statusCode, sent))
      answer.resume()
      res.writeHead(statusCode, sent).end('x'.repeat(Number(sent['content-length'])))
    })
    asked.on('error', () => res.destroy())
    req.pipe(asked)
  })
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return listening(server)
}

test('R2 has the last upload of a name, and no other image that a compute has under it', async () => {
  const [gateway, first] = await Promise.all([WorkerGateway.start({}, [bucket]), TestService.start(embedded)])
  const port = await lyingAbout(first, 'lied.img')
  await gateway.call('POST', '/v2/computes', { compute_id: 'first', protocol: 'http', host: '127.0.0.1', port })
  const upload = (name: string, body: string) => gateway.fetch('POST', `${images}/${name}`, undefined, { body })
  const keyOf = (body: string) => `default/${sumOf(Buffer.from(body))}`
  const keys = () => expect.poll(() => gateway.keysIn(bucket), { timeout: hangMs })
  expect((await upload('lied.img', 'lied')).status).toBe(204)
  // One after the other is kept.
  expect((await upload('a.img', 'one')).status).toBe(204)
  await keys().toEqual([keyOf('one')])
  expect((await upload('a.img', 'two')).status).toBe(204)
  await keys().toEqual([keyOf('two')])
})

test('R2 has images that were uploaded to one joined compute, whole or in parts', async () => {
  const gateway = await WorkerGateway.start({ RATE_PER_S: '0' }, [bucket])
  const { id, service } = await joinCompute(
    gateway.url,
    askAs(() => gateway.url, adminToken),
    'one',
  )
  const at = `/v2/computes/${id}/machine-emulator/images`
  const send = async (name: string, body: Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
    (await gateway.fetch('POST', `${at}/${name}`, undefined, { body, headers })).status
  const disk = new Uint8Array(randomBytes(300_000))
  expect(await send('whole.img', disk)).toBe(204)
  const [first, last] = [disk.slice(0, 200_000), disk.slice(100_000)]
  const both = Buffer.concat([first, last])
  expect(await send('parts.img', first, { 'content-range': 'bytes 0-199999/400000' })).toBe(308)
  expect(await send('parts.img', last, { 'content-range': 'bytes 200000-399999/400000' })).toBe(204)
  const expected = [`default/${sumOf(disk)}`, `default/${sumOf(both)}`].sort()
  await expect.poll(() => gateway.keysIn(bucket), { timeout: hangMs }).toEqual(expected)
  for (const [name, content] of [['whole.img', disk] as const, ['parts.img', both] as const]) {
    expect((await readFile(join(service.data, `images/machine-emulator/${name}`))).equals(content)).toBe(true)
    const read = await gateway.fetch('GET', `${at}/${name}`)
    expect(Buffer.from(await read.arrayBuffer()).equals(content)).toBe(true)
  }
})

test.each(['its compute', 'the gateway'])(
  'R2 gets an image later whose copy there broke off with %s',
  async (cause) => {
    const [gateway, service] = await Promise.all([WorkerGateway.start({}, [bucket]), TestService.start(embedded)])
    const { port, held, breakOff } = await holding(service, 'disk.img', 'GET')
    await gateway.call('POST', '/v2/computes', { compute_id: 'one', protocol: 'http', host: '127.0.0.1', port })
    const disk = randomBytes(1000)
    expect((await gateway.fetch('POST', `${images}/disk.img`, undefined, { body: disk })).status).toBe(204)
    await held
    if (cause === 'the gateway') await gateway.restart()
    breakOff()
    // The alarm of the directory does that: there is no request.
    await expect.poll(() => gateway.keysIn(bucket), { timeout: 2 * hangMs }).toEqual([`default/${sumOf(disk)}`])
  },
)
