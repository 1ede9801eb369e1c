import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, type Socket as Connection, connect, createServer } from 'node:net'
import { Writable } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { webStream } from '../../runtime/node/os/system/web-stream.ts'
import { WebSockets } from '../../runtime/node/service/http/websocket.ts'
import { bridgeConsole, bridgeScreen } from '../../src/server/feeds/console.ts'

/** A websocket that leads to what `guest` does with a connection. */
async function open(
  guest: (connection: Connection) => void,
  { bridge = bridgeScreen, protocols = [] }: { bridge?: typeof bridgeScreen; protocols?: string[] } = {},
): Promise<WebSocket> {
  const server = createServer(guest)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const webSockets = new WebSockets()
  const http = createHttpServer()
  http.on('upgrade', (req, socket, head) => {
    void webSockets.accept(req, socket, head, async (request) => {
      const over = new AbortController()
      const connection = connect((server.address() as AddressInfo).port, '127.0.0.1')
      over.signal.addEventListener('abort', () => connection.destroy())
      const stream = { readable: webStream(connection), writable: Writable.toWeb(connection) }
      return webSockets.upgrade(request, {
        open: (socket) => bridge(socket, stream, over),
        abandon: () => over.abort(),
      })
    })
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const client = new WebSocket(`ws://127.0.0.1:${(http.address() as AddressInfo).port}/`, protocols)
  onTestFinished(() => {
    client.terminate()
    webSockets.close()
    http.close()
    server.close()
  })
  await once(client, 'open')
  return client
}

/** Everything that comes. */
function listen(client: WebSocket) {
  const parts: Buffer[] = []
  let size = 0
  let wake = () => {}
  client.on('message', (data: Buffer) => {
    parts.push(data)
    size += data.length
    wake()
  })
  return {
    async until(length: number): Promise<void> {
      while (size < length) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
    /** What came, when it is as long as that. */
    async all(length: number): Promise<Buffer> {
      await this.until(length)
      return Buffer.concat(parts)
    },
  }
}

const closed = async (client: WebSocket): Promise<readonly [code: number, reason: string]> => {
  const [code, reason] = (await once(client, 'close')) as [number, Buffer]
  return [code, reason.toString()]
}

test('the bytes of a screen are unchanged in both directions', async () => {
  const client = await open((connection) => connection.pipe(connection))
  const sent = randomBytes(24 << 20)
  const received = listen(client)
  const piece = 100_000
  for (let at = 0; at < sent.length; at += piece) {
    client.send(sent.subarray(at, at + piece))
    // As a screen's client does, which waits for what it asked for.
    await received.until(at - 4 * piece)
  }
  expect((await received.all(sent.length)).equals(sent)).toBe(true)
})

test('a client that reads slowly gets all of a screen', async () => {
  const shown = randomBytes(16 << 20)
  const client = await open((connection) => connection.end(shown))
  const received = listen(client)
  for (let pauses = 0; pauses < 10; pauses++) {
    client.pause()
    await new Promise((resolve) => setTimeout(resolve, 20))
    client.resume()
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  expect((await received.all(shown.length)).equals(shown)).toBe(true)
})

test('a client that sends more than a screen reads is disconnected, and no byte is skipped', async () => {
  const read: Buffer[] = []
  let connected: Connection | undefined
  const client = await open((connection) => {
    connected = connection.pause()
    connection.on('error', () => {})
  })
  const end = closed(client)
  const sent = randomBytes(256 * 1024)
  for (let count = 0; count < 200; count++) client.send(sent)
  expect(await end).toEqual([1008, 'Input was sent faster than the screen reads it'])
  connected?.on('data', (bytes: Buffer) => read.push(bytes)).resume()
  await once(connected as Connection, 'close')
  const all = Buffer.concat(read)
  for (let at = 0; at < all.length; at += sent.length) {
    const piece = all.subarray(at, at + sent.length)
    expect(piece.equals(sent.subarray(0, piece.length))).toBe(true)
  }
})

test('text messages to a screen are refused', async () => {
  const client = await open(() => {})
  client.send('hello')
  expect(await closed(client)).toEqual([1003, 'A screen accepts binary frames only'])
})

test.each([bridgeConsole, bridgeScreen])('data that is sent just before the end still arrives: %o', async (bridge) => {
  const last = randomBytes(300_000)
  let heard: (bytes: Buffer) => void = () => {}
  const all = new Promise<Buffer>((resolve) => {
    heard = resolve
  })
  const client = await open(
    (connection) => {
      const parts: Buffer[] = []
      connection.on('data', (bytes: Buffer) => parts.push(bytes))
      connection.on('error', () => {})
      connection.on('close', () => heard(Buffer.concat(parts)))
    },
    { bridge },
  )
  client.send(last)
  client.close()
  expect((await all).equals(last)).toBe(true)
})

test('a console goes on when more is typed than the guest reads', async () => {
  const client = await open(
    (connection) => {
      connection.pause()
      connection.write('login: ')
    },
    { bridge: bridgeConsole },
  )
  for (let count = 0; count < 200; count++) client.send('x'.repeat(100_000))
  await listen(client).until(7)
  expect(client.readyState).toBe(client.OPEN)
})

test.for([
  [['binary'], 'binary'],
  [['base64', 'binary'], 'binary'],
  [[], ''],
] as const)('of the subprotocols %j it selects %j', async ([offered, spoken]) => {
  const client = await open(() => {}, { protocols: [...offered] })
  expect(client.protocol).toBe(spoken)
})
