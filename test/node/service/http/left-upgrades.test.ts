import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSockets } from '../../../../runtime/node/service/http/websocket.ts'

/** A promise, and what resolves it. */
function later<T>() {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((resolved) => {
    resolve = resolved
  })
  return { promise, resolve }
}

/** A server of websockets whose requests are answered by `fetch`; its port. */
async function serving(fetch: (request: Request, webSockets: WebSockets) => Promise<Response>): Promise<number> {
  const webSockets = new WebSockets()
  const server = createServer().listen(0, '127.0.0.1')
  server.on('upgrade', (req, socket, head) => {
    void webSockets.accept(req, socket, head, (request) => fetch(request, webSockets))
  })
  await once(server, 'listening')
  onTestFinished(() => {
    webSockets.close()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

test.for<[how: string, leave: (client: Socket) => void]>([
  ['ends its connection', (client) => client.destroy()],
  ['resets its connection', (client) => client.resetAndDestroy()],
  ['ends its side of the connection', (client) => client.end()],
  ['sends without end', (client) => client.write(Buffer.alloc(4 * 2 ** 20))],
])('a client that %s before its websocket is open ends its request', async ([, leave]) => {
  const asked = later<Request>()
  const port = await serving((request) => {
    asked.resolve(request)
    return new Promise(() => {})
  })
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
  onTestFinished(() => void client.destroy())
  client.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  const { signal } = await asked.promise
  expect(signal.aborted).toBe(false)
  const left = once(signal, 'abort')
  leave(client)
  await left
  expect((signal.reason as Error).message).toBe('The client disconnected')
})

test('what a client sends before its websocket is open is not lost, and an open one does not end its request', async () => {
  const asked = later<AbortSignal>()
  const answer = later<void>()
  const came = later<void>()
  const closed = later<number>()
  const messages: (string | Uint8Array)[] = []
  const port = await serving(async (request, webSockets) => {
    asked.resolve(request.signal)
    await answer.promise
    return webSockets.upgrade(request, {
      open(socket) {
        socket.onMessage((data) => {
          messages.push(data)
          if (messages.length === 2) came.resolve()
        })
        socket.onClose(closed.resolve)
      },
      abandon() {},
    })
  })
  const client = connect(port, '127.0.0.1')
  onTestFinished(() => void client.destroy())
  const key = Buffer.alloc(16).toString('base64')
  const upgrade = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}`
  client.write(`GET / HTTP/1.1\r\nHost: a\r\n${upgrade}\r\n\r\n`)
  const signal = await asked.promise
  client.write(textFrame('early'))
  answer.resolve()
  const [head] = (await once(client, 'data')) as [Buffer]
  expect(head.toString()).toMatch(/^HTTP\/1\.1 101 /)
  client.write(textFrame('later'))
  await came.promise
  expect(messages).toEqual(['early', 'later'])
  client.destroy()
  expect(await closed.promise).toBe(1006)
  expect(signal.aborted).toBe(false)
})

/** A short text as a client sends it: masked, with zeros (RFC 6455, 5.2). */
const textFrame = (text: string): Buffer =>
  Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)])
