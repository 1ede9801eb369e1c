import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { freshDirectory } from '../../../support/directory.ts'
import { requireProgram } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import { testWith } from '../../../support/test-with.ts'

const settings = {
  'pc.engine': 'embedded',
  'limits.header_timeout_ms': 500,
  'limits.body_timeout_ms': 500,
}

/** Where no image has room, and requests need the token. */
const full = { ...settings, min_free_space_mb: 10 ** 9, token: 'let-me-in-please' }
const authorization = 'Authorization: Bearer let-me-in-please'

let fullService: TestService
beforeAll(async () => {
  fullService = await TestService.startForAll(full)
})
afterAll(() => fullService?.close())

/** Sends bytes as they are; everything that came back until the other side closed. */
async function raw(service: TestService, text: string | Buffer): Promise<string> {
  const socket = await open(service)
  let answer = ''
  socket.on('data', (bytes) => {
    answer += bytes.toString('latin1')
  })
  socket.write(text)
  await once(socket, 'close')
  return answer
}

async function open(service: TestService): Promise<Socket> {
  const { port, hostname } = new URL(service.url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  onTestFinished(() => {
    socket.destroy()
  })
  await once(socket, 'connect')
  return socket
}

test('malformed or incomplete HTTP gets an error in time, and does not affect other requests', async () => {
  const service = await TestService.start(settings)
  const host = new URL(service.url).host
  const head = `POST /v1/projects HTTP/1.1\r\nHost: ${host}\r\n`
  const cases: readonly (readonly [what: string | Buffer, answer: RegExp])[] = [
    ['NONSENSE\r\n\r\n', /^HTTP\/1\.1 400 Bad Request\r\n[\s\S]*"status":400/],
    [Buffer.from([0x16, 3, 1, 2, 0, 1]), /^HTTP\/1\.1 400/],
    [
      `GET /v1/version HTTP/1.1\r\nHost: ${host}\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`,
      /^HTTP\/1\.1 431 [\s\S]*"status":431/,
    ],
    // A connection in reserve.
    ['', /^$/],
    [`GET /v1/version HTTP/1.1\r\nHost: ${host}\r\n`, /^HTTP\/1\.1 408 [\s\S]*"status":408/],
    [`${head}Content-Length: 100\r\n\r\n{"name":`, /^HTTP\/1\.1 408 [\s\S]*"status":408/],
    [`${head}Transfer-Encoding: chunked\r\n\r\n5\r\n{"nam`, /^HTTP\/1\.1 408 [\s\S]*"status":408/],
    [`CONNECT example.com:443 HTTP/1.1\r\nHost: ${host}\r\n\r\n`, /^HTTP\/1\.1 405/],
    ['GET /v1/version HTTP/1.1\r\nConnection: close\r\n\r\n', /^HTTP\/1\.1 400 [\s\S]*"Host: /],
    [`GET /v1/version HTTP/1.1\r\nHost: ${host}\r\nExpect: more\r\n\r\n`, /^HTTP\/1\.1 417 [\s\S]*"status":417/],
    // By URL parsing these would be the project itself.
    [`DELETE /v1/projects/x/files/%2E%2e HTTP/1.1\r\nHost: ${host}\r\n\r\n`, /^HTTP\/1\.1 400 [\s\S]*dot segment/],
    [`POST /v1/projects/x/files/../close HTTP/1.1\r\nHost: ${host}\r\n\r\n`, /^HTTP\/1\.1 400 [\s\S]*dot segment/],
    [`GET /v1\\version HTTP/1.1\r\nHost: ${host}\r\n\r\n`, /^HTTP\/1\.1 400/],
    [
      `GET /v2/compute/notifications/ws HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: bad\r\nSec-WebSocket-Version: 13\r\n\r\n`,
      /^HTTP\/1\.1 400 [\s\S]*"status":400/,
    ],
    ['GET /v1/version HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n', /^HTTP\/1\.1 403/],
    ['GET /v1/version HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n', /^HTTP\/1\.1 40[03]/],
    [
      `GET http://evil.example/v1/version HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n`,
      /^HTTP\/1\.1 403/,
    ],
    [`OPTIONS * HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`, /^HTTP\/1\.1 (204|404)/],
    [
      `GET /v2/compute/notifications/ws HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: close\r\n\r\n`,
      /^HTTP\/1\.1 400/,
    ],
    [
      `GET /v2/compute/projects/x/notifications/ws HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n`,
      /^HTTP\/1\.1 400 Bad Request\r\n[\s\S]*"status":400/,
    ],
  ]
  const answers = await Promise.all(cases.map(([what]) => raw(service, what)))
  for (const [index, [, expected]] of cases.entries()) expect(answers[index]).toMatch(expected)
  for (const answer of answers.filter((text) => text !== ''))
    expect(answer).toMatch(/^HTTP[\s\S]*\r\nServer: patchbay\/[\s\S]*\r\nX-Request-Id: \S/i)
  expect(service.isRunning).toBe(true)
  expect(await service.call('GET', '/v1/projects')).toEqual([])
})

const twice = [
  ['Host', 'Host: evil.example'],
  ['Authorization', 'Authorization: Bearer one\r\nauthorization: Bearer two'],
  ['Origin', 'origin: http://a.example\r\nOrigin: http://b.example'],
  ['Content-Type', 'Content-Type: application/json\r\nX-Other: 1\r\nCONTENT-TYPE: application/json'],
] as const
const upgrading =
  'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13'

test('a header that decides who asks is taken once: a second one is refused, in requests and websockets', async () => {
  const service = await TestService.start(settings)
  const host = `Host: ${new URL(service.url).host}`
  for (const [name, lines] of twice) {
    const fault = new RegExp(`^HTTP/1\\.1 400 [\\s\\S]*"message":"${name}: the request has this header more than once`)
    const requests = [
      `GET /v1/version HTTP/1.1\r\n${host}\r\n${lines}\r\nConnection: close\r\n\r\n`,
      `POST /v1/projects HTTP/1.1\r\n${host}\r\n${lines}\r\nContent-Length: 100000\r\n\r\n{`,
      `GET /v2/compute/notifications/ws HTTP/1.1\r\n${host}\r\n${lines}\r\n${upgrading}\r\n\r\n`,
    ]
    for (const request of requests) expect(await raw(service, request)).toMatch(fault)
  }
  expect(
    await raw(service, `GET /v1/version HTTP/1.1\r\n${host}\r\nAccept: a\r\nAccept: b\r\nConnection: close\r\n\r\n`),
  ).toMatch(/^HTTP\/1\.1 200/)
  expect(await service.call('GET', '/v1/projects')).toEqual([])
})

test('a connection is kept for further requests, also when they are sent together', async () => {
  const service = await TestService.start(settings)
  const { host } = new URL(service.url)
  const request = `GET /v1/version HTTP/1.1\r\nHost: ${host}\r\n\r\n`
  const answer = await raw(service, request + request + request.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
  expect(answer.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(3)
  expect(answer).toMatch(/Connection: keep-alive/)
  // No cache keeps an answer of JSON, and no browser takes it for something else.
  expect(answer.match(/Cache-Control: no-store\r\n/g)).toHaveLength(3)
  expect(answer.match(/X-Content-Type-Options: nosniff\r\n/g)).toHaveLength(3)
})

test('a client that never reads its feed needs no memory, and other feeds lose no events', async () => {
  const service = await TestService.start({ ...settings })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const path = `/v2/compute/projects/${project_id}`
  const deaf = await open(service)
  deaf.pause()
  deaf.write(`GET ${path}/notifications HTTP/1.1\r\nHost: ${new URL(service.url).host}\r\n\r\n`)
  // Each event has all of it: together more than sockets hold.
  const startup_script = 'echo nothing\n'.repeat(2500)
  const node = await service.call<{ node_id: string }>('POST', `${path}/pc/nodes`, { name: 'PC', startup_script })
  const over = new AbortController()
  const feed = await service.fetch(`${path}/notifications`, { signal: over.signal })
  const reader = feed.body?.pipeThrough(new TextDecoderStream()).getReader()
  let events = 0
  const reading = (async () => {
    while (events < 300) events += ((await reader?.read())?.value ?? '').split('"node.updated"').length - 1
  })()
  for (let round = 0; round < 15; round++) {
    const renames = Array.from({ length: 20 }, () =>
      service.call('PUT', `${path}/pc/nodes/${node.node_id}`, { name: `PC${round}` }),
    )
    await Promise.all(renames)
  }
  await reading
  over.abort()
  expect(events).toBe(300)

  // At last it reads: what was not kept for it is told.
  const told = new Promise<void>((resolve) => {
    let before = ''
    deaf.on('data', (bytes) => {
      const text = before + bytes.toString('latin1')
      if (/This feed was read too slowly: \d+ events were dropped/.test(text)) resolve()
      before = text.slice(-200)
    })
  })
  deaf.resume()
  await told
})

test('more feeds than the limit are refused, and a closed feed makes room', async () => {
  const service = await TestService.start({ ...settings, 'limits.feeds': 2 })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const path = `/v2/compute/projects/${project_id}/notifications`
  const [one] = [new AbortController(), await service.fetch(path)]
  const two = await service.fetch(path, { signal: one.signal })
  expect(two.status).toBe(200)
  expect((await service.fetch(path)).status).toBe(429)
  one.abort()
  await expect.poll(async () => (await service.fetch(path, { method: 'HEAD' })).status).toBe(200)
})

testWith(requireProgram('curl'))(
  'a large body that is refused early gets its answer, with Connection: close, however it is sent',
  async () => {
    const directory = await freshDirectory()
    const file = join(directory, 'large')
    await writeFile(file, Buffer.alloc(50 * 2 ** 20))
    const token = ['-H', authorization]
    const image = '/v2/compute/machine-emulator/images/large'
    const cases: readonly (readonly [status: number, path: string, options: readonly string[]])[] = [
      [507, image, token],
      [401, image, []],
      [404, '/v2/compute/nothing', token],
      [413, '/v2/compute/projects', token],
    ]
    for (const [status, path, options] of cases) {
      for (const how of [[], ['-H', 'Expect:'], ['-H', 'Expect:', '-H', 'Transfer-Encoding: chunked']]) {
        const flags = ['-s', '-S', '-i', '-X', 'POST', '-T', file, ...how, ...options, fullService.url + path]
        const { stdout } = await promisify(execFile)('curl', flags)
        const answer = stdout.replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, '')
        expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
        expect(answer).toMatch(/\r\nConnection: close\r\n/i)
        expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).toEqual({ status, message: expect.any(String) })
      }
    }
  },
)

test('a client that sends for a second gets the answer to a refused body', async () => {
  const socket = await open(fullService)
  socket.pause()
  const piece = `10000\r\n${'x'.repeat(65_536)}\r\n`
  socket.write(
    `POST /v2/compute/machine-emulator/images/large HTTP/1.1\r\nHost: ${new URL(fullService.url).host}\r\n${authorization}\r\nTransfer-Encoding: chunked\r\n\r\n`,
  )
  const until = Date.now() + 1000
  while (Date.now() < until) {
    if (!socket.write(piece))
      await Promise.race([once(socket, 'drain'), new Promise((resolve) => setTimeout(resolve, 50))])
  }
  socket.resume()
  const [answer] = await once(socket, 'data')
  expect(String(answer)).toMatch(/^HTTP\/1\.1 507 /)
})

test('a small body that is refused leaves its connection for further requests', async () => {
  const service = await TestService.start(settings)
  const socket = await open(service)
  let answers = ''
  socket.on('data', (bytes) => {
    answers += bytes.toString('latin1')
  })
  const body = 'x'.repeat(1000)
  const head = `Host: ${new URL(service.url).host}\r\n`
  socket.write(`POST /v1/nothing HTTP/1.1\r\n${head}Content-Length: 1000\r\n\r\n${body}`)
  socket.write(`GET /v1/version HTTP/1.1\r\n${head}Connection: close\r\n\r\n`)
  await once(socket, 'close')
  expect(answers.match(/^HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 404', 'HTTP/1.1 200'])
})

test('a body that a client breaks off while it is refused ends neither the service nor another request', async () => {
  const head = `POST /v2/compute/machine-emulator/images/large HTTP/1.1\r\nHost: ${new URL(fullService.url).host}\r\n${authorization}\r\n`
  const breakOff = async (_: unknown, index: number) => {
    const socket = await open(fullService)
    socket.write(`${head}Content-Length: 10000000\r\n\r\n${'x'.repeat(index * 20_000)}`)
    // Some connections break before this process reads: that is how bodies break off, too.
    await once(socket, 'data').catch(() => {})
    socket.destroy()
  }
  await Promise.all(Array.from({ length: 40 }, breakOff))
  const headers = { authorization: 'Bearer let-me-in-please' }
  expect((await fullService.fetch('/v1/version', { headers })).status).toBe(200)
})
