import type { lookup } from 'node:dns'
import { once } from 'node:events'
import { createServer as createHttp, type RequestListener } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, createServer as createTcp, type Server } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { Worker } from 'node:worker_threads'
import { expect, onTestFinished, test, vi } from 'vitest'
import { guarded, httpTransport } from '../../../../runtime/node/service/fleet/http-transport.ts'
import { ConnectionLost, type Send } from '../../../../src/compute/remote/transport.ts'
import { textOf } from '../../../support/answer.ts'
import { certificate, certificateKey } from '../../../support/certificate.ts'
import { hangMs } from '../../../support/limits.ts'

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

function sender(port: number, { protocol = 'http' as 'http' | 'https', host = '127.0.0.1' } = {}): Send {
  const { transport, close } = httpTransport()
  onTestFinished(close)
  return transport({ compute_id: 'one', protocol, host, port })
}

const get = { method: 'GET', path: '/v2/compute/x', headers: {}, body: null, signal: new AbortController().signal }
const answer: RequestListener = (req, res) => void res.end(`${req.headers.host} ${req.url}`)

test('a compute behind TLS is asked when its certificate is trusted, and not otherwise', async () => {
  const port = await listening(createHttps({ cert: certificate, key: certificateKey }, answer))
  const refused = await sender(port, { protocol: 'https' })(get).catch((error: unknown) => error)
  expect(refused).toMatchObject({ message: expect.stringContaining('self-signed certificate') })
  expect(refused).not.toBeInstanceOf(ConnectionLost)
  const before = getCACertificates('default')
  onTestFinished(() => setDefaultCACertificates(before))
  setDefaultCACertificates([...before, certificate])
  for (const host of ['127.0.0.1', 'localhost']) {
    const response = await sender(port, { protocol: 'https', host })(get)
    expect(await textOf(response)).toBe(`${host}:${port} /v2/compute/x`)
  }
})

test('no connection is made to a name with forbidden addresses only', async () => {
  const resolved = (...addresses: string[]) =>
    guarded(((_: string, __: object, callback: (error: null, found: object[]) => void) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      )) as unknown as typeof lookup)
  const look = (look: ReturnType<typeof resolved>, all: boolean) =>
    new Promise<unknown[]>((resolve) => look('lab', { all }, (...result) => resolve(result)))
  const mixed = resolved('169.254.169.254', '10.0.0.1', 'fe80::1%eth0')
  expect(await look(mixed, true)).toEqual([null, [{ address: '10.0.0.1', family: 4 }]])
  expect(await look(mixed, false)).toEqual([null, '10.0.0.1', 4])
  const [error] = await look(resolved('169.254.169.254'), true)
  expect(error).toMatchObject({ message: 'lab resolves to an address that no compute can have' })
})

test('a connection is reused, and replaced when its server has closed it', async () => {
  let connections = 0
  const server = createHttp(answer).on('connection', () => {
    connections += 1
  })
  const send = sender(await listening(server))
  const ask = async () => textOf(await send(get))
  await ask()
  await ask()
  expect(connections).toBe(1)
  // The end is under way while the next request is.
  const both = ask()
  server.closeIdleConnections()
  await both
  expect(connections).toBeLessThanOrEqual(2)
  server.closeAllConnections()
})

test('a request whose connection ends after some time is not sent again', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  let requests = 0
  const server = createHttp((req, res) => {
    requests += 1
    if (requests === 1) return void res.end()
    vi.advanceTimersByTime(60_000)
    req.socket.destroy()
  })
  const send = sender(await listening(server))
  await textOf(await send(get))
  await expect(send({ ...get, method: 'POST' })).rejects.toThrow(ConnectionLost)
  expect(requests).toBe(2)
})

test.for(['POST', 'PUT', 'DELETE'])(
  'a %s without a body is not sent again when its connection is reset after it was read',
  async (method) => {
    const asked: string[] = []
    const server = createHttp((req, res) => {
      asked.push(req.method ?? '')
      // The first answer leaves a connection that is used again; what comes by it is read, and then reset.
      if (asked.length === 1) res.end()
      else req.socket.resetAndDestroy()
    })
    const send = sender(await listening(server))
    await textOf(await send(get))
    await expect(send({ ...get, method, path: '/v2/compute/start' })).rejects.toThrow(ConnectionLost)
    expect(asked).toEqual(['GET', method])
  },
)

test.for(['GET', 'HEAD'])('a %s is sent again once when its reused connection is reset', async (method) => {
  const asked: string[] = []
  const server = createHttp((req, res) => {
    asked.push(req.method ?? '')
    if (asked.length === 2) req.socket.resetAndDestroy()
    else res.end()
  })
  const send = sender(await listening(server))
  await textOf(await send(get))
  await textOf(await send({ ...get, method }))
  expect(asked).toEqual(['GET', method, method])
})

test('repeated groups of requests reuse their connections', async () => {
  let connections = 0
  const server = createHttp(answer).on('connection', () => void connections++)
  const send = sender(await listening(server))
  for (let round = 0; round < 5; round++) {
    await Promise.all(Array.from({ length: 30 }, async () => textOf(await send(get))))
  }
  // One may not be free yet when the next round begins.
  expect(connections).toBeLessThan(60)
})

test('a refusal that comes while the source of a body holds the thread is not lost', async () => {
  const closed = new Int32Array(new SharedArrayBuffer(4))
  // In a thread of its own it goes on meanwhile.
  const server = new Worker(
    `const { createServer } = require('node:net')
    const { parentPort, workerData: closed } = require('node:worker_threads')
    const answer = 'HTTP/1.1 413 Payload Too Large\\r\\nContent-Length: 5\\r\\nConnection: close\\r\\n\\r\\nlarge'
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.write(answer, () => socket.destroy()))
      socket.once('close', () => {
        Atomics.store(closed, 0, 1)
        Atomics.notify(closed, 0)
      })
    })
    server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))`,
    { eval: true, workerData: closed },
  )
  onTestFinished(() => server.terminate().then(() => {}))
  const [port] = (await once(server, 'message')) as [number]
  let pieces = 0
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        pieces += 1
        if (pieces === 2) Atomics.wait(closed, 0, 0, hangMs)
        controller.enqueue(new Uint8Array(1 << 16))
      },
    },
    { highWaterMark: 0 },
  )
  const response = await sender(port)({ ...get, method: 'POST', body })
  expect([response.status, await textOf(response)]).toEqual([413, 'large'])
})

test('an answer that is not HTTP shows that the address is reachable', async () => {
  const port = await listening(
    createTcp((socket) => {
      socket.on('error', () => {})
      socket.end('SSH-2.0-OpenSSH_9.2\r\n')
    }),
  )
  await expect(sender(port)(get)).rejects.toBeInstanceOf(ConnectionLost)
})

test('an abort ends a request that waits, with its reason', async () => {
  const asked = new Promise<void>((resolve) => {
    void listening(createHttp(() => resolve())).then((port) => {
      const over = new AbortController()
      outcome = sender(port)({ ...get, signal: over.signal }).catch((error: unknown) => error)
      abort = () => over.abort(new Error('enough'))
    })
  })
  let outcome: Promise<unknown> = Promise.resolve()
  let abort = () => {}
  await asked
  abort()
  expect(await outcome).toMatchObject({ message: 'enough' })
})
