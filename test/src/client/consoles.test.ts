import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { type WebSocket as Peer, WebSocketServer } from 'ws'
import { socketTransport } from '../../../runtime/node/fleet/socket-transport.ts'
import type { RemoteOptions } from '../../../src/client/options.ts'
import { RemoteHostAgent } from '../../../src/client/remote-host-agent.ts'
import type { OpenSocket } from '../../../src/client/transport.ts'
import type { Socket } from '../../../src/http/socket.ts'
import { addressOf, agentAt, lyingCompute, refusal, says } from '../../support/lying-compute.ts'

const id = '10000000-0000-4000-8000-000000000000'
const ref = { project_id: id, kind: 'pc', node_id: id } as const
const place = `/v2/compute/projects/${id}/pc/nodes/${id}/console/ws`
/** The port of a compute whose consoles are what `guest` does with a websocket. */
async function serve(guest: (peer: Peer) => void): Promise<number> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => {
    for (const client of server.clients) client.terminate()
    server.close()
  })
  server.on('connection', guest)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
const compute = async (guest: (peer: Peer) => void, options: Partial<RemoteOptions> = {}) =>
  agentAt(await serve(guest), options)
const open = (agent: RemoteHostAgent, over = new AbortController()) => agent.nodes.console(ref, over.signal)

test('what passes a console comes out as it went in, both ways', async () => {
  const agent = await compute((peer) => peer.on('message', (data: Buffer) => peer.send(data)))
  const { readable, writable } = await open(agent)
  const sent = crypto.getRandomValues(new Uint8Array(60_000))
  const writer = writable.getWriter()
  const parts: Uint8Array[] = []
  const reading = (async () => {
    for await (const part of readable) parts.push(part)
  })()
  for (let times = 0; times < 50; times++) await writer.write(sent)
  await expect.poll(() => parts.reduce((sum, { length }) => sum + length, 0)).toBe(50 * sent.length)
  await writer.close()
  await reading
  expect(Buffer.concat(parts).equals(Buffer.concat(Array(50).fill(sent)))).toBe(true)
})

test('it ends with the node, and breaks with anything else', async () => {
  for (const [code, end] of [
    [1000, 'ends'],
    [1001, 'breaks'],
    [1011, 'breaks'],
  ] as const) {
    const agent = await compute((peer) => {
      peer.send('last words')
      peer.close(code)
    })
    const { readable, writable } = await open(agent)
    const all = new Response(readable).text()
    if (end === 'ends') expect(await all).toBe('last words')
    else expect(await refusal(all)).toMatchObject({ status: 502, message: expect.stringContaining(`(${code})`) })
    await expect(writable.getWriter().write(new Uint8Array(1))).rejects.toThrow('the console')
  }
})

test('whoever leaves, the compute is left', async () => {
  for (const how of ['signal', 'cancel', 'abort', 'close']) {
    let closed: Promise<unknown> = Promise.resolve()
    const agent = await compute((peer) => {
      closed = once(peer, 'close')
    })
    const over = new AbortController()
    const { readable, writable } = await open(agent, over)
    if (how === 'signal') over.abort()
    if (how === 'cancel') await readable.cancel()
    if (how === 'abort') await writable.abort()
    if (how === 'close') await writable.close()
    await closed
    if (how !== 'cancel') expect(await readable.getReader().read()).toMatchObject({ done: true })
  }
})

test('a large message is sent in parts that a compute takes', async () => {
  const sizes: number[] = []
  const agent = await compute((peer) => peer.on('message', (data: Buffer) => sizes.push(data.length)))
  const { writable } = await open(agent)
  await writable.getWriter().write(new Uint8Array(3 << 20))
  await expect.poll(() => sizes.reduce((sum, size) => sum + size, 0)).toBe(3 << 20)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(64 << 10)
})

test('a compute that reads nothing holds the writer up, and not for ever', async () => {
  const agent = await compute((peer) => peer.pause(), { limits: { idleMs: 200 } })
  const { readable, writable } = await open(agent)
  const writer = writable.getWriter()
  const closed = refusal(writer.closed)
  const flood = (async () => {
    for (;;) await writer.write(new Uint8Array(1 << 20))
  })()
  await expect(flood).rejects.toThrow('does not take what is sent')
  expect((await closed).message).toContain('does not take')
  expect(await refusal(readable.getReader().read())).toMatchObject({ status: 502 })
})

test('a reader that does not read costs so much and no more, where the runtime cannot hold the compute up', async () => {
  const port = await serve((peer) => {
    const more = () => peer.readyState === peer.OPEN && peer.send(Buffer.alloc(100_000), more)
    more()
  })
  const openSocket: OpenSocket = async (request) => {
    const { pause: _, ...socket } = (await socketTransport(addressOf(port))(request)) as Socket
    return socket
  }
  const { writable } = await open(agentAt(port, { openSocket, limits: { consoleBytes: 1 << 20 } }))
  expect(await refusal(writable.getWriter().closed)).toMatchObject({
    status: 502,
    message: 'The compute one: the console tells more than is read',
  })
})

test('a reader that does not read holds the compute up, and loses nothing', async () => {
  const pieces = 400
  let left = 0
  const agent = await compute(
    (peer) => {
      for (let count = 0; count < pieces; count++) peer.send(Buffer.alloc(100_000), () => left++)
    },
    { limits: { consoleBytes: 1 << 20 } },
  )
  const over = new AbortController()
  const { readable } = await open(agent, over)
  await expect.poll(() => left).toBeGreaterThan(0)
  const reader = readable.getReader()
  for (let read = 0; read < pieces * 100_000; ) read += (await reader.read()).value?.length ?? Number.NaN
  over.abort()
})

test('a console that is refused says why', async () => {
  const { agent, requests } = await lyingCompute(says({ message: 'The node does not run', status: 409 }, 409))
  expect(await refusal(open(agent))).toMatchObject({ status: 409, message: 'The node does not run' })
  expect(requests.map(({ url }) => url)).toEqual([place])
  const { agent: other } = await lyingCompute(says({}))
  expect(await refusal(open(other))).toMatchObject({ status: 502 })
  const { agent: odd } = await lyingCompute((_, res) => res.writeHead(999).end())
  expect(await refusal(open(odd))).toMatchObject({ status: 503 })
  const none = new RemoteHostAgent({ name: 'one', send: () => Promise.reject(new Error('unused')) })
  expect(await refusal(open(none))).toMatchObject({ status: 501 })
})

test('a console that is never open has its time, and is closed when it comes later', async () => {
  const late: (() => void)[] = []
  let closed = 0
  const socket = { close: () => void closed++ } as unknown as Socket
  const openSocket: OpenSocket = () => new Promise((resolve) => late.push(() => resolve(socket)))
  const { agent } = await lyingCompute(says({}), { openSocket, limits: { workMs: 50 } })
  expect(await refusal(open(agent))).toMatchObject({ status: 504 })
  const over = new AbortController()
  const left = agent.nodes.screen(ref, over.signal)
  over.abort(new Error('enough'))
  expect(await refusal(left)).toMatchObject({ message: 'enough' })
  for (const come of late) come()
  await expect.poll(() => closed).toBe(2)
})
