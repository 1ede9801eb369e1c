import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { Joiner } from '../../../../runtime/node/service/join/joiner.ts'
import type { Compute } from '../../../../src/model/compute.ts'
import { refusedJoiner } from '../../../support/refused-joiner.ts'
import { TestService } from '../../../support/service.ts'

/** Of the compute of all tests, of one that joins in a loop, and of nobody until a test uses it. */
const [token, looping, other, liars, unused] = ['compute', 'looping', 'other', 'liar', 'unused'].map(
  (name) => `tunnel-test-of-${name}-0123456789`,
) as [string, string, string, string, string]
const embedded = { 'pc.engine': 'embedded' }

let gateway: TestService
/** Has joined it. */
let service: TestService
let id: string
/** Its path. */
let compute: string

beforeAll(async () => {
  gateway = await TestService.startForAll({
    ...{ ...embedded, user: 'anna', password: 'geheim' },
    'fleet.join_tokens': [token, looping, other, liars, unused],
  })
  service = await TestService.startForAll({ ...embedded, 'join.url': gateway.url, 'join.token': token })
  id = (await readFile(join(service.data, 'compute-id'), 'utf8')).trim()
  compute = `/v2/computes/${id}`
})

afterAll(async () => {
  await service?.close()
  await gateway?.close()
})

const authorization = `Basic ${btoa('anna:geheim')}`

const ask = (gateway: TestService, path: string, init: RequestInit = {}) =>
  gateway.fetch(path, { ...init, headers: { authorization, ...init.headers } })
const json = async <T>(answer: Promise<Response>) => (await (await answer).json()) as T

