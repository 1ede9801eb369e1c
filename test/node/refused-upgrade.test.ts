import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSockets } from '../../runtime/node/service/http/websocket.ts'

/** What a request for a websocket is sent when it is answered so. */
async function asked(response: Response): Promise<Socket> {
  const webSockets = new WebSockets()
  const server = createServer().listen(0, '127.0.0.1')
  server.on('upgrade', (req, socket, head) => void webSockets.accept(req, socket, head, async () => response))
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.setEncoding('latin1')
  client.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  onTestFinished(() => {
    client.destroy()
    server.close()
  })
  return client
}

async function until(client: Socket, end: string): Promise<string> {
  let text = ''
  for await (const piece of client.iterator({ destroyOnReturn: false })) {
    text += piece
    if (text.includes(end)) break
  }
  return text
}

test('a download or a feed that is requested as a websocket is not collected in memory, and ends with its client', async () => {
  let pulls = 0
  let isGivenUp = () => {}
  const givenUp = new Promise<void>((resolve) => {
    isGivenUp = resolve
  })
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulls += 1
      // Enough to fill what waits on the way; after that it is the client that decides.
      if (pulls <= 2000) controller.enqueue(new TextEncoder().encode(`piece ${pulls}\n`.padEnd(16_384, '.')))
      else return new Promise(() => {})
    },
    cancel: () => isGivenUp(),
  })
  const client = await asked(new Response(endless))
  expect(await until(client, 'piece 1\n')).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect(pulls).toBeLessThan(2000)
  client.destroy()
  await givenUp
})

test('a request for a websocket gets the error, and the connection is closed', async () => {
  const client = await asked(new Response('{"message": "no", "status": 404}\n', { status: 404 }))
  const text = await until(client, 'no end')
  expect(text).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/)
  expect(text).toMatch(/\r\nconnection: close\r\n/i)
  expect(text.endsWith('\r\n\r\n{"message": "no", "status": 404}\n')).toBe(true)
})
