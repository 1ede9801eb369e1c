import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { TestService } from '../support/service.ts'
import {
  expectTornUploadsChangeNothing,
  type Gateway,
  halfSent,
  projects,
  registerBoth,
  sentWithTwoLengths,
  untilInFlight,
} from '../support/torn-uploads.ts'
import { adminToken, WorkerGateway } from '../support/worker-gateway.ts'

const embedded = { 'pc.engine': 'embedded' }

let gateway: WorkerGateway & Gateway
/** Registered by their addresses. */
let a: TestService
let b: TestService
/** Has joined by a tunnel. */
let far: TestService
let farId: string

beforeAll(async () => {
  const worker = await WorkerGateway.startForAll(await mkdtemp(join(tmpdir(), 'patchbay-')), { RATE_PER_S: '0' })
  gateway = Object.assign(worker, { token: adminToken })
  const { token } = await gateway.call('POST', '/v2/tokens', { name: 'lab', purpose: 'join' })
  const joining = { 'join.url': gateway.url.replace('http', 'ws'), 'join.token': token }
  ;[a, b, far] = await Promise.all([
    TestService.startForAll(embedded),
    TestService.startForAll(embedded),
    TestService.startForAll({ ...embedded, ...joining }),
  ])
  await registerBoth(gateway, a, b)
  farId = (await readFile(join(far.data, 'compute-id'), 'utf8')).trim()
  await gateway.untilConnected(farId)
})

afterAll(async () => {
  await Promise.all([a, b, far].map((service) => service?.close()))
  await gateway?.stop()
  if (gateway !== undefined) await rm(gateway.data, { recursive: true, force: true })
})

const areConnected = async () =>
  expect(await gateway.call('GET', '/v2/computes')).toMatchObject([1, 2, 3].map(() => ({ connected: true })))

test('an upload whose connection breaks changes nothing on computes with an address or on one that has joined, and they stay connected', async () => {
  await expectTornUploadsChangeNothing(gateway, { a, b, joined: { id: farId, service: far } })
})

test('a download of a compute that has joined is not whole when its compute ends', async () => {
  // More than sockets and the window of the tunnel hold.
  const bytes = 24 * 2 ** 20
  const image = `/v2/computes/${farId}/machine-emulator/images/large.img`
  expect((await gateway.fetch('POST', image, undefined, { body: new Uint8Array(bytes) })).status).toBe(204)
  const ways = [image, '/v2/compute/machine-emulator/images/large.img']
  for (const path of ways) expect((await (await gateway.fetch('GET', path)).arrayBuffer()).byteLength).toBe(bytes)
  const answers = await Promise.all(ways.map((path) => gateway.fetch('GET', path)))
  onTestFinished(async () => {
    await far.restart()
    await gateway.untilConnected(farId)
    await gateway.call('DELETE', '/v2/compute/machine-emulator/images/large.img')
  })
  await far.kill('SIGKILL')
  for (const answer of answers) {
    expect(answer.headers.get('content-length')).toBe(String(bytes))
    await expect(answer.arrayBuffer()).rejects.toThrow()
  }
})

test('a client that ends its side of the connection in the middle of a body is told so, and computes stay connected', async () => {
  for (const [compute_id, service] of [
    ['a', a],
    [farId, far],
  ] as const) {
    const { project_id } = await gateway.call('POST', projects, { name: 'lab', compute_id })
    for (const framing of ['length', 'chunked'] as const) {
      const path = `${projects}/${project_id}/files/notes.txt`
      const answer = await halfSent(gateway, { path, framing }, () => untilInFlight(() => service.fetch('/metrics'), 1))
      expect([compute_id, framing, answer]).toEqual([compute_id, framing, expect.stringContaining('400 Bad Request')])
      const isSentAsItIs = compute_id === 'a' && framing === 'length'
      const message = isSentAsItIs
        ? 'The request body or the connection to the compute ended early: check whether it was stored'
        : 'The request body ended early; nothing was stored'
      expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).toMatchObject({ message })
    }
  }
  await areConnected()
})

test('an upload that says its length in two ways is refused, and its compute stays connected', async () => {
  const { project_id } = await gateway.call('POST', projects, { name: 'lab', compute_id: 'a' })
  const file = `${projects}/${project_id}/files/notes.txt`
  expect((await gateway.fetch('POST', file, undefined, { body: 'kept' })).ok).toBe(true)
  for (const path of [file, `/v2/computes/a/projects/${project_id}/files/notes.txt`]) {
    const answer = await sentWithTwoLengths(gateway, path)
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
    expect(answer).toContain('A request has Content-Length or Transfer-Encoding, not both')
    expect(await (await gateway.fetch('GET', file)).text()).toBe('kept')
    await areConnected()
  }
})

test('an upload to a compute that is gone is not taken for one that broke off', async () => {
  const gone = await TestService.start(embedded)
  const address = { protocol: 'http', host: '127.0.0.1', port: Number(new URL(gone.url).port) }
  await gateway.call('POST', '/v2/computes', { compute_id: 'gone', ...address })
  onTestFinished(async () => void (await gateway.fetch('DELETE', '/v2/computes/gone')))
  const { project_id } = await gateway.call('POST', projects, { name: 'lab', compute_id: 'gone' })
  const path = `${projects}/${project_id}/files/notes.txt`
  expect((await gateway.fetch('POST', path, undefined, { body: 'kept' })).ok).toBe(true)
  await gone.kill('SIGKILL')
  const answer = await gateway.fetch('POST', path, undefined, { body: new Uint8Array(2 ** 20) })
  expect([answer.status, answer.headers.get('x-patchbay-error')]).toEqual([503, 'compute-unreachable'])
})
