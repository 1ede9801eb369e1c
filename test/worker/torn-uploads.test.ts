import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { TestService } from '../support/service.ts'
import {
  everyWay,
  expectTornUploadsChangeNothing,
  halfSent,
  imagesOf,
  projects,
  sentWithTwoLengths,
  tear,
  untilInFlight,
} from '../support/torn-uploads.ts'
import { adminToken, WorkerGateway } from '../support/worker-gateway.ts'

const startWorker = async () => Object.assign(await WorkerGateway.start(), { token: adminToken })

test('an upload whose connection breaks changes nothing on computes with an address, and they stay connected', async () => {
  const [gateway, a, b] = await Promise.all([
    startWorker(),
    TestService.start({ 'pc.engine': 'embedded' }),
    TestService.start({ 'pc.engine': 'embedded' }),
  ])
  await expectTornUploadsChangeNothing(gateway, a, b)
})

test('an upload whose connection breaks changes nothing on a compute that has joined, and a download is not whole', async () => {
  const gateway = await startWorker()
  const { token } = await gateway.call('POST', '/v2/tokens', { name: 'lab', purpose: 'join' })
  const service = await TestService.start({
    ...{ 'pc.engine': 'embedded' },
    ...{ 'join.url': gateway.url.replace('http', 'ws'), 'join.token': token },
  })
  const id = (await readFile(join(service.data, 'compute-id'), 'utf8')).trim()
  await gateway.untilConnected(id)
  const { project_id } = await gateway.call('POST', projects, { name: 'lab' })
  const file = `${projects}/${project_id}/files/notes.txt`
  expect((await gateway.fetch('POST', file, undefined, { body: 'kept' })).ok).toBe(true)
  const reached = (count: number) => untilInFlight(() => service.fetch('/metrics'), count)
  const paths = [
    file,
    `/v1/projects/${project_id}/files/notes.txt`,
    '/v2/compute/machine-emulator/images/v2.img',
    `/v2/computes/${id}/machine-emulator/images/handed-on.img`,
  ]
  for (const path of paths)
    for (const way of everyWay) {
      await tear(gateway, { path, ...way }, () => reached(1))
      await reached(0)
      const kept = [await (await gateway.fetch('GET', file)).text(), await imagesOf([service])]
      expect([path, way, ...kept]).toEqual([path, way, 'kept', []])
    }
  expect((await gateway.fetch('POST', file, undefined, { body: 'whole' })).ok).toBe(true)
  expect(await (await gateway.fetch('GET', file)).text()).toBe('whole')

  // More than sockets and the window of the tunnel hold.
  const bytes = 24 * 2 ** 20
  const image = `/v2/computes/${id}/machine-emulator/images/large.img`
  expect((await gateway.fetch('POST', image, undefined, { body: new Uint8Array(bytes) })).status).toBe(204)
  const ways = [image, '/v2/compute/machine-emulator/images/large.img']
  for (const path of ways) expect((await (await gateway.fetch('GET', path)).arrayBuffer()).byteLength).toBe(bytes)
  const answers = await Promise.all(ways.map((path) => gateway.fetch('GET', path)))
  await service.kill('SIGKILL')
  for (const answer of answers) {
    expect(answer.headers.get('content-length')).toBe(String(bytes))
    await expect(answer.arrayBuffer()).rejects.toThrow()
  }
})

test('a client that ends its side of the connection in the middle of a body is told so, and computes stay connected', async () => {
  const [gateway, near] = await Promise.all([startWorker(), TestService.start({ 'pc.engine': 'embedded' })])
  const { token } = await gateway.call('POST', '/v2/tokens', { name: 'lab', purpose: 'join' })
  const far = await TestService.start({
    ...{ 'pc.engine': 'embedded' },
    ...{ 'join.url': gateway.url.replace('http', 'ws'), 'join.token': token },
  })
  const address = { protocol: 'http', host: '127.0.0.1', port: Number(new URL(near.url).port) }
  await gateway.call('POST', '/v2/computes', { compute_id: 'near', ...address })
  const farId = (await readFile(join(far.data, 'compute-id'), 'utf8')).trim()
  await gateway.untilConnected(farId)
  for (const [compute_id, service] of [
    ['near', near],
    [farId, far],
  ] as const) {
    const { project_id } = await gateway.call('POST', projects, { name: 'lab', compute_id })
    for (const framing of ['length', 'chunked'] as const) {
      const path = `${projects}/${project_id}/files/notes.txt`
      const answer = await halfSent(gateway, { path, framing }, () => untilInFlight(() => service.fetch('/metrics'), 1))
      expect([compute_id, framing, answer]).toEqual([compute_id, framing, expect.stringContaining('400 Bad Request')])
      const isSentAsItIs = compute_id === 'near' && framing === 'length'
      const message = isSentAsItIs
        ? 'The body, or the connection to the compute, broke off: look whether it was stored'
        : 'The body broke off; nothing was stored'
      expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).toMatchObject({ message })
    }
  }
  const computes = await gateway.call('GET', '/v2/computes')
  expect(computes).toMatchObject([{ connected: true }, { connected: true }])
})

test('an upload that says its length in two ways is refused, and its compute stays connected', async () => {
  const [gateway, near] = await Promise.all([startWorker(), TestService.start({ 'pc.engine': 'embedded' })])
  const address = { protocol: 'http', host: '127.0.0.1', port: Number(new URL(near.url).port) }
  await gateway.call('POST', '/v2/computes', { compute_id: 'near', ...address })
  const { project_id } = await gateway.call('POST', projects, { name: 'lab', compute_id: 'near' })
  const file = `${projects}/${project_id}/files/notes.txt`
  expect((await gateway.fetch('POST', file, undefined, { body: 'kept' })).ok).toBe(true)
  for (const path of [file, `/v2/computes/near/projects/${project_id}/files/notes.txt`]) {
    const answer = await sentWithTwoLengths(gateway, path)
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
    expect(answer).toContain('A request has Content-Length or Transfer-Encoding, not both')
    expect(await (await gateway.fetch('GET', file)).text()).toBe('kept')
    expect(await gateway.call('GET', '/v2/computes')).toMatchObject([{ connected: true }])
  }
})

test('an upload to a compute that is gone is not taken for one that broke off', async () => {
  const [gateway, near] = await Promise.all([startWorker(), TestService.start({ 'pc.engine': 'embedded' })])
  const address = { protocol: 'http', host: '127.0.0.1', port: Number(new URL(near.url).port) }
  await gateway.call('POST', '/v2/computes', { compute_id: 'near', ...address })
  const { project_id } = await gateway.call('POST', projects, { name: 'lab', compute_id: 'near' })
  const path = `${projects}/${project_id}/files/notes.txt`
  expect((await gateway.fetch('POST', path, undefined, { body: 'kept' })).ok).toBe(true)
  await near.kill('SIGKILL')
  const answer = await gateway.fetch('POST', path, undefined, { body: new Uint8Array(2 ** 20) })
  expect([answer.status, answer.headers.get('x-patchbay-error')]).toEqual([503, 'compute-unreachable'])
})