/** Resolves when the gateway shows the compute so. */
async function until(id: string, isSo: (compute: Compute | undefined) => boolean): Promise<Compute> {
  for (;;) {
    const found = (await json<Compute[]>(ask(gateway, '/v2/computes'))).find(({ compute_id }) => compute_id === id)
    if (isSo(found)) return found as Compute
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
const isConnected = (compute: Compute | undefined) => compute?.connected === true

const memoryOf = async (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

test('a compute that joins answers by the tunnel: requests, an upload, concurrent streams, websockets', async () => {
  const shown = await until(id, isConnected)
  expect(shown).toMatchObject({ protocol: 'tunnel', port: 0, capabilities: { platform: 'linux' }, last_error: null })
  const where = await json<{ endpoint: string }>(ask(gateway, `/v2/computes/endpoint/${id}/pc/images`))
  expect(where.endpoint).toBe(`${gateway.url}${compute}/pc/images`)

  // A live stream that nobody reads any further, beside everything that follows.
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const over = new AbortController()
  const feed = await ask(gateway, `${compute}/projects/${project_id}/notifications`, { signal: over.signal })
  const lines = feed.body?.pipeThrough(new TextDecoderStream()).getReader()
  expect((await lines?.read())?.value).toContain('"ping"')

  const before = await memoryOf(gateway.pid)
  const image = randomBytes(20 * 2 ** 20)
  const md5sum = createHash('md5').update(image).digest('hex')
  const images = `${compute}/machine-emulator/images`
  const upload = await ask(gateway, `${images}/big.img?md5sum=${md5sum}`, {
    method: 'POST',
    body: new Blob([image]).stream(),
    duplex: 'half',
  } as RequestInit)
  expect(upload.status).toBe(204)
  expect(await json(ask(gateway, images))).toMatchObject([{ filename: 'big.img', md5sum, filesize: image.length }])

  // One download that is not read, and one that is.
  const slow = await ask(gateway, `${images}/big.img`, { signal: over.signal })
  const fast = Buffer.from(await (await ask(gateway, `${images}/big.img`)).arrayBuffer())
  expect(fast.equals(image)).toBe(true)
  expect(slow.status).toBe(200)
  expect((await memoryOf(gateway.pid)) - before).toBeLessThan(150)

  const input = { method: 'POST', body: '{"name": "PC1"}' }
  const created = await ask(gateway, `${compute}/projects/${project_id}/pc/nodes`, input)
  expect(created.status).toBe(201)
  const { node_id } = (await created.json()) as { node_id: string }
  // Pings came meanwhile, as many as it took its time.
  let line = await lines?.read()
  while (line?.done === false && !line.value.includes('node.created')) line = await lines?.read()
  expect(line?.value).toContain('node.created')
  const node = `${compute}/projects/${project_id}/pc/nodes/${node_id}`
  expect((await ask(gateway, `${node}/start`, { method: 'POST' })).status).toBe(200)
  const console = new WebSocket(`${gateway.url.replace('http', 'ws')}${node}/console/ws`, {
    headers: { authorization },
  })
  onTestFinished(() => console.terminate())
  await once(console, 'open')
  let screen = ''
  const shows = (text: string) =>
    new Promise<void>((resolve) => {
      console.on('message', (data: Buffer) => {
        screen += data.toString('latin1')
        if (screen.includes(text)) resolve()
      })
    })
  const answered = shows('ping')
  console.send('help\r')
  await answered
  const closed = once(console, 'close')
  console.close(1000)
  await closed
  const refused = new WebSocket(`${gateway.url.replace('http', 'ws')}${node}/nothing/ws`, {
    headers: { authorization },
  })
  const [refusal] = (await once(refused, 'error')) as [Error]
  expect(refusal.message).toContain('404')

  // Without the credentials of the gateway nobody gets there.
  expect((await gateway.fetch(`${compute}/network/ports`)).status).toBe(401)
  expect(service.isRunning).toBe(true)
  over.abort()
})

test('a compute returns to a gateway that was killed, and a killed compute is shown so at once', async () => {
  await until(id, isConnected)
  const port = Number(new URL(gateway.url).port)
  await gateway.kill('SIGKILL')
  await gateway.restart(port)
  const back = await until(id, isConnected)
  expect(back.capabilities.version).not.toBeNull()
  expect((await ask(gateway, `${compute}/network/ports`)).status).toBe(200)

  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const waiting = ask(gateway, `${compute}/projects/${project_id}/notifications`)
  const reader = (await waiting).body?.getReader()
  await service.kill('SIGKILL')
  const gone = until(id, (it) => it?.connected === false)
  await expect(
    (async () => {
      while ((await reader?.read())?.done === false);
      throw new Error('it ended')
    })(),
  ).rejects.toThrow()
  expect(await gone).toMatchObject({ connected: false, last_error: expect.stringContaining('connection ended') })
  expect((await ask(gateway, `${compute}/network/ports`)).status).toBe(409)

  // The same data directory is the same compute.
  await service.restart()
  await until(id, isConnected)
  const ids = (await json<Compute[]>(ask(gateway, '/v2/computes'))).map(({ compute_id }) => compute_id)
  expect(ids.filter((it) => it === id)).toHaveLength(1)
  expect((await stat(join(service.data, 'compute-id'))).mode & 0o077).toBe(0)
})

test('a join needs a token; pages and tickets are refused', async () => {
  const url = `${gateway.url.replace('http', 'ws')}/v2/computes/join`
  const attempt = async (headers: Record<string, string>, path = '') => {
    const socket = new WebSocket(url + path, { headers })
    const [error] = (await once(socket, 'error')) as [Error]
    return error.message
  }
  const { ticket } = await json<{ ticket: string }>(ask(gateway, '/v2/compute/tickets', { method: 'POST' }))
  for (const headers of [
    {},
    { authorization },
    { authorization: 'Bearer wrong' },
    { authorization: `Basic ${btoa(`x:${token}`)}` },
  ]) {
    expect(await attempt(headers as Record<string, string>)).toContain('401')
  }
  expect(await attempt({}, `?ticket=${ticket}`)).toContain('401')
  // The token of a compute opens nothing else.
  const elsewhere = await gateway.fetch('/v2/computes', { headers: { authorization: `Bearer ${token}` } })
  expect(elsewhere.status).toBe(401)
  // A plain request is none that joins.
  const plain = await gateway.fetch('/v2/computes/join', { headers: { authorization: `Bearer ${token}` } })
  expect(plain.status).toBe(401)
})

test('a compute that joins in a loop is refused until it waits, and others are not', async () => {
  const url = `${gateway.url.replace('http', 'ws')}/v2/computes/join`
  /** The answer; undefined: the websocket opened. */
  const attempt = async (secret: string): Promise<IncomingMessage | undefined> => {
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${secret}` } })
    socket.on('error', () => {})
    const refused = once(socket, 'unexpected-response').then(([, answer]) => answer as IncomingMessage)
    const answer = await Promise.race([refused, once(socket, 'open').then(() => undefined)])
    socket.terminate()
    return answer
  }
  let opened = 0
  let answer = await attempt(looping)
  while (answer === undefined) {
    opened += 1
    answer = await attempt(looping)
  }
  expect(opened).toBeGreaterThanOrEqual(60)
  expect(answer.statusCode).toBe(429)
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
  expect(await attempt(other)).toBeUndefined()
})

test('what a compute sends is never taken for another answer of the gateway', async () => {
  const content = new TextEncoder().encode('{"a":1}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged')
  const headers = { 'Content-Type': 'application/json', 'Content-Length': '7' }
  const quiet = () => {}
  const joiner = new Joiner({
    ...{ url: gateway.url, token: liars, who: { version: '0.1.0', compute_id: 'liar', name: 'liar' } },
    fetch: async ({ url }) => {
      if (url.endsWith('/whole')) return { status: 200, headers, content }
      if (url.endsWith('/pieces')) return { status: 200, headers, content: new Blob([content]).stream() }
      if (url.endsWith('/capabilities')) return Response.json({ version: '0.1.0', node_types: [] })
      const ping = new TextEncoder().encode('{"action": "ping", "event": {}}\n')
      return new Response(new ReadableStream({ start: (controller) => controller.enqueue(ping) }))
    },
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
  })
  onTestFinished(() => joiner.close())
  await until('liar', isConnected)
  for (const path of ['whole', 'pieces']) {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
    let got = ''
    socket.on('data', (piece) => {
      got += piece
    })
    const host = `Host: 127.0.0.1\r\nAuthorization: ${authorization}\r\n`
    socket.write(`GET /v2/computes/liar/${path} HTTP/1.1\r\n${host}\r\n`)
    // After the first answer, if the connection is still open then.
    socket.once('data', () => socket.write(`GET /v2/compute/version HTTP/1.1\r\n${host}Connection: close\r\n\r\n`))
    socket.on('error', () => {})
    await once(socket, 'close')
    expect([path, got]).not.toEqual([path, expect.stringContaining('forged')])
  }
})

test('a token belongs to the compute that used it first, also after restarts of both services', async () => {
  await until(id, isConnected)
  const refused = 'The token belongs to another compute: each compute needs its own'
  expect(await refusedJoiner(gateway.url, token, 'thief')).toBe(refused)
  expect(await refusedJoiner(gateway.url, unused, id)).toContain('joins with another token')
  await service.end()
  await until(id, (compute) => compute?.connected === false)
  await gateway.end()
  await gateway.restart(Number(new URL(gateway.url).port))
  expect(await refusedJoiner(gateway.url, token, 'thief')).toBe(refused)
  expect(await refusedJoiner(gateway.url, unused, id)).toContain('joins with another token')
  await service.restart()
  await until(id, isConnected)
})
